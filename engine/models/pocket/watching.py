"""Looks at the frames of a video one after the other and writes down its moments.

Frames in which nothing changed are not looked at again. Knows the eyes and frames; nothing of questions.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from ...media.frames import Frames
from .clips import ClipNotes, Moment, clock, movements, same_moment
from .notes import Notes

if TYPE_CHECKING:
    from .looking import Eyes

THUMB = (48, 48)
UNCHANGED = 3.0
"""Largest difference of any spot of two thumbnails, smoothed, in grey levels, that compression alone makes."""


def watch(eyes: Eyes, frames: Frames) -> Generator[str, None, ClipNotes]:
    """Look at the frames of a video; yields a short progress text before each step and returns the notes."""
    looked: list[tuple[float, Notes]] = []
    before = None
    for time, image in zip(frames.times, frames.images):
        thumb = _thumb(image)
        if before is not None and abs(thumb - before).max() <= UNCHANGED:
            looked.append((time, looked[-1][1]))
            continue
        before = thumb
        steps = eyes.look(image)
        while True:
            try:
                doing = next(steps)
            except StopIteration as done:
                looked.append((time, done.value))
                break
            yield f"at {clock(time)}, {doing}"
    return ClipNotes(frames.seconds, tuple(_moments(looked, frames.seconds)), movements(looked))


def _moments(looked: list[tuple[float, Notes]], seconds: float) -> list[Moment]:
    moments: list[Moment] = []
    for place, (time, notes) in enumerate(looked):
        end = looked[place + 1][0] if place + 1 < len(looked) else max(seconds, time)
        if moments and same_moment(moments[-1].notes, notes):
            moments[-1] = Moment(moments[-1].start, end, moments[-1].notes)
        else:
            moments.append(Moment(time, end, notes))
    return moments


def _thumb(image):
    import numpy as np
    from PIL import Image

    grey = image.convert("L").resize(THUMB, Image.Resampling.BOX)
    return np.asarray(grey, dtype=np.float32)
