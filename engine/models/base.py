"""What every model is, whatever runs it: a name, a worker, and one method that answers.

A model declares itself by `answer`, a generator of steps. It knows the messages and the round; it knows nothing of
sessions, queues of other rounds, or the page.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any

from ..messages import Message
from ..rounds import Reason, Round
from ..settings import GenerationSettings
from ..worker import Worker

_starting = threading.Lock()
"""Two threads that ask first at the same moment must get the same worker."""


class Model(ABC):
    """A model with the one worker that may touch it.

    Attributes:
        name: what people call it.
        about: one sentence for the page: what it can do and what it can't.
        loading, failure: a sentence while the model is being loaded, and why that failed; None for a ready model.
        stall_s: see `Worker`; set it before the first round.
    """

    name: str = "model"
    about: str = ""
    loading: str | None = None
    failure: str | None = None
    stall_s: float = 120.0
    _worker: Worker | None = None

    @abstractmethod
    def answer(
        self, processor: Any, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Reason]:
        """Answer the last message: a generator that yields after each step and returns "finished" or "length".

        Runs on the worker's thread only. Text goes to `round_.write`, progress to `round_.status`. The worker closes
        the generator when the round is stopped. An `EngineError` ends the round with its sentence.
        """

    @property
    def worker(self) -> Worker:
        """The thread that owns this model; started by the first use."""
        with _starting:
            if self._worker is None:
                self._worker = Worker(self.name, self.stall_s)
            return self._worker

    def offline_generate(
        self,
        processor: Any,
        new_queries: queue.Queue,
        output_text_queue: queue.Queue,
        vision_chunked_length: int = 64,
        *,
        events: queue.Queue | None = None,
    ) -> None:
        """Serve queries from one queue into another until told to stop; see `engine.offline`."""
        from ..offline import offline_generate  # above this layer; the method is here because the seed has it here

        offline_generate(self, processor, new_queries, output_text_queue, vision_chunked_length, events=events)

    def close(self) -> None:
        """Stop all rounds and let the worker go. The model can't be used afterwards."""
        self.worker.close()
