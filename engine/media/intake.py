"""Files of a question are taken in once: named, told apart by content, read and checked.

A file that can't be used is told in a sentence and left out; the rest of the question goes on. After this the parts
of a message are known to be good and carry the hash of their content. Frames of a video are sampled later, by who
builds the prompt and knows its `MediaSettings`; here one frame shows that it can be read.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
from collections.abc import Generator
from dataclasses import replace

from ..errors import InputError
from ..messages import ImagePart, MediaPart, Message, Source, TextPart, VideoPart
from ..rounds import Round
from .images import read_file, read_image, source_name
from .kinds import HEAD_BYTES, kind_of
from .limits import media_limits
from .videos import sample_steps

HASH_STEP = 64 * 2**20
"""Bytes of a video that are hashed between two looks at the stop flag."""


def media_part(source: Source) -> MediaPart:
    """A part for a file that a user attached: a video or a picture, told by its first bytes. Nothing is checked yet.

    A GIF, WebP, PNG or AVIF that moves is a picture here, since that is what people mean by such a file nearly
    always: its first frame is looked at, and the user is told. As a `VideoPart` all of it is looked at. Bytes that fit
    no kind are called a video or a picture after their name, only so that the sentence about them fits.
    """
    name = source_name(source)
    kind = kind_of(_head(source))
    if kind is None and (mimetypes.guess_type(name.lower())[0] or "").startswith("video/"):
        kind = "video"
    return VideoPart(source, name) if kind == "video" else ImagePart(source, name)


def take_in(message: Message, round_: Round) -> Generator[None, None, Message]:
    """Read and check the media of a message in steps; returns the message with the good ones.

    What is left out of a picture is told at once; notices about a video come with its frames.

    Raises:
        InputError: none of several files, or the only one, can be used, or there are more than `MediaLimits.files`.
    """
    media, limit = message.media, media_limits().files
    if len(media) > limit:
        raise InputError(f"{len(media)} files are too many for one question; the limit is {limit}. Remove some.")
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
                part = yield from _checked(part, round_)
            except InputError as error:
                faults.append(str(error))
                continue
        parts.append(part)
    if media and len(faults) == len(media):
        raise InputError(" ".join(faults))
    for fault in faults:
        round_.status(fault, notice=True)
    return replace(message, parts=tuple(parts))


def _checked(part: MediaPart, round_: Round) -> Generator[None, None, MediaPart]:
    if isinstance(part, VideoPart):
        yield from sample_steps(part.source, max_frames=1, name=part.name)
        return replace(part, digest=(yield from _video_digest(part)))
    source = part.source
    if isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)):
        source = read_file(source, part.name)
    picture, notices = read_image(source, part.name)
    for notice in notices:
        round_.status(notice, notice=True)
    content = source if isinstance(source, bytes) else repr(picture.size).encode() + picture.tobytes()
    return replace(part, digest=hashlib.sha256(content).hexdigest())


def _video_digest(part: VideoPart) -> Generator[None, None, str]:
    digest = hashlib.sha256()
    if isinstance(part.source, (bytes, bytearray, memoryview)):
        digest.update(part.source)
        return digest.hexdigest()
    if not isinstance(part.source, (str, os.PathLike)):
        frames = yield from sample_steps(part.source, fps=60, max_frames=4096, name=part.name)
        for picture, time in zip(frames.images, frames.times):
            digest.update(repr((time, picture.size)).encode() + picture.tobytes())
        return digest.hexdigest()
    try:
        with open(part.source, "rb") as file:
            while piece := file.read(HASH_STEP):
                digest.update(piece)
                yield
    except OSError as error:
        raise InputError(f"{part.name} can't be read ({error.strerror}). Check the file and add it again.") from None
    return digest.hexdigest()


def _head(source: Source) -> bytes:
    if not isinstance(source, (str, os.PathLike)):
        return bytes(source[:HEAD_BYTES]) if isinstance(source, (bytes, bytearray, memoryview)) else b""
    try:
        if not os.path.isfile(source):  # opening a pipe would wait for its other end
            return b""
        with open(source, "rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return b""
