"""Which moments of a video are looked at, and which frames those are. Pure numbers, no files.

Also imported by `video_reader.py` in its child process, where the engine's package is not there: standard library only.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence


def sample_times(start: float, end: float, fps: float, min_frames: int, max_frames: int) -> list[float]:
    """Moments from `start` (inclusive) to `end` (exclusive), in seconds: one every 1/fps seconds.

    Where that makes fewer than `min_frames` or more than `max_frames`, that many are spread evenly. The count is
    MOSS-VL's: ceil(seconds x fps), so that 10 s at 1 fps is 10 frames and 10.01 s is 11.
    """
    seconds = max(0.0, end - start)
    natural = max(1, math.ceil(seconds * fps - 1e-6))
    count = min(max(natural, min_frames), max_frames)
    step = 1 / fps if count == natural else seconds / count
    return [start + index * step for index in range(count)]


def frames_on_screen(frame_times: Sequence[float], moments: Sequence[float]) -> list[int]:
    """Indices into `frame_times` (sorted) of the frames on screen at the given moments, each once, in order.

    A frame stays on screen until the next one, however uneven they come. Before the first frame it is the first.
    """
    indices: list[int] = []
    for moment in moments:
        index = max(0, bisect.bisect_right(frame_times, moment + 1e-4) - 1)
        if not indices or index > indices[-1]:
            indices.append(index)
    return indices
