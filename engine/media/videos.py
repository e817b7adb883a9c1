"""`sample_frames`: the only reader of videos.

Not there yet: a video ends in one plain sentence. The door is here so that nothing else has to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InputError
from ..messages import Source
from .images import source_name

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class Frames:
    """Frames of a video: upright RGB `images`, their `times` in seconds, and `notices` for the user."""

    images: tuple[Image, ...]
    times: tuple[float, ...]
    notices: tuple[str, ...] = ()


def sample_frames(
    source: Source,
    fps: float = 1.0,
    max_frames: int = 32,
    start: float | None = None,
    end: float | None = None,
) -> Frames:
    """Sample a video, `fps` frames a second up to `max_frames`, between `start` and `end` seconds.

    Raises:
        InputError: always, for now; the text names the file.
    """
    raise InputError(f"{source_name(source)} is a video, and videos can't be read yet. Add a picture of it instead.")
