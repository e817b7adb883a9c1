"""A chat as it is shown: a round's events become rows of `gr.Chatbot`.

Pure values in, pure values out; it knows neither Gradio nor the engine's threads. What is not the text of a question
or an answer (what happens now, notices, errors, numbers) gets a row of its own, so that it is never copied with a
text, and never becomes history: that is the session's, on the server.
"""

from __future__ import annotations

import html
import os
import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.rounds import Event, Reply, RoundEnded, Stats, Status, Text, Thinking
from engine.sessions import new_session_id

MARKS = {"stopped": "Stopped", "length": "Cut at the length limit"}
UNANSWERED = {
    "stopped": "Stopped before an answer.",
    "length": "Cut at the length limit before any text.",
    "finished": "The model had nothing to say. Ask in other words.",
}


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
        """True until the end of the last answer was read."""
        return bool(self.exchanges) and self.exchanges[-1].ended is None

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
        for exchange in self.exchanges[-1:]:
            if exchange.reply is not None:
                exchange.reply.stop()
        self.read()

    def messages(self) -> list[dict[str, Any]]:
        """Everything that is shown, in order, for `gr.Chatbot`."""
        return [message for exchange in self.exchanges for message in shown(exchange)]


def shown(exchange: Exchange) -> list[dict[str, Any]]:
    """A question and its answer as messages of `gr.Chatbot`: small rows, so that notes never mix with the text."""
    rows = [_file(path) for path in exchange.files]
    if exchange.text.strip():
        rows.append(_row("user", f'<pre class="svl-asked">{html.escape(exchange.text, quote=False)}</pre>'))
    rows += [_note("user", "notice", notice) for notice in exchange.notices]
    if exchange.thinking:
        state = "done" if exchange.answer or exchange.ended else "pending"
        rows.append(_row("assistant", exchange.thinking) | {"metadata": {"title": "Thinking", "status": state}})
    if exchange.answer:
        rows.append(_row("assistant", exchange.answer))
    if exchange.ended is None:
        return rows + ([_note("assistant", "status", exchange.status)] if exchange.status else [])
    reason, answered = exchange.ended.reason, bool(exchange.answer.strip())
    if reason == "failed":
        rows.append(_note("assistant", "error", exchange.ended.error or "The model failed on this question. Ask again."))
    elif not answered:
        rows.append(_note("assistant", "unanswered", UNANSWERED[reason]))
    if answered:
        facts = [MARKS.get(reason), stats_line(exchange.stats or Stats())]
        rows.append(_note("assistant", "facts", " · ".join(filter(None, facts))))
    return rows


def stats_line(stats: Stats) -> str:
    """The round in numbers, for people: "0.8 s to first word · 24 tokens/s · 1 picture"."""
    facts = []
    if stats.ttft_s is not None:
        facts.append(f"{stats.ttft_s:.1f} s to first word")
    if stats.tokens_per_s is not None:
        facts.append(f"{stats.tokens_per_s:.{0 if stats.tokens_per_s >= 10 else 1}f} tokens/s")
    for number, name in ((stats.images, "picture"), (stats.frames, "video frame")):
        if number:
            facts.append(f"{number} {name}" + "s" * (number > 1))
    return " · ".join(facts)


def _row(role: str, text: str) -> dict[str, Any]:
    # A text block: Gradio strips indentation and newlines from bare strings.
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _note(role: str, kind: str, text: str) -> dict[str, Any]:
    return _row(role, f'<p class="svl-note svl-{kind}">{html.escape(" ".join(text.split()), quote=False)}</p>')


def _file(path: str) -> dict[str, Any]:
    name = os.path.basename(path)
    if not os.path.exists(path):  # the cache is emptied after a day; Gradio fails on a path that is gone
        return _note("user", "notice", f"{name} is not kept any more.")
    return {"role": "user", "content": [{"path": path, "alt_text": name}]}
