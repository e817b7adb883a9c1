"""`sample_frames`: the only reader of videos. A file becomes upright RGB frames with their times, or one sentence.

Moving pictures (GIF, WebP, PNG) are read by `animations.py`; files of every other kind in a child process that can be
ended at any moment. What was left out, shrunk or guessed is told in `notices`.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..messages import Source
from ..settings import MediaSettings
from .animations import animation_steps
from .frames import Frames
from .images import checked_path, read_file, source_name
from .kinds import HEAD_BYTES, kind_of
from .limits import media_limits
from .video_notices import no_frames, notices
from .video_process import Answer, run_child

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)

DECORD_SHARE = 1 / 3
"""Of the time for a video, what decord may use before PyAV has its turn: on broken files it can hang."""


def sample_frames(
    source: Source,
    fps: float = 1.0,
    max_frames: int = 32,
    start: float | None = None,
    end: float | None = None,
    *,
    min_frames: int = 1,
    name: str | None = None,
) -> Frames:
    """Sample a video by time: `fps` frames a second, from `start` up to before `end`, in seconds.

    Where that makes more than `max_frames` (or fewer than `min_frames`), that many are spread evenly. A moment shows
    the frame that is on screen then, and no frame comes twice, so that a slide show or a short clip may give fewer.

    Args:
        source: a path, the bytes of a file, or a PIL image (a GIF, WebP or PNG that moves is a video here; a still
            picture is a video of one frame).
        fps, max_frames, min_frames: as in `MediaSettings`.
        start, end: None is the start or the end of the video; an `end` after the video's is the video's.
        name: what to call it in an error; the file's own name by default.

    Raises:
        InputError: the file is missing, empty, no video, has no video track or no whole frame, is above the
            `video_bytes` or `pixels` of `MediaLimits`, gave no frame within `video_seconds`, or a setting is wrong;
            the text names file or setting and says what to do.
    """
    steps = sample_steps(source, fps, max_frames, start, end, min_frames=min_frames, name=name)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def sample_steps(
    source: Source,
    fps: float = 1.0,
    max_frames: int = 32,
    start: float | None = None,
    end: float | None = None,
    *,
    min_frames: int = 1,
    name: str | None = None,
) -> Generator[None, None, Frames]:
    """`sample_frames` in steps of about 0.05 s, for a worker that looks at a stop flag between steps.

    Returns the frames; closing the generator ends the reading at once. Use: `frames = yield from sample_steps(...)`.
    """
    MediaSettings(fps=fps, min_frames=min_frames, max_frames=max_frames)
    start, end = _second("start", start), _second("end", end)
    if end is not None and end <= (start or 0.0):
        raise InputError(f"end is {end:g} and start {start or 0:g}; end must be after start.")
    name = name or source_name(source, "the video")
    limits = media_limits()
    deadline = time.monotonic() + limits.video_seconds
    span = (start or 0.0, end, fps, min_frames, max_frames)
    with ExitStack() as stack:
        if isinstance(source, (bytes, bytearray, memoryview)):
            head = bytes(source[:HEAD_BYTES])
            if kind_of(head) != "picture":
                data = read_file(source, name, limits.video_bytes)
                source = _stored(data, stack.enter_context(tempfile.TemporaryDirectory()), name)
        elif isinstance(source, (str, os.PathLike)):
            head = _head(checked_path(source, name, limits.video_bytes), name)
        else:
            head = None
        if head is None or kind_of(head) == "picture":
            return (yield from animation_steps(source, name, span, deadline))
        path = os.path.abspath(os.fsdecode(source))
        return (yield from _read_in_child(path, name, head, span, deadline))


def _read_in_child(
    path: str, name: str, head: bytes, span: tuple, deadline: float
) -> Generator[None, None, Frames]:
    limits = media_limits()
    start, end, fps, min_frames, max_frames = span
    request = {
        "path": path, "start": start, "end": end, "fps": fps, "min_frames": min_frames, "max_frames": max_frames,
        "pixels": limits.pixels, "side": limits.frame_side, "all_pixels": limits.frame_pixels, "decord": True,
    }  # fmt: skip
    answer = yield from run_child(request, deadline)
    if "for_decord" in answer.records:
        plan = answer.records["for_decord"]
        share = time.monotonic() + (deadline - time.monotonic()) * DECORD_SHARE
        by_decord = yield from run_child({"path": path, **plan}, share)
        answer.frames = by_decord.frames
        if len(by_decord.frames) < len(plan["indices"]):
            by_pyav = yield from run_child({**request, "decord": False}, deadline)
            if len(by_pyav.frames) >= len(by_decord.frames):
                answer = by_pyav
    late = time.monotonic() > deadline and len(answer.frames) < answer.records.get("plan", {"wanted": 1})["wanted"]
    if answer.fault[0] == "broken":  # not foreseen, so perhaps a bug
        log.warning("%s: the reader failed: %s", name, *answer.fault[1])
    if not answer.frames:
        raise InputError(no_frames(name, head, answer, late, start))
    return Frames(
        tuple(_pictures(answer)),
        tuple(round(record["time"], 3) for record, _ in answer.frames),
        tuple(notices(name, answer, late, fps)),
        round(answer.records["video"]["seconds"], 3),
    )


def _pictures(answer: Answer) -> list[Image]:
    from PIL import Image

    plan = answer.records["plan"]
    turn = _turn(plan["matrix"])
    pictures = [Image.frombytes("RGB", tuple(plan["size"]), data) for _, data in answer.frames]
    return [picture if turn is None else picture.transpose(turn) for picture in pictures]


def _turn(matrix: list[int] | None) -> Any:
    """What makes a frame upright: the display matrix of the container, to the nearest quarter turn, mirrors too.

    The matrix takes a point (x, y) to (a x + c y, b x + d y); ISO 14496-12, 6.2.2.
    """
    from PIL.Image import Transpose

    if matrix is None or not any(matrix):
        return None
    a, b, c, d = (matrix[index] for index in (0, 1, 3, 4))
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return {
            (False, False): None, (True, True): Transpose.ROTATE_180,
            (True, False): Transpose.FLIP_LEFT_RIGHT, (False, True): Transpose.FLIP_TOP_BOTTOM,
        }[a < 0, d < 0]  # fmt: skip
    return {
        (False, True): Transpose.ROTATE_270, (True, False): Transpose.ROTATE_90,
        (False, False): Transpose.TRANSPOSE, (True, True): Transpose.TRANSVERSE,
    }[b < 0, c < 0]  # fmt: skip


def _second(name: str, value: object) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value < math.inf):
        raise InputError(f"{name} is {value!r}; it must be seconds from the start of the video, 0 or more.")
    return None if value is None else float(value)


def _stored(data: bytes, folder: str, name: str) -> str:
    path = os.path.join(folder, "video")
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"{name} can't be stored for reading ({error.strerror}). Free some disk space.") from None
    return path


def _head(path: str, name: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{name} can't be read ({error.strerror}). Check the file and add it again.") from None
