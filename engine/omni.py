"""`OmniStreamer`: one prompt, text to a callback, in the form of seed 004.

Text goes to the callback as it comes. The strategies and chunk sizes are checked and kept in the settings; a
scheduler that acts on them is not there yet, so all of them give the same timing for now.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from .messages import Source
from .models.base import Model
from .rounds import Reply, RoundEnded, Text
from .session import Session
from .settings import GenerationSettings


class OmniStreamer:
    """Answers single prompts and hands the text over in pieces.

    Args:
        model, processor: as `load_model` returns them.
        strategy, min_chunk_size, max_chunk_size, lookahead_steps: see `GenerationSettings`.

    Raises:
        InputError: a value is outside its limits (when the first prompt is streamed).
    """

    def __init__(
        self,
        model: Model,
        processor: Any,
        strategy: str = "balanced",
        min_chunk_size: int = 5,
        max_chunk_size: int = 50,
        lookahead_steps: int = 8,
    ) -> None:
        self.model = model
        self.processor = processor
        self._chunks = {
            "strategy": strategy,
            "min_chunk_size": min_chunk_size,
            "max_chunk_size": max_chunk_size,
            "lookahead_steps": lookahead_steps,
        }

    def stream_generate(
        self,
        prompt: str,
        max_tokens: int = 200,
        chunk_callback: Callable[[str, bool], None] | None = None,
        task_hint: str | None = None,
        files: Iterable[Source] = (),
    ) -> Reply:
        """Start answering and return the reply at once.

        `chunk_callback(text, is_final)` is called from a thread of its own, at last with ("", True); it then reads
        the reply's events, so don't read them too. Without a callback the events are yours.
        """
        settings = GenerationSettings(max_new_tokens=max_tokens, task_hint=task_hint, **self._chunks)
        reply = Session(self.model, self.processor).ask(prompt, files, settings)
        if chunk_callback is not None:
            threading.Thread(target=_hand_over, args=(reply, chunk_callback), daemon=True).start()
        return reply


def _hand_over(reply: Reply, chunk_callback: Callable[[str, bool], None]) -> None:
    try:
        for event in reply:
            if isinstance(event, Text):
                chunk_callback(event.text, False)
            elif isinstance(event, RoundEnded):
                chunk_callback("", True)
    finally:
        reply.stop()  # a callback that raises wants no more text
