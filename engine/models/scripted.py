"""A model that says what it is told to: for tests, and for building a page without weights.

As public as the real ones, so that a page or a script is tried against the real worker, session and queue.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Union

from ..messages import Message
from ..rounds import Reason, Round
from ..settings import GenerationSettings
from .base import Model

Step = Union[str, float, BaseException]
"""A piece of text, a pause in seconds (one uninterruptible step), or an error to raise."""


class ScriptedModel(Model):
    """Answers each round with the next script; without one it echoes the question.

    Args:
        scripts: one iterable of steps for each round, in order.

    Attributes:
        seen: the messages that each round was given.
        steps: how many steps were run in all.
    """

    name = "scripted"
    about = "Repeats prepared answers; it does not look at anything."

    def __init__(self, scripts: Iterable[Iterable[Step]] = ()) -> None:
        self.scripts = deque(scripts)
        self.seen: list[tuple[Message, ...]] = []
        self.steps = 0

    def answer(
        self, processor: Any, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Reason]:
        self.seen.append(tuple(messages))
        script = self.scripts.popleft() if self.scripts else (f"You said: {messages[-1].text}",)
        for step in script:
            self.steps += 1
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, str):
                if round_.counts.answer_tokens == settings.max_new_tokens:
                    return "length"
                round_.token()
                round_.write(step)
            else:
                time.sleep(step)
            yield
        return "finished"
