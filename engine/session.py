"""A conversation: its history, and one round at a time.

The history is a list of turns, and each turn's answer is read off its reply, so there is nothing to keep in step.
What the next prompt sees follows one rule: a question whose answer has text, finished or stopped, is in it with that
text; a question that was stopped before any text, or that failed, stays in `messages` but out of the prompt.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import EngineError, InputError
from .media.intake import media_part, take_in
from .messages import Message, Source, assistant, system, user
from .models.base import Model
from .rounds import Reason, Reply, Round
from .settings import GenerationSettings

NOTHING = "There is nothing to answer yet. Type a question or add a picture."


@dataclass
class _Turn:
    """A question and what came of it; `before` is the text that a continued answer goes on from."""

    question: Message
    before: str = ""
    reply: Reply | None = None

    @property
    def text(self) -> str:
        ended = self.reply.ended if self.reply else None
        return self.before + (ended.text if ended and ended.reason != "failed" else "")

    @property
    def messages(self) -> tuple[Message, ...]:
        return (self.question, assistant(self.text)) if self.text.strip() else (self.question,)


class Session:
    """One visitor's conversation with a model.

    Args:
        model, processor: as `load_model` returns them.
        messages: an earlier conversation to go on with, as `messages` gave it.

    Raises:
        InputError: `messages` is no such conversation.

    `ask`, `retry`, `edit` and `continue_` return a reply at once and never raise for what a user can do wrong: such a
    reply ends `failed` with a sentence. Each of them stops a round that still runs. Methods may be called from any
    thread.
    """

    def __init__(self, model: Model, processor: Any, *, messages: Sequence[Message] = ()) -> None:
        self.model = model
        self.processor = processor
        self._lock = threading.RLock()
        self._opening: tuple[Message, ...] = ()
        self._turns: list[_Turn] = []
        for message in messages:
            if not isinstance(message, Message):
                raise InputError(f"messages holds a value of the type {type(message).__name__}; give Message values.")
            if message.role == "system":
                self._opening += (message,)
            elif message.role == "user":
                self._turns.append(_Turn(message))
            elif self._turns:
                self._turns[-1].before += message.text
            else:
                raise InputError("messages starts with an answer; a conversation starts with a question.")

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as a person sees it, without the answer that still runs."""
        with self._lock:
            return self._opening + tuple(message for turn in self._turns for message in turn.messages)

    def ask(
        self, text: str = "", files: Iterable[Source] = (), settings: GenerationSettings | None = None
    ) -> Reply:
        """Ask about `files` (paths, bytes, PIL images) and everything before. Stops a round that runs."""
        try:
            question = user(_text(text), [media_part(file) for file in _sources(files)])
        except EngineError as error:
            return _failed(str(error))
        if not question.parts:
            return _failed(NOTHING)
        with self._lock:
            return self._begin(len(self._turns), _Turn(question), settings)

    def retry(self, settings: GenerationSettings | None = None) -> Reply:
        """Answer the last question again; the answer it had is dropped."""
        with self._lock:
            if not self._turns:
                return _failed(NOTHING)
            return self._begin(len(self._turns) - 1, _Turn(self._turns[-1].question), settings)

    def edit(
        self,
        index: int,
        text: str,
        files: Iterable[Source] | None = None,
        settings: GenerationSettings | None = None,
    ) -> Reply:
        """Ask the question at `messages[index]` in other words; what came after it is dropped.

        `files` None keeps the files of the question.
        """
        with self._lock:
            messages = self.messages
            if not isinstance(index, int) or not 0 <= index < len(messages) or messages[index].role != "user":
                return _failed(f"Message {index} is not a question of this chat. Choose one of your own messages.")
            place = sum(message.role == "user" for message in messages[:index])
            try:
                media = messages[index].media if files is None else [media_part(file) for file in _sources(files)]
                question = user(_text(text), media)
            except EngineError as error:
                return _failed(str(error))
            if not question.parts:
                return _failed(NOTHING)
            return self._begin(place, _Turn(question), settings)

    def continue_(self, settings: GenerationSettings | None = None) -> Reply:
        """Go on with the last answer where it was cut; the reply's text is only what is new."""
        with self._lock:
            last = self._turns[-1] if self._turns else None
            if last is not None and last.reply is not None:
                last.reply.stop()
            if last is None or not last.text.strip():
                return _failed("There is no answer to go on with. Ask a question first.")
            return self._begin(len(self._turns) - 1, _Turn(last.question, before=last.text), settings)

    def undo(self) -> Message | None:
        """Take the last question and its answer away; returns the question, or None when there is none."""
        with self._lock:
            if not self._turns:
                return None
            turn = self._turns.pop()
        if turn.reply is not None:
            turn.reply.stop()
        return turn.question

    def reset(self) -> None:
        """Forget everything but system messages that the session was made with."""
        self.stop()
        with self._lock:
            self._turns.clear()

    def stop(self) -> None:
        """Stop the round that runs, if one does."""
        with self._lock:
            replies = [turn.reply for turn in self._turns[-1:] if turn.reply is not None]
        for reply in replies:
            reply.stop()

    def _begin(self, place: int, turn: _Turn, settings: GenerationSettings | None) -> Reply:
        if not isinstance(settings or GenerationSettings(), GenerationSettings):
            return _failed(f"settings is of the type {type(settings).__name__}; it must be a GenerationSettings.")
        self.stop()
        del self._turns[place:]
        self._turns.append(turn)
        round_ = Round()
        turn.reply = round_.reply
        settings = settings or GenerationSettings()
        self.model.worker.submit(round_, lambda: self._work(turn, settings, round_))
        return turn.reply

    def _work(
        self, turn: _Turn, settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Reason]:
        round_.status("Thinking")
        turn.question = yield from take_in(turn.question, round_)
        return (yield from self.model.answer(self.processor, self._prompt_messages(turn, settings), settings, round_))

    def _prompt_messages(self, turn: _Turn, settings: GenerationSettings) -> list[Message]:
        """What the model sees: instructions, answered turns, the question, and the text to go on from."""
        with self._lock:
            turns = list(self._turns)
        messages = [system(settings.system_prompt)] if settings.system_prompt else list(self._opening)
        for earlier in turns:
            if earlier is turn:
                break
            if earlier.text.strip():
                messages += earlier.messages
        messages.append(turn.question)
        if turn.before:
            messages.append(assistant(turn.before))
        return messages


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"The question is of the type {type(text).__name__}; it must be a text.")
    return text


def _sources(files: Iterable[Source]) -> list[Source]:
    if files is None:
        return []
    if isinstance(files, (str, bytes, bytearray, memoryview)) or not isinstance(files, Iterable):
        return [files]
    return list(files)


def _failed(sentence: str) -> Reply:
    round_ = Round()
    round_.end("failed", sentence)
    return round_.reply
