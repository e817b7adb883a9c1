"""What a file may cost before anything is decoded. One set for the whole program, chosen by its owner.

These are not settings of an answer (`MediaSettings` holds those): they keep one upload from taking the machine away
from everybody else. Every limit that turns a file away does so with a sentence that names the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Real

from ..errors import InputError


@dataclass(frozen=True)
class MediaLimits:
    """Limits on what is read.

    Args:
        files: most files in one question.
        picture_bytes, video_bytes: largest file of either kind.
        pixels: largest picture or frame that is decoded. 64 million is above the default of common phone cameras,
            and 192 MB as RGB.
        video_seconds: longest time that is spent on reading one video; frames read by then are used.
        frame_side: longest side of a frame, in pixels; larger frames are shrunk as they are decoded.
        frame_pixels: all frames of one video together; when there are more, each is shrunk further (128 million are
            384 MB, 138 frames of 1280 x 720).

    Raises:
        InputError: a limit is not a number above 0, or not a whole one where parts make no sense.
    """

    files: int = 20
    picture_bytes: int = 50 * 2**20
    video_bytes: int = 500 * 2**20
    pixels: int = 64_000_000
    video_seconds: float = 30.0
    frame_side: int = 1280
    frame_pixels: int = 128_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.name != "video_seconds"
            good = isinstance(value, Real) and not isinstance(value, bool) and 0 < value < float("inf")
            if not good or (whole and value != int(value)):
                kind = "a whole number" if whole else "a number"
                raise InputError(f"{field.name} is {value!r}; it must be {kind} above 0.")


_limits = MediaLimits()


def media_limits() -> MediaLimits:
    """The limits that hold now."""
    return _limits


def set_media_limits(**changes: float) -> MediaLimits:
    """Change some limits for the whole program, for files read from now on; returns the new set.

    Raises:
        InputError: no such limit, or a value that can't be one.
    """
    global _limits
    unknown = set(changes) - {field.name for field in fields(MediaLimits)}
    if unknown:
        names = ", ".join(field.name for field in fields(MediaLimits))
        raise InputError(f"{min(unknown)} is not a limit; the limits are {names}.")
    _limits = replace(_limits, **changes)
    return _limits
