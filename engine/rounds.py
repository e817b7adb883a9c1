"""One round: a question's way to its answer, as events on a queue.

`Reply` is what the asker holds: the queue of events and the stop flag. `Round` is the same round from the model's
side: it says what happens, and it ends exactly once, whoever ends it first: the model, the user's stop, or the
watchdog. Nothing here knows about models or threads' owners; every method may be called from any thread.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Union

Reason = Literal["finished", "length", "stopped", "failed"]
POLL_SECONDS = 0.05
"""How often a reader that waits for an event looks at the stop flag."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class RoundStarted:
    """The question was taken; always the first event."""

    id: str


@dataclass(frozen=True)
class Status:
    """What happens now, in words ("Reading picture 1 of 2").

    `notice` is True for what must stay visible with the question: something was shrunk, sampled or dropped.
    """

    text: str
    notice: bool = False
    id: str = ""


@dataclass(frozen=True)
class Thinking:
    """A piece of the model's thinking, apart from the answer."""

    text: str
    id: str = ""


@dataclass(frozen=True)
class Text:
    """A piece of the answer; the pieces joined are the answer."""

    text: str
    id: str = ""


@dataclass(frozen=True)
class Stats:
    """The round in numbers. Times in seconds; `ttft_s` and `tokens_per_s` are None where nothing was generated."""

    ttft_s: float | None = None
    tokens_per_s: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    images: int = 0
    frames: int = 0
    id: str = ""


@dataclass(frozen=True)
class RoundEnded:
    """The last event: why it ended, the whole text, and for `failed` one sentence for the user."""

    reason: Reason
    text: str = ""
    thinking: str = ""
    error: str | None = None
    id: str = ""


Event = Union[RoundStarted, Status, Thinking, Text, Stats, RoundEnded]


@dataclass
class Counts:
    """What the model counted so far; `Round` makes `Stats` of it."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    images: int = 0
    frames: int = 0


class Reply:
    """The asker's end of a round.

    Iterating reads `events` until `RoundEnded` and may be done once; who prefers the bare queue reads `events` and
    stops at `RoundEnded`. Nobody has to read: an unread reply blocks nothing.
    """

    def __init__(self, round_: Round, events: queue.Queue[Event] | None = None) -> None:
        self._round = round_
        self.id = round_.id
        self.events: queue.Queue[Event] = queue.Queue() if events is None else events
        self.cancel_event = threading.Event()

    @property
    def ended(self) -> RoundEnded | None:
        """How the round ended, or None while it runs. Known before `RoundEnded` is read from the queue."""
        return self._round.ended

    def stop(self) -> None:
        """End the round as `stopped` now, with the text so far; does nothing when it has ended."""
        self.cancel_event.set()
        self._round.end("stopped")

    def wait(self, timeout: float | None = None) -> RoundEnded | None:
        """Wait at most `timeout` seconds (None: for ever) for the end, leaving the events in the queue."""
        self._round.over.wait(timeout)
        return self.ended

    def __iter__(self) -> Iterator[Event]:
        while True:
            try:
                event = self.events.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if self.cancel_event.is_set():  # set by hand, and the model is busy with a long step
                    self.stop()
                if self._round.over.is_set() and self.events.empty():  # somebody else has read the end
                    return
                continue
            yield event
            if isinstance(event, RoundEnded):
                return


class Round:
    """The model's end of a round.

    Args:
        id: what every event of the round carries; numbered by default.
        events: the queue that the events go to; one of the round's own by default.
    """

    def __init__(self, id: str | None = None, events: queue.Queue[Event] | None = None) -> None:
        self.id = f"round-{next(_numbers)}" if id is None else id
        self.counts = Counts()
        self.ended: RoundEnded | None = None
        self.over = threading.Event()
        self.touched = time.monotonic()
        self.reply = Reply(self, events)
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._first_text: float | None = None
        self._first_token: float | None = None
        self._last_token: float | None = None
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._held = ""
        self.reply.events.put(RoundStarted(id=self.id))

    @property
    def cancelled(self) -> bool:
        """True once the round needs no more work: stop was asked for, or it has ended."""
        return self.reply.cancel_event.is_set() or self.ended is not None

    def touch(self) -> None:
        """Say that work goes on; the watchdog counts from here."""
        self.touched = time.monotonic()

    def status(self, text: str, notice: bool = False) -> None:
        """Say what happens now; `notice` for what must stay visible with the question."""
        self._put(Status(text, notice=notice, id=self.id))

    def think(self, piece: str) -> None:
        """Add a piece of thinking."""
        if piece:
            self._put(Thinking(piece, id=self.id), self._thinking)

    def write(self, piece: str, held: str = "") -> None:
        """Add a piece of the answer (it may be empty), and say what text is held back after it.

        `held` is shown if the round is cut right now by a stop or a failure, so that no finished word gets lost.
        """
        with self._lock:
            if self.ended is not None:
                return
            self._held = held
            if piece:
                self._first_text = self._first_text or time.monotonic()
                self._text.append(piece)
                self.reply.events.put(Text(piece, id=self.id))

    def token(self) -> None:
        """Count one generated token."""
        self.counts.answer_tokens += 1
        self._last_token = time.monotonic()
        self._first_token = self._first_token or self._last_token

    def end(self, reason: Reason, error: str | None = None) -> None:
        """End the round; only the first call counts. `error` is the sentence of a failed round."""
        with self._lock:
            if self.ended is not None:
                return
            if self._held:
                self._text.append(self._held)
                self.reply.events.put(Text(self._held, id=self.id))
            self.ended = RoundEnded(reason, "".join(self._text), "".join(self._thinking), error, id=self.id)
            self.reply.events.put(self._stats())
            self.reply.events.put(self.ended)
        self.over.set()

    def _put(self, event: Event, pieces: list[str] | None = None) -> None:
        with self._lock:
            if self.ended is None:
                if pieces is not None:
                    pieces.append(event.text)
                self.reply.events.put(event)

    def _stats(self) -> Stats:
        counts, speed = self.counts, None
        if counts.answer_tokens > 1 and self._last_token > self._first_token:
            speed = (counts.answer_tokens - 1) / (self._last_token - self._first_token)
        return Stats(
            ttft_s=None if self._first_text is None else self._first_text - self._started,
            tokens_per_s=speed,
            prompt_tokens=counts.prompt_tokens,
            cached_tokens=counts.cached_tokens,
            answer_tokens=counts.answer_tokens,
            images=counts.images,
            frames=counts.frames,
            id=self.id,
        )
