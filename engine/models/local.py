"""A model that runs in this process: prompt, our decode loop, clean text. One class for every family.

What differs between families is in the processor, which turns messages into a `Prompt`, and in the network.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Protocol

from ..messages import Message
from ..prompt import Prompt
from ..rounds import Reason, Round
from ..settings import GenerationSettings
from ..text_stream import TextStream
from .base import Model


class Processor(Protocol):
    """Turns messages into a prompt, and names the tokenizer that turns tokens into text."""

    tokenizer: Any
    context: int

    def prompt(
        self, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Prompt]:
        """Look at the media and render the messages; a step for each piece of work."""


class LocalModel(Model):
    """A causal language model of `transformers`, decoded by our own loop.

    Args:
        name, about: for people.
        network: the causal LM, on its device and in its dtype.
        end_ids: tokens that end an answer.
    """

    def __init__(self, name: str, about: str, network: Any, end_ids: Sequence[int]) -> None:
        self.name = name
        self.about = about
        self.network = network
        self.end_ids = frozenset(end_ids)

    def answer(
        self, processor: Processor, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Reason]:
        from ..decoding import decode

        prompt = yield from processor.prompt(messages, settings, round_)
        round_.counts.prompt_tokens = len(prompt.ids)
        if prompt.newly_dropped:
            round_.status("The chat has grown too long for the model; its oldest part is no longer seen.", notice=True)
        round_.status("Thinking")
        yield
        room = processor.context - len(prompt.ids)
        settings = replace(settings, max_new_tokens=min(settings.max_new_tokens, room))
        stream = TextStream(processor.tokenizer, self.end_ids, settings.stop)
        with closing(decode(self.network, list(prompt.ids), settings, end_ids=self.end_ids)) as tokens:
            for token in tokens:
                if token is not None:
                    round_.token()
                    round_.write(stream.push(token), stream.held)
                    if stream.done:
                        break
                yield
        round_.write(stream.flush())
        return "finished" if stream.done else "length"
