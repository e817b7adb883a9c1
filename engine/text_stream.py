"""Token ids in, clean text out: whole characters only, end markers and stop strings never shown.

Knows a `tokenizers.Tokenizer` and nothing of models, rounds or pages. The decoding itself is
`tokenizers.decoders.DecodeStream`'s (constant work a token). Added here: what to do with the tokens
it sits on (it drops them silently at the end), its broken state, and stop strings that come in pieces.
"""

from __future__ import annotations

import re
from typing import Collection, Sequence

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in a byte-level vocabulary (source: GPT-2's encoder)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def _whole_characters(data: bytes) -> str:
    """`data` decoded without the bytes at its end that make no whole character."""
    last = data.decode(errors="ignore")[-1:].encode()
    # UTF-8 finds its own feet: wherever a character's bytes stand, they are that character.
    return data[: data.rfind(last) + len(last)].decode(errors="replace") if last else ""


class TextStream:
    """Turns the tokens of one answer into text that may be shown, piece by piece.

    tokenizer: a `tokenizers.Tokenizer`. end_ids: the token ids that end the answer; the text form of each
    is a stop string too, for models that spell their end marker in ordinary tokens. stop: further strings
    that end the answer; empty ones are ignored. Where two overlap, the one that is whole first counts.

    The pieces and `flush()` joined are the full decode of the ids (special tokens skipped), up to the first
    stop string and without a half character at the end. At most the longest proper prefix of a stop
    string is held back. The rule for the tail: bytes that do not make a whole character are dropped;
    a U+FFFD that the model really wrote (bytes EF BF BD) is kept. In mid-text, where more text follows, bytes
    that are no character stay the U+FFFD of the full decode. One exception, with `<0xNN>` byte tokens: there the
    full decode spoils a whole run of bytes for one bad byte; characters shown before the bad byte came stay shown.
    """

    def __init__(self, tokenizer: Tokenizer, end_ids: Collection[int], stop: Sequence[str] = ()):
        self._tokenizer = tokenizer
        self._end_ids = frozenset(end_ids)
        markers = [tokenizer.decode([i], skip_special_tokens=False) for i in self._end_ids]
        self._stops = {text for text in (*stop, *(m for m in markers if "\ufffd" not in m)) if text}
        self._longest = max(map(len, self._stops), default=0)
        self._special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        # A decoder shows its make-up only in its pickled state, a short JSON text.
        self._byte_level = b'"ByteLevel"' in (tokenizer.decoder.__getstate__() if tokenizer.decoder else b"")
        self._stream: DecodeStream | None = DecodeStream(skip_special_tokens=True)
        self._pending: list[int] = []  # ids that DecodeStream has taken without giving their text
        self._ahead = ""  # whole characters of the pending ids that were passed on already
        self._anchor: list[int] = []  # the last id decoded as text: tells a decoder that this is no beginning
        self._held = ""
        self._done = False

    @property
    def done(self) -> bool:
        """True after an end id or a whole stop string (not after `flush`)."""
        return self._done

    @property
    def held(self) -> str:
        """Text not shown because it may become a stop string: show it if the round is cut right now.

        Equals what `flush()` would return. Never holds half a character.
        """
        return self._held

    def push(self, token_id: int) -> str:
        """The text that may be shown now that `token_id` has come; "" is common, and always after the end."""
        if self._stream is None:
            return ""
        if token_id in self._end_ids:
            self._done = True
            return self.flush()
        return self._release(self._decode(token_id))

    def flush(self) -> str:
        """What is held, at the end of the answer. For the tail's rule see the class. Later pushes return ""."""
        text = self._held
        self._close()
        return text

    def _close(self) -> None:
        self._stream, self._pending, self._ahead, self._held = None, [], "", ""

    def _release(self, text: str) -> str:
        """`text`, after what was held, up to a stop string or to what may become one."""
        text = self._held + text
        found = [(text.find(stop) + len(stop), text.find(stop)) for stop in self._stops if stop in text]
        if found:
            self._done = True
            self._close()
            return text[: min(found)[1]]
        lengths = range(min(len(text), self._longest - 1), 0, -1)
        keep = next((n for n in lengths if any(stop.startswith(text[-n:]) for stop in self._stops)), 0)
        shown, self._held = text[: len(text) - keep], text[len(text) - keep:]
        return shown

    def _decode(self, token_id: int) -> str:
        """The new whole characters, also those that DecodeStream still sits on (it waits after any U+FFFD)."""
        self._pending.append(token_id)
        try:
            text = self._step(token_id)
        except Exception:  # DecodeStream raises a bare Exception and stays broken from then on
            text = self._recover()
        if text:
            text, self._ahead = text[len(self._ahead):], ""
        if self._pending:
            whole = self._whole()
            text, self._ahead = text + whole[len(self._ahead):], whole
        return text

    def _step(self, token_id: int) -> str:
        text = self._stream.step(self._tokenizer, token_id) or ""
        if text:
            self._pending.clear()
            if not self._byte_level and self._byte(token_id) is None:
                self._anchor = [token_id]
        return text

    def _recover(self) -> str:
        """A new DecodeStream, fed again with the ids whose text is still owed."""
        owed, self._pending, text = self._pending, [], ""
        self._stream = DecodeStream(ids=self._anchor, skip_special_tokens=True)
        for n, token_id in enumerate(owed):
            self._pending.append(token_id)
            try:
                text += self._step(token_id)
            except Exception:  # broken afresh: the rest stays pending, whose text comes without DecodeStream
                self._pending += owed[n + 1 :]
                break
        return text

    def _whole(self) -> str:
        """The text of the pending ids without the bytes at their end that make no whole character."""
        ids = [i for i in self._pending if i not in self._special and self._tokenizer.id_to_token(i) is not None]
        if self._byte_level:
            return _whole_characters(b"".join(map(self._bytes, ids)))
        start = len(ids)
        while start and self._byte(ids[start - 1]) is not None:
            start -= 1
        run = _whole_characters(bytes(map(self._byte, ids[start:]))).encode()
        return self._text(ids[:start] + [self._tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in run])

    def _text(self, ids: list[int]) -> str:
        before = self._tokenizer.decode(self._anchor)
        return self._tokenizer.decode(self._anchor + ids)[len(before):]

    def _bytes(self, token_id: int) -> bytes:
        """The bytes of a byte-level token; an added token outside the byte alphabet stands for itself."""
        token = self._tokenizer.id_to_token(token_id)
        return bytes(_BYTE_OF[c] for c in token) if all(c in _BYTE_OF for c in token) else token.encode()

    def _byte(self, token_id: int) -> int | None:
        match = _BYTE_TOKEN.fullmatch(self._tokenizer.id_to_token(token_id) or "")
        return int(match[1], 16) if match else None
