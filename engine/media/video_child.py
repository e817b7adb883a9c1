"""The child process that reads one video: `python -I video_child.py`, a request on stdin, frames on stdout.

It is a process of its own because native readers can hang where nothing in Python stops them, and because decord and
PyAV each bring their own FFmpeg, which must not meet: with decord loaded, PyAV fails. An answer is a line of JSON, and
after a "frame" line come the frame's RGB bytes. Knows nothing of the engine; `videos.py` has the sentences.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import BinaryIO


def main() -> None:
    """Read the request, answer it, and die with the parent or after the deadline, whichever is first."""
    request = json.load(sys.stdin.buffer)
    _die_in_time(request["seconds"], request["parent"])
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # native code prints; stdout is for records only
    # The parent's packages, and last, so that it hides nothing, this folder.
    sys.path[:] = [*request["sys_path"], os.path.dirname(os.path.abspath(__file__))]
    from pyav_reader import Unreadable, read

    try:
        for record, data in read_with_decord(request) if "indices" in request else read(request):
            _put(out, record, data)
    except Unreadable as fault:
        _put(out, {"kind": "fault", "reason": fault.args[0], "values": fault.args[1:]})
    except Exception as error:
        _put(out, {"kind": "fault", "reason": "broken", "values": [f"{type(error).__name__}: {error}"[:300]]})
    _put(out, {"kind": "end"})


def read_with_decord(request: dict) -> Iterator[tuple[dict, bytes]]:
    """Read the frames that were planned, by their place in the file; raises where anything is not as planned."""
    import decord

    width, height = request["size"]
    video = decord.VideoReader(request["path"], width=width, height=height)
    if len(video) != request["count"]:
        raise ValueError(f"{len(video)} frames, not {request['count']}")
    for index, shown in zip(request["indices"], request["times"]):
        frame = video[index].asnumpy()
        if frame.shape != (height, width, 3):
            raise ValueError(f"a frame of shape {frame.shape}")
        yield {"kind": "frame", "time": shown, "rough": False}, frame.tobytes()


def _die_in_time(seconds: float, parent: int) -> None:
    if hasattr(signal, "setitimer"):  # no handler: the kernel ends the process even where the GIL is never let go
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + 2)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _put(out: BinaryIO, record: dict, data: bytes = b"") -> None:
    if data:
        record = {**record, "bytes": len(data)}
    rest = memoryview(json.dumps(record).encode() + b"\n" + data)
    while rest:
        rest = rest[out.write(rest) :]


if __name__ == "__main__":
    main()
