"""What a file is, told by its first bytes and never by its name: a picture, a video, or what it looks like instead.

Nothing is decoded here, so the answer is only which reader to ask; the reader finds out whether the file is whole.
"""

from __future__ import annotations

from typing import Literal, Optional

HEAD_BYTES = 512
"""How many of the first bytes are looked at."""

Kind = Optional[Literal["picture", "video"]]

_PICTURE_BRANDS = (b"hei", b"hev", b"avi", b"mif", b"msf")
"""The "ftyp" brands of HEIC and AVIF, which are pictures in the box that MP4 made known."""
_PICTURE_STARTS = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*", b"8BPS", b"\0\0\1\0", b"qoif",
    b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51", b"DDS ", b"icns", b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"P7",
)  # fmt: skip
_VIDEO_STARTS = (
    b"\x1aE\xdf\xa3",  # Matroska and WebM
    b"FLV",
    b"OggS",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",  # WMV and ASF
    b"\0\0\1\xba",  # MPEG program stream
    b"\0\0\1\xb3",  # MPEG video
    b"\x06\x0e\x2b\x34",  # MXF
)
_QUICKTIME_ATOMS = (b"moov", b"mdat", b"wide", b"free", b"skip")


def kind_of(head: bytes) -> Kind:
    """Picture or video, by the first `HEAD_BYTES` bytes; None where they fit neither."""
    if head[4:8] == b"ftyp":
        return "picture" if head[8:11] in _PICTURE_BRANDS else "video"
    if head[:4] == b"RIFF":
        return {b"WEBP": "picture", b"AVI ": "video"}.get(head[8:12])
    if head.startswith(_VIDEO_STARTS) or head[4:8] in _QUICKTIME_ATOMS:
        return "video"
    for packet in (188, 192):  # MPEG transport stream, and the one of cameras with 4 bytes before each packet
        first = packet - 188
        if head[first : first + 1] == head[first + packet : first + packet + 1] == b"\x47":
            return "video"
    return "picture" if head.startswith(_PICTURE_STARTS) else None


def looks_like(head: bytes) -> str:
    """What a file that no reader knows looks like, in brackets for the end of a sentence; "" where nothing tells."""
    text = head[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in text:
        return " (it looks like an SVG drawing)"
    if text.startswith(b"%pdf-"):
        return " (it looks like a PDF)"
    if text.startswith((b"%!ps", b"\xc5\xd0\xd3\xc6")):
        return " (it looks like an EPS drawing)"
    if text.startswith((b"<!doctype", b"<html")):
        return " (it looks like a web page)"
    if head.startswith(b"PK\3\4"):
        return " (it looks like a ZIP archive or an office document)"
    if head.startswith((b"ID3", b"fLaC", b"\xff\xfb", b"\xff\xf1")) or (head[:4], head[8:12]) == (b"RIFF", b"WAVE"):
        return " (it looks like sound)"
    if head[:HEAD_BYTES] and b"\0" not in head[:HEAD_BYTES]:
        return " (it looks like text)"
    return ""
