"""`Frames`: what a video is to a model. A pure value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Frames:
    """Frames of a video.

    `images` are upright RGB, `times` their seconds in the video, `notices` sentences for the user, `seconds` the
    length of the whole video as far as it can be read.
    """

    images: tuple[Image, ...]
    times: tuple[float, ...]
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
