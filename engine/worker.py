"""The one thread that owns a model, and the line in front of it.

A round's work is a generator: between two of its steps (a part of a picture, a prefill chunk, a token) the worker
looks at the stop flag and tells the watchdog that work goes on. The worker knows nothing of models, prompts or files.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from .errors import EngineError
from .rounds import Reason, Round

log = logging.getLogger(__name__)

Work = Callable[[], Generator[None, None, Reason]]


@dataclass
class _Job:
    round_: Round
    work: Work
    place: int = 0
    """In the line, as the user was last told."""


class Worker:
    """Runs rounds one after the other on a thread of its own.

    Args:
        name: of the model, for the thread and the log.
        stall_s: seconds without a step after which the user is told; after as many again the round fails.
    """

    def __init__(self, name: str, stall_s: float = 120.0) -> None:
        self.name = name
        self.stall_s = stall_s
        self._line: deque[_Job] = deque()
        self._current: Round | None = None
        self._stuck = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name=f"{name} worker", daemon=True)
        self._thread.start()
        threading.Thread(target=self._watch, name=f"{name} watchdog", daemon=True).start()

    def submit(self, round_: Round, work: Work) -> None:
        """Put a round in line. Its end, whatever happens, arrives as the round's `RoundEnded`."""
        with self._changed:
            if self._closed:
                round_.end("failed", "The model was closed. Load it again and ask again.")
            elif self._stuck:
                round_.end("failed", "The model hangs on an earlier question. Restart the program and ask again.")
            else:
                self._line.append(_Job(round_, work))
                if self._current is not None and not self._current.cancelled:  # one that was stopped is as good as over
                    self._tell_places()
                self._changed.notify_all()

    def close(self) -> None:
        """Stop every round and end the thread; waits up to a second for the step that runs."""
        with self._changed:
            self._closed = True
            rounds = [job.round_ for job in self._line]
            if self._current is not None:
                rounds.append(self._current)
            self._line.clear()
            self._changed.notify_all()
        for round_ in rounds:
            round_.reply.stop()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=1.0)

    def _tell_places(self) -> None:
        waiting = [job for job in self._line if not job.round_.cancelled]
        for place, job in enumerate(waiting, start=1):
            if job.place != place:
                job.place = place
                job.round_.status(f"Number {place} in line")

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._line and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job = self._line.popleft()
                self._current = round_ = job.round_
                self._tell_places()
            round_.touch()
            try:
                self._run(round_, job.work)
            except BaseException:  # this thread must outlive whatever happens in a round
                log.error("%s: the worker was disturbed", self.name, exc_info=True)
                round_.end("failed", "The model failed on this question. Ask again; the details are in the log.")
            finally:
                with self._changed:
                    self._current = None
                    self._stuck = False

    def _run(self, round_: Round, work: Work) -> None:
        try:
            steps = work()
            while not round_.cancelled:
                try:
                    next(steps)
                except StopIteration as done:
                    round_.end(done.value)
                    return
                round_.touch()
            steps.close()
            round_.end("stopped")
        except EngineError as error:
            round_.end("failed", str(error))
        except BaseException as error:  # SystemExit too: a library's exit must not end the thread that owns the model
            log.error("%s: round %s failed", self.name, round_.id, exc_info=True)
            round_.end("failed", _sentence(error))
        finally:
            if round_.ended is None or round_.ended.reason == "failed":
                _give_back_memory()

    def _watch(self) -> None:
        told: Round | None = None
        while not self._closed:
            time.sleep(min(1.0, self.stall_s / 4))
            with self._changed:
                round_ = self._current
            if round_ is None:
                continue
            quiet = time.monotonic() - round_.touched
            if quiet > self.stall_s and told is not round_:
                told = round_
                round_.status(f"The model has not moved for {quiet:.0f} seconds. You can stop and ask again.")
            if quiet > 2 * self.stall_s:
                self._stuck = True
                round_.end("failed", f"The model did not move for {quiet:.0f} seconds. Ask again; if it still hangs,"
                           " restart the program.")


def _give_back_memory() -> None:
    """After a failure: the traceback that kept a step's tensors alive is gone, so the memory can go back."""
    gc.collect()
    cuda = getattr(sys.modules.get("torch"), "cuda", None)  # None too while torch is still being imported
    if cuda is not None and cuda.is_initialized():
        cuda.empty_cache()


def _sentence(error: BaseException) -> str:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "The model ran out of memory. Ask again with smaller or fewer pictures, or start a new chat."
    if isinstance(error, ModuleNotFoundError):
        return (
            f"A package that is needed is missing ({error.name}). Run `pip install -r requirements.txt`, and start"
            " StreamVL with the same Python, for example .venv/bin/python."
        )
    return (
        f"The model failed on this question ({type(error).__name__}: {str(error)[:200]})."
        " Ask again, or start a new chat; the details are in the log."
    )
