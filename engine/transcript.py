"""A chat as it is shown: a round's events become rows, whatever then draws them.

Pure values in, pure values out. What is not the text of a question or an answer (what happens now, notices, errors,
numbers) gets a row of its own, so that it is never copied with a text, and never becomes history: that is the
session's, on the server.
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .rounds import Event, Reply, RoundEnded, Stats, Status, Text, Thinking
from .sessions import new_session_id

MARKS = {"stopped": "Stopped", "length": "Cut at the length limit"}
UNANSWERED = {
    "stopped": "Stopped before an answer. The model does not see this question; send it again to go on with it.",
    "length": "Cut at the length limit before any text.",
    "finished": "The model had nothing to say. Ask in other words.",
}


@dataclass(frozen=True)
class Row:
    """One thing that is shown: whose it is, what it is, and its text (for a file: its path)."""

    role: Literal["user", "assistant"]
    kind: Literal["file", "text", "notice", "thinking", "thought", "status", "error", "unanswered", "facts"]
    text: str


@dataclass
class Exchange:
    """A question and what came of it so far."""

    text: str
    files: Sequence[str] = ()
    reply: Reply | None = None
    notices: list[str] = field(default_factory=list)
    status: str = "Thinking"
    thinking: str = ""
    answer: str = ""
    stats: Stats | None = None
    ended: RoundEnded | None = None

    def take(self, event: Event) -> None:
        """Take the round's next event in."""
        if isinstance(event, Status):
            if event.notice:
                self.notices.append(event.text)
            else:
                self.status = event.text
        elif isinstance(event, Thinking):
            self.thinking += event.text
        elif isinstance(event, Text):
            self.answer += event.text
            self.status = ""
        elif isinstance(event, Stats):
            self.stats = event
        elif isinstance(event, RoundEnded):
            self.ended = event


@dataclass
class Chat:
    """What one visitor's page holds: the session's id and what is shown."""

    session_id: str = field(default_factory=new_session_id)
    exchanges: list[Exchange] = field(default_factory=list)
    streaming: bool = False

    @property
    def running(self) -> bool:
        """True until the end of every answer was read."""
        return any(exchange.ended is None for exchange in self.exchanges)

    def read(self) -> bool:
        """Take in all events that have arrived; returns whether there were any."""
        news = False
        for exchange in self.exchanges:
            while exchange.reply is not None and exchange.ended is None:
                try:
                    exchange.take(exchange.reply.events.get_nowait())
                except queue.Empty:
                    break
                news = True
        return news

    def stop(self) -> None:
        """Stop the answer that runs, if one does, and read its end."""
        for exchange in self.exchanges:
            if exchange.reply is not None and exchange.ended is None:
                exchange.reply.stop()
        self.read()

    def rows(self) -> list[Row]:
        """Everything that is shown, in order."""
        return [row for exchange in self.exchanges for row in rows(exchange)]


def rows(exchange: Exchange) -> list[Row]:
    """A question and what came of it, row by row."""
    shown = [Row("user", "file", path) for path in exchange.files]
    if exchange.text.strip():
        shown.append(Row("user", "text", exchange.text))
    shown += [Row("user", "notice", notice) for notice in exchange.notices]
    if exchange.thinking:
        over = bool(exchange.answer or exchange.ended)
        shown.append(Row("assistant", "thought" if over else "thinking", exchange.thinking))
    if exchange.answer:
        shown.append(Row("assistant", "text", exchange.answer))
    if exchange.ended is None:
        return shown + ([Row("assistant", "status", exchange.status)] if exchange.status else [])
    reason, answered = exchange.ended.reason, bool(exchange.answer.strip())
    if reason == "failed":
        shown.append(Row("assistant", "error", exchange.ended.error or "The model failed. Ask again."))
    elif not answered:
        shown.append(Row("assistant", "unanswered", UNANSWERED[reason]))
    if answered:
        facts = [MARKS.get(reason), stats_line(exchange.stats or Stats())]
        shown.append(Row("assistant", "facts", " · ".join(filter(None, facts))))
    return shown


def stats_line(stats: Stats) -> str:
    """The round in numbers, for people: "0.8 s to first word · 24 tokens/s · 1 picture in the chat"."""
    facts = []
    if stats.ttft_s is not None:
        facts.append(f"{stats.ttft_s:.1f} s to first word")
    if stats.tokens_per_s is not None:
        facts.append(f"{stats.tokens_per_s:.{0 if stats.tokens_per_s >= 10 else 1}f} tokens/s")
    for number, name in ((stats.images, "picture"), (stats.frames, "video frame")):
        if number:
            facts.append(f"{number} {name}{'s' * (number > 1)} in the chat")
    return " · ".join(facts)
