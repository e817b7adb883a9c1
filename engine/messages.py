"""Messages: a role and an ordered list of parts. Pure values.

Text and media stay in this one list until the prompt is built, so that a picture never loses its place and a user's
words are never searched for markers. Nothing here opens a file; `Source` says what may stand for one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Union

from .errors import InputError

Source = Union[str, os.PathLike, bytes, "object"]
"""A file's path, its bytes, or a PIL image."""


@dataclass(frozen=True)
class TextPart:
    """Words, exactly as written."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """A picture: where it comes from, the name that people know it by, and, once read, the hash of its content."""

    source: Source = field(repr=False)
    name: str
    digest: str = ""


@dataclass(frozen=True)
class VideoPart:
    """A video, or the piece of it from `start` to `end` seconds; otherwise as `ImagePart`."""

    source: Source = field(repr=False)
    name: str
    digest: str = ""
    start: float | None = None
    end: float | None = None


MediaPart = Union[ImagePart, VideoPart]
Part = Union[TextPart, ImagePart, VideoPart]
Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One message of a conversation: `role` and its parts in reading order."""

    role: Role
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if self.role not in ("system", "user", "assistant"):
            raise InputError(f"role is {self.role!r}; it must be system, user or assistant.")

    @property
    def text(self) -> str:
        """The words of the message, parts joined by newlines."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The pictures and videos of the message, in order."""
        return tuple(part for part in self.parts if not isinstance(part, TextPart))


def user(text: str = "", media: Iterable[MediaPart] = ()) -> Message:
    """A user's message: media first, as people attach them, then the words (left out when there are none)."""
    words = (TextPart(text),) if text.strip() else ()
    return Message("user", (*media, *words))


def assistant(text: str) -> Message:
    """An answer."""
    return Message("assistant", (TextPart(text),))


def system(text: str) -> Message:
    """Instructions that stand before the conversation."""
    return Message("system", (TextPart(text),))
