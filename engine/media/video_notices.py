"""What is said about a video that could not be read, or not all of it."""

from __future__ import annotations

from .kinds import kind_of, looks_like
from .limits import media_limits
from .video_process import Answer


def clock(seconds: float) -> str:
    """Seconds as people write them: "9.5 seconds", "1:30", "1:30:00"."""
    if seconds < 60:
        return f"{seconds:.3g} second{'' if round(seconds, 2) == 1 else 's'}"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def thinned(name: str, seconds: float, count: int, step: float) -> str:
    """Fewer frames than asked for a second, since there is a most."""
    every = f"{step:.0f}" if step >= 10 else f"{step:.2g}"
    return f"{count} frames of {name} ({clock(seconds)}) are looked at: one every {every} seconds."


def too_slow(name: str, count: int, wanted: int) -> str:
    """The deadline came before the last frame."""
    limit = clock(media_limits().video_seconds)
    return f"{name} takes longer than {limit} to read; only the first {count} of {wanted} frames are looked at."


def shrunk(name: str, width: int, height: int, to_width: int, to_height: int) -> str:
    """Frames were made smaller."""
    return f"The frames of {name} were shrunk from {width} x {height} to {to_width} x {to_height} pixels."


def notices(name: str, answer: Answer, late: bool, fps: float) -> list[str]:
    """What was left out, shrunk or guessed, for an answer that has frames."""
    video, plan = answer.records["video"], answer.records["plan"]
    said, count, wanted = [], len(answer.frames), plan["wanted"]
    if video["missing"] > max(0.5, 0.02 * video["seconds"]):
        whole = clock(video["seconds"] + video["missing"])
        said.append(f"{name} is damaged or cut off: only the first {clock(video['seconds'])} of {whole} can be read.")
    if plan["step"] > 1 / fps + 1e-6:
        said.append(thinned(name, video["end"] - video["start"], wanted, plan["step"]))
    if any(record["rough"] for record, _ in answer.frames):
        said.append(f"{name} is slow to read, so some frames were taken a little earlier than planned.")
    if late:
        said.append(too_slow(name, count, wanted))
    elif count < wanted and not any(record["rough"] for record, _ in answer.frames):
        said.append(f"{name} is damaged: {wanted - count} of {wanted} frames could not be read.")
    width, height = plan["size"]
    if width < plan["width"] and height < plan["height"]:
        said.append(shrunk(name, plan["width"], plan["height"], width, height))
    return said


def no_frames(name: str, head: bytes, answer: Answer, late: bool, start: float) -> str:
    """Why there is no frame, and what to do."""
    reason, values = answer.fault
    if reason == "pixels":
        limit = media_limits().pixels / 1e6
        return (f"{name} has {values[0]} x {values[1]} pixels; the limit is {limit:g} million."
                " Make it smaller and add it again.")
    if reason == "range":
        return f"{name} is {clock(values[0])} long; nothing is left from second {start:g} on. Choose an earlier start."
    if reason == "no_video":
        return f"{name} has sound but no video track. Add a file with a picture in it."
    if reason == "codec":
        return f"{name} is in a format that can't be decoded here. Save it as MP4 (H.264) and add it again."
    if reason == "no_pyav":
        return f"{name} can't be read, since PyAV is not installed. Install it: pip install av."
    if reason == "unknown" and kind_of(head) != "video":
        return f"{name} can't be read as a video{looks_like(head)}. Save it as MP4 and add it again."
    if late:
        limit = clock(media_limits().video_seconds)
        return f"{name} could not be read within {limit}. Make it shorter or smaller and add it again."
    return f"{name} is damaged or cut off: no picture in it can be read. Save or copy it again and add it once more."
