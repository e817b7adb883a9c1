"""`offline_generate`: queries in by one queue, text out by another, drop-in for MOSS-VL's loop.

One loop is one session. A query's round begins with `<|round_start|>` and ends with `<|round_end|>`, whatever happens
between; text comes in pieces or, without streaming, as one item; a fault comes as `[ERROR] sentence`. What is better
than in the original: a bare cancel or reset that arrives idle starts nothing, a stop is never lost and answers what it
leaves behind, cancel acts at every step, the end comes at once, and typed events can be had beside the strings.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import EngineError
from .media.intake import take_in
from .messages import Message, TextPart, assistant
from .models.base import Model
from .queries import CANCEL, RESET, STOP, Query, asks, read_query, strangers, wants
from .rounds import Event, Reason, Round, RoundEnded, Text

log = logging.getLogger(__name__)

ROUND_START = "<|round_start|>"
ROUND_END = "<|round_end|>"
ERROR = "[ERROR] "


def offline_generate(
    model: Model,
    processor: Any,
    new_queries: queue.Queue,
    output_text_queue: queue.Queue,
    vision_chunked_length: int = 64,
    *,
    events: queue.Queue | None = None,
) -> None:
    """Serve queries until one says `stop_offline_generate`; runs on the caller's thread.

    Args:
        new_queries: dicts, see `engine.queries`; anything else is ignored. Several producers may share it.
        output_text_queue: gets markers, pieces of text and errors, as strings.
        vision_chunked_length: taken for the sake of the original; media are always encoded one at a time.
        events: gets the typed events of every round too, each with the query's `id` (text) or a numbered one.

    Source: MOSS-VL's `offline_generate`; see the README for the query keys.
    """
    _Loop(model, processor, new_queries, output_text_queue, events).run()


@dataclass
class _Running:
    """The round that is being answered, and what its query asked for."""

    round_: Round
    query: Query | None = None
    messages: tuple[Message, ...] = ()


class _Loop:
    def __init__(
        self, model: Model, processor: Any, queries: queue.Queue, out: queue.Queue, events: queue.Queue | None
    ) -> None:
        self._model = model
        self._processor = processor
        self._queries = queries
        self._out = out
        self._events = events
        self._history: tuple[Message, ...] = ()
        self._waiting: deque[Mapping] = deque()
        self._running: _Running | None = None
        self._stopping = False
        # Queries and the events of the running round arrive in one queue, so that nothing has to be polled.
        self._arrivals: queue.Queue = queue.Queue()
        self._early: deque[Mapping] = deque()

    def run(self) -> None:
        threading.Thread(target=self._read_queries, name="offline queries", daemon=True).start()
        while True:
            if self._running is None:
                if self._stopping:
                    return self._answer_the_left()
                if self._waiting:
                    self._begin(self._waiting.popleft())
                    continue
            arrival = self._early.popleft() if self._early else self._arrivals.get()
            if isinstance(arrival, Mapping):
                self._take(arrival)
            else:
                self._show(arrival)

    def _settle(self) -> None:
        """Show what is left of a round that has ended, ahead of queries that arrived before its last events."""
        while self._running is not None:
            arrival = self._arrivals.get()
            if isinstance(arrival, Mapping):
                self._early.append(arrival)
            else:
                self._show(arrival)

    def _read_queries(self) -> None:
        """Bring queries over, up to the one that stops the loop: what follows it isn't this loop's."""
        while True:
            query = self._queries.get()
            if isinstance(query, Mapping):
                self._arrivals.put(query)
                if wants(query, (STOP,)):
                    return

    def _take(self, query: Mapping) -> None:
        """Controls act at once and overtake what waits; a reset waits for its turn."""
        if self._running is not None and self._running.round_.over.is_set():
            self._settle()
        if self._running is not None and wants(query, (*CANCEL, STOP)):
            self._running.round_.reply.stop()
        if asks(query) or wants(query, RESET):
            self._waiting.append(query)
        if wants(query, (STOP,)):
            self._stopping = True

    def _begin(self, query: Mapping) -> None:
        if wants(query, RESET):
            self._history = ()
        if not asks(query):
            return
        name = query.get("id")
        round_ = Round(None if name is None else str(name), self._arrivals)
        self._running = running = _Running(round_)
        self._out.put(ROUND_START)
        for key in strangers(query):
            round_.status(f"The query's key {key!r} is not known and has no effect.", notice=True)
        try:
            read = read_query(query, self._history)
        except EngineError as error:
            round_.end("failed", str(error))
            return
        except Exception as error:  # a value that nobody thought of must not end the loop for everybody
            log.error("a query could not be read", exc_info=True)
            round_.end("failed", f"The query can't be read ({type(error).__name__}: {str(error)[:200]}). Check its values.")
            return
        running.query = read
        self._model.worker.submit(round_, lambda: self._work(running, read))

    def _work(self, running: _Running, query: Query) -> Generator[None, None, Reason]:
        turn = []
        for message in query.messages:
            turn.append((yield from _take_all(message, running.round_)))
        running.messages = (*(() if query.replaces else self._history), *turn)
        answer = self._model.answer(self._processor, running.messages, query.settings, running.round_)
        return (yield from answer)

    def _show(self, event: Event) -> None:
        if self._events is not None:
            self._events.put(event)
        query = self._running.query
        if isinstance(event, Text) and query.stream:
            self._out.put(event.text)
        elif isinstance(event, RoundEnded):
            self._end(event, self._running)

    def _end(self, ended: RoundEnded, running: _Running) -> None:
        query = running.query
        if ended.reason == "failed":
            self._out.put(ERROR + ended.error)
        else:
            if not query.stream:
                self._out.put(ended.text)
            if query.persist and running.messages and (ended.reason != "stopped" or query.persist_cancelled):
                self._history = (*running.messages, assistant(ended.text))
        self._running = None
        self._out.put(ROUND_END)

    def _answer_the_left(self) -> None:
        """Queries that a stop leaves behind get a round of their own that says so."""
        for query in self._waiting:
            if asks(query):
                round_ = Round(None if query.get("id") is None else str(query["id"]), queue.Queue())
                round_.end("failed", "The loop was stopped before this query's turn. Start it again and ask again.")
                if self._events is not None:
                    while not round_.reply.events.empty():
                        self._events.put(round_.reply.events.get())
                for item in (ROUND_START, ERROR + round_.ended.error, ROUND_END):
                    self._out.put(item)


def _take_all(message: Message, round_: Round) -> Generator[None, None, Message]:
    """Take in each file by itself: one that can't be used fails the round, as there is no place here to tell of it."""
    parts = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append(part)
        else:
            parts += (yield from take_in(Message(message.role, (part,)), round_)).parts
    return Message(message.role, tuple(parts))
