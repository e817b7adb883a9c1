"""Moving pictures as videos: GIF, WebP, PNG and AVIF that move, read by Pillow, frame by frame.

FFmpeg would read some of them too, but without their transparency, or not at all. Each frame is bounded by the pixel
limit, so the deadline is looked at between frames and no child process is needed.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from ..errors import InputError
from ..messages import Source
from .frames import Frames
from .images import broken_picture, lazily_opened, moves
from .limits import media_limits
from .right_colours import to_rgb
from .sampling import frames_on_screen, sample_times
from .video_notices import clock, shrunk, thinned, too_slow

if TYPE_CHECKING:
    from PIL.Image import Image

UNTIMED = 0.1
"""Seconds that a frame without a time of its own is shown, as browsers do."""


def animation_steps(source: Source, name: str, span: tuple, deadline: float) -> Generator[None, None, Frames]:
    """The frames of a moving picture; a still one is a video of one frame.

    Args:
        span: (start, end, fps, min_frames, max_frames), already checked; see `sample_frames`.
        deadline: by `time.monotonic`; frames read by then are used.

    Raises:
        InputError: it is no picture, no frame can be read, or `start` is after its end.
    """
    picture = lazily_opened(source, name)
    stood = picture.tell()
    try:
        return (yield from _sampled(source, picture, name, span, deadline))
    except InputError:
        raise
    except Exception as error:  # each of Pillow's decoders has its own way to say that a file is broken
        raise broken_picture(name, error) from None
    finally:
        if picture is source:
            with contextlib.suppress(Exception):  # of a broken one
                _go_to(picture, stood)


def _sampled(
    source: Source, picture: Image, name: str, span: tuple, deadline: float
) -> Generator[None, None, Frames]:
    start, end, fps, min_frames, max_frames = span
    times, seconds, ending = yield from _times(picture, deadline)
    if not times:
        raise InputError(f"{name} is damaged or cut off. Save or copy it again and add it once more.")
    if start >= seconds and start > 0:
        raise InputError(f"{name} is {clock(seconds)} long; nothing is left from second {start:g} on."
                         " Choose an earlier start.")
    end = seconds if end is None else min(end, seconds)
    moments = sample_times(start, end, fps, min_frames, max_frames)
    wanted = frames_on_screen(times, moments)
    images: list[Image] = []
    picture = lazily_opened(source, name)  # again: a broken frame leaves Pillow's reader in a broken state
    for index in wanted:
        if time.monotonic() > deadline and images:
            break
        _go_to(picture, index)
        frame = to_rgb(picture)
        images.append(_fitting(frame, len(wanted)))
        yield
    notices = []
    if not moves(picture):
        notices.append(f"{name} is a picture that does not move; it is looked at as one frame.")
    if ending == "cut":
        notices.append(f"{name} is damaged or cut off: only the first {clock(seconds)} can be read.")
    if ending == "slow":
        notices.append(f"{name} takes too long to read to its end; only the first {clock(seconds)} are looked at.")
    if len(moments) > 1 and moments[1] - moments[0] > 1 / fps + 1e-6:
        notices.append(thinned(name, end - start, len(wanted), moments[1] - moments[0]))
    if len(images) < len(wanted) and time.monotonic() > deadline:
        notices.append(too_slow(name, len(images), len(wanted)))
    if images[-1].size != frame.size:
        notices.append(shrunk(name, *frame.size, *images[-1].size))
    shown = [round(max(start, times[index]), 3) for index in wanted]
    return Frames(tuple(images), tuple(shown[: len(images)]), tuple(notices), round(seconds, 3))


def _times(picture: Image, deadline: float) -> Generator[None, None, tuple[list[float], float, str]]:
    """When each frame comes, how long the whole is, and why it ends there: "whole", "cut" or "slow"."""
    times: list[float] = []
    seconds = 0.0
    # Only a GIF doesn't say how many frames it has: counting them would mean to read them all.
    promised = None if picture.format == "GIF" else getattr(picture, "n_frames", 1)
    for index in itertools.count():
        if index and not moves(picture):
            break
        try:
            _go_to(picture, index)
            picture.load()
        except EOFError:
            return times, seconds, "whole" if promised in (None, index) else "cut"
        except Exception:
            return times, seconds, "cut"
        times.append(seconds)
        shown = picture.info.get("duration")
        seconds += shown / 1000 if isinstance(shown, (int, float)) and 0 < shown < math.inf else UNTIMED
        yield
        if time.monotonic() > deadline - media_limits().video_seconds / 2:
            return times, seconds, "slow"
    return times, seconds, "whole"


def _go_to(picture: Image, index: int) -> None:
    png = getattr(picture, "png", None)
    if png is not None and index < picture.tell():
        png.queue = []  # Pillow 12.3 keeps the chunk after the current frame when it rewinds, and then fails
    picture.seek(index)
    if picture.width * picture.height > media_limits().pixels:  # a frame of a GIF can enlarge the picture
        raise ValueError("too many pixels")


def _fitting(picture: Image, count: int) -> Image:
    limits = media_limits()
    width, height = picture.size
    share = min(1.0, limits.frame_side / max(width, height), math.sqrt(limits.frame_pixels / (count * width * height)))
    return picture if share == 1 else picture.resize((max(1, round(width * share)), max(1, round(height * share))))
