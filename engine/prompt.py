"""The one prompt builder: messages become token ids, within the context.

A model says how each part of a message reads (`Piece`) and gives its chat template. Words that people or files wrote
are encoded with special tokens split, so a typed `<|im_end|>` stays eight ordinary tokens and can never end a turn;
only the template's own text may become special tokens. Nothing here knows a model family, a file or torch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Piece:
    """Text at one place of a message; `markup` is True only for the model's own special tokens."""

    text: str
    markup: bool = False

    def __post_init__(self) -> None:
        # Half of a surrogate pair, as a broken paste brings it, has no UTF-8 form and stops any tokenizer.
        object.__setattr__(self, "text", self.text.encode("utf-8", "replace").decode())


@dataclass(frozen=True)
class Turn:
    """A message as the model reads it: its role and pieces."""

    role: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Prompt:
    """What goes into the model: token ids, and how many of the oldest messages were left out to make room."""

    ids: tuple[int, ...]
    dropped: int = 0
    newly_dropped: bool = False


class PromptBuilder:
    """Renders turns by a chat template and counts them against the context.

    Args:
        tokenizer: a fast tokenizer; a copy is kept that splits special tokens in words.
        template: gives the prompt's text for a list of {"role", "content"}, up to the place where the answer starts;
            with `open_answer` the last message is an answer to go on with and is left open.
        context: tokens that prompt and answer may have together.
    """

    def __init__(self, tokenizer: Tokenizer, template: Callable[[list[dict], bool], str], context: int) -> None:
        self._markup = tokenizer
        self._words = type(tokenizer).from_str(tokenizer.to_str())
        self._words.encode_special_tokens = True
        self._template = template
        self.context = context

    def build(self, turns: Sequence[Turn], max_new_tokens: int) -> Prompt:
        """The prompt for `turns`; whole oldest turns go, down to half of the room at once, when they don't fit.

        A quarter of the context at most is kept free for the answer. Which turns go depends on the turns alone, so
        the start of the prompt stays the same from one question to the next as long as it can.

        Raises:
            InputError: the last question alone doesn't fit; the text gives its tokens and the limit.
        """
        room = self.context - min(max_new_tokens, self.context // 4)
        fixed = [turn for turn in turns if turn.role == "system"]
        rest = [turn for turn in turns if turn.role != "system"]
        starts = [place for place, turn in enumerate(rest) if turn.role == "user"]
        costs = [self._cost(turn) for turn in rest]
        base = sum(map(self._cost, fixed))
        first, newly = 0, False
        for start in starts:  # as it was when each question was asked, up to the one that is asked now
            end = len(rest) if start == starts[-1] else start + 1
            newly = base + sum(costs[first:end]) > room
            if newly:
                kept = [s for s in starts if first < s <= start and base + sum(costs[s:end]) <= room // 2]
                first = kept[0] if kept else start
        ids = self._encode([*fixed, *rest[first:]])
        if len(ids) > room:
            raise InputError(
                f"The question needs {len(ids):,} tokens and the model has room for {room:,}."
                " Shorten the text or use fewer pictures."
            )
        return Prompt(tuple(ids), dropped=first, newly_dropped=newly and first > 0)

    def _cost(self, turn: Turn) -> int:
        """Tokens of one turn, a few too many rather than too few: the template's own are counted as 8."""
        return 8 + sum(len(self._tokenizer(piece).encode(piece.text, add_special_tokens=False)) for piece in turn.pieces)

    def _tokenizer(self, piece: Piece) -> Tokenizer:
        return self._markup if piece.markup else self._words

    def _encode(self, turns: Sequence[Turn]) -> list[int]:
        # Each piece is put into the template as a mark that nobody can have typed, then the marks are exchanged for
        # the pieces' own tokens; the template sees no word of the user and can't trip over one.
        pieces: dict[str, Piece] = {}
        contents = []
        for turn in turns:
            marks = []
            for piece in turn.pieces:
                mark = f"\ue000{secrets.token_hex(8)}\ue001"
                pieces[mark] = piece
                marks.append(mark)
            contents.append({"role": turn.role, "content": "".join(marks)})
        rest = self._template(contents, turns[-1].role == "assistant")
        ids: list[int] = []
        for mark, piece in pieces.items():
            before, found, rest = rest.partition(mark)
            if not found:
                raise InputError("The model's chat template dropped a part of the conversation. Start a new chat.")
            ids += self._markup.encode(before, add_special_tokens=False).ids
            ids += self._tokenizer(piece).encode(piece.text, add_special_tokens=False).ids
        return ids + self._markup.encode(rest, add_special_tokens=False).ids
