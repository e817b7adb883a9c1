"""Runs `video_child.py` and reads its answer: started in steps, ended in time, never left behind.

Knows processes and records; what they mean is known to `videos.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS = 0.05
"""A step: how often the deadline is looked at, and the caller can stop."""


@dataclass
class Answer:
    """What the child said until it ended: a record of each kind, and its frames as (record, RGB bytes).

    `complete` is False where it was ended from outside or died.
    """

    records: dict[str, dict] = field(default_factory=dict)
    frames: list[tuple[dict, bytes]] = field(default_factory=list)
    complete: bool = False

    @property
    def fault(self) -> tuple[str, list]:
        """The reason why the child could not read, and its values; ("", []) where it could."""
        fault = self.records.get("fault", {"reason": "", "values": []})
        return fault["reason"], fault["values"]


def run_child(request: dict, deadline: float) -> Generator[None, None, Answer]:
    """Run the child until it ends or `deadline` (by `time.monotonic`); closing the generator ends it at once.

    The thread that starts it must stay until it has ended: on Linux the child dies with its thread.
    """
    seconds = max(0.01, deadline - time.monotonic())
    details = {"seconds": seconds, "parent": os.getpid(), "sys_path": [os.path.abspath(path) for path in sys.path]}
    message: bytes | None = json.dumps(request | details).encode()
    hidden = {"creationflags": subprocess.CREATE_NO_WINDOW} if os.name == "nt" else {}
    child = subprocess.Popen(
        [sys.executable, "-I", str(Path(__file__).with_name("video_child.py"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **hidden,
    )  # fmt: skip
    try:
        while True:
            try:
                return _parsed(child.communicate(message, timeout=POLL_SECONDS)[0])
            except subprocess.TimeoutExpired:
                message = None  # sent, or being sent: communicate goes on where it was
            if time.monotonic() > deadline:
                child.kill()
                return _parsed(child.communicate()[0])
            yield
    finally:
        if child.returncode is None:
            child.kill()
            child.communicate()


def _parsed(data: bytes) -> Answer:
    answer, place = Answer(), 0
    while (stop := data.find(b"\n", place)) >= 0:
        record = json.loads(data[place:stop])
        place = stop + 1
        if record["kind"] == "end":
            answer.complete = True
        elif record["kind"] == "frame":
            frame = data[place : place + record["bytes"]]
            place += record["bytes"]
            if len(frame) == record["bytes"]:
                answer.frames.append((record, frame))
        else:
            answer.records[record["kind"]] = record
    return answer
