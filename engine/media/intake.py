"""Files of a question are taken in once: named, told apart by content, read and checked.

A file that can't be used is told in a sentence and left out; the rest of the question goes on. After this the parts
of a message are known to be good and carry the hash of their content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator
from dataclasses import replace

from ..errors import InputError
from ..messages import ImagePart, MediaPart, Message, Source, TextPart, VideoPart
from ..rounds import Round
from .images import open_image, read_file, source_name
from .videos import sample_frames

MAX_FILES = 20
"""Most files in one question."""


def media_part(source: Source) -> MediaPart:
    """A part for a file: a video or a picture, told by its first bytes. Nothing is checked yet."""
    kind = VideoPart if _is_video(_head(source)) else ImagePart
    return kind(source, source_name(source))


def take_in(message: Message, round_: Round) -> Generator[None, None, Message]:
    """Read and check the media of a message, a step a file; returns the message with the good ones.

    Raises:
        InputError: none of several files, or the only one, can be used, or there are more than `MAX_FILES`.
    """
    media = message.media
    if len(media) > MAX_FILES:
        raise InputError(f"{len(media)} files are too many for one question; the limit is {MAX_FILES}. Remove some.")
    faults: list[str] = []
    parts = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append(part)
            continue
        if not part.digest:
            round_.status(f"Opening {part.name}")
            yield
            try:
                part = _checked(part)
            except InputError as error:
                faults.append(str(error))
                continue
        parts.append(part)
    if media and len(faults) == len(media):
        raise InputError(" ".join(faults))
    for fault in faults:
        round_.status(fault, notice=True)
    return replace(message, parts=tuple(parts))


def _checked(part: MediaPart) -> MediaPart:
    if isinstance(part, VideoPart):
        sample_frames(part.source)
        return replace(part, digest=hashlib.sha256(read_file(part.source, part.name)).hexdigest())
    picture = open_image(part.source, part.name)
    if isinstance(part.source, (str, os.PathLike, bytes)):
        content = read_file(part.source, part.name)
    else:
        content = repr(picture.size).encode() + picture.tobytes()
    return replace(part, digest=hashlib.sha256(content).hexdigest())


def _head(source: Source) -> bytes:
    if not isinstance(source, (str, os.PathLike)):
        return source[:64] if isinstance(source, bytes) else b""
    try:
        with open(source, "rb") as file:
            return file.read(64)
    except (OSError, ValueError):
        return b""


def _is_video(head: bytes) -> bool:
    if head[4:8] == b"ftyp":
        return head[8:11] not in (b"hei", b"hev", b"avi", b"mif", b"msf")  # heic, avif: pictures in the same box
    return (
        head[:4] == b"\x1aE\xdf\xa3"  # Matroska and WebM
        or (head[:4] == b"RIFF" and head[8:12] == b"AVI ")
        or head[4:8] in (b"moov", b"mdat", b"wide")  # old QuickTime
        or head[:3] == b"FLV"
    )
