"""`open_image`: the only reader of pictures. A file becomes one upright RGB picture, or one plain sentence.

Limits are looked at before anything is decoded, since a file of 20 KB can unfold to a gigabyte. What a file is, is
decided by its content, never by its name.
"""

from __future__ import annotations

import io
import os
import warnings
from typing import TYPE_CHECKING

from ..errors import InputError
from ..messages import Source

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FILE_BYTES = 50 * 1024 * 1024
"""Largest picture file that is read."""
MAX_PIXELS = 64_000_000
"""Largest picture that is decoded: above any common phone camera's default, and 192 MB as RGB."""


def source_name(source: Source) -> str:
    """The name that people know a source by: the file's name, or "picture" for bytes and PIL images."""
    if isinstance(source, (str, os.PathLike)):
        return os.path.basename(os.fspath(source).rstrip("/\\")) or os.fspath(source)
    filename = getattr(source, "filename", "")
    return os.path.basename(filename) if filename and isinstance(filename, str) else "picture"


def read_file(source: Source, name: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a file, or of bytes as they are.

    Raises:
        InputError: no such file, a folder, empty, unreadable, above `limit` bytes, or a web address.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    elif isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if path.startswith(("http://", "https://", "ftp://", "data:")):
            raise InputError(f"{name} is a web address, and those are not opened here. Save the file and add it.")
        if os.path.isdir(path):
            raise InputError(f"{name} is a folder. Add the pictures inside it.")
        try:
            if not os.path.isfile(path):
                raise FileNotFoundError
            if os.path.getsize(path) > limit:
                raise InputError(_too_large(name, os.path.getsize(path), limit))
            with open(path, "rb") as file:
                data = file.read(limit + 1)
        except (FileNotFoundError, ValueError):  # ValueError: a NUL character in the path
            raise InputError(f"{name} is not there any more. Add it again.") from None
        except OSError as error:
            raise InputError(f"{name} can't be read ({error.strerror}). Check the file and add it again.") from None
    else:
        raise InputError(f"{name} is a {type(source).__name__}; give a path, bytes or a PIL image.")
    if not data:
        raise InputError(f"{name} is empty (0 bytes). Save it again and add it once more.")
    if len(data) > limit:
        raise InputError(_too_large(name, len(data), limit))
    return data


def open_image(source: Source, name: str | None = None) -> Image:
    """Open a picture: RGB, upright by its EXIF tag, transparent parts over white.

    Args:
        source: a path, the bytes of a file, or a PIL image (which is not changed).
        name: what to call it in an error; the file's own name by default.

    Raises:
        InputError: the file is missing, empty, a folder, no picture, broken, or above `MAX_FILE_BYTES` or
            `MAX_PIXELS`; the text names the file and says what to do.
    """
    from PIL import Image, UnidentifiedImageError

    name = name or source_name(source)
    if isinstance(source, Image.Image):
        picture = source
    else:
        data = read_file(source, name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # our own limit is below Pillow's warning
                picture = Image.open(io.BytesIO(data))
        except Image.DecompressionBombError:
            raise InputError(_too_many_pixels(name)) from None
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
            raise InputError(f"{name} is not a picture that can be read{_guess(data)}."
                             " Save it as PNG or JPEG and add it again.") from None
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise InputError(_too_many_pixels(name, width, height))
    if not width or not height:
        raise InputError(f"{name} has no pixels ({width} x {height}). Save it again and add it once more.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _to_rgb(_upright(picture))
    except MemoryError:
        raise
    except Exception as error:  # each of Pillow's decoders has its own way to say that a file is broken
        raise InputError(f"{name} is damaged or cut off ({type(error).__name__})."
                         " Save or copy it again and add it once more.") from None


def _upright(picture: Image) -> Image:
    from PIL import ImageOps

    picture.load()
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # a broken EXIF block says nothing about the picture itself
        return picture


def _to_rgb(picture: Image) -> Image:
    from PIL import Image

    if picture.mode.startswith("I;16"):
        picture = picture.convert("I")
    if picture.mode in ("I", "F"):
        picture = _to_eight_bits(picture)
    if picture.mode == "LAB":
        from PIL import ImageCms

        to_rgb = ImageCms.buildTransform(ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB")
        picture = ImageCms.applyTransform(picture, to_rgb)
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture).convert("RGB")
    # A new object also when the mode fits: callers may keep or change it without touching the source.
    return picture.convert("RGB") if picture.mode != "RGB" else picture.copy()


def _to_eight_bits(picture: Image) -> Image:
    """Scale 16-bit, 32-bit and float grey to 0..255 by the range that the values lie in."""
    import numpy as np
    from PIL import Image

    values = np.nan_to_num(np.asarray(picture, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if picture.mode == "I" and low >= 0 and high <= 65535:
        low, high = 0.0, 255.0 if high <= 255 else 65535.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 1.0 if high <= 1 else 255.0
    scaled = (values - low) * (255.0 / (high - low)) if high > low else values * 0
    return Image.fromarray(scaled.round().clip(0, 255).astype(np.uint8))


def _guess(data: bytes) -> str:
    """What the file looks like instead, in brackets, where the first bytes tell."""
    head = data[:512].lstrip().lower()
    if b"<svg" in head:
        return " (it looks like an SVG drawing)"
    if data[4:12] in (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftypmsf1", b"ftyphevc"):
        return " (it looks like an HEIC photo)"
    if data[:5] == b"%PDF-":
        return " (it looks like a PDF)"
    if b"\0" not in data[:512]:
        return " (it looks like text)"
    return ""


def _too_large(name: str, size: int, limit: int) -> str:
    return f"{name} has {size / 2**20:.0f} MB; the limit is {limit / 2**20:.0f} MB. Make it smaller and add it again."


def _too_many_pixels(name: str, width: int = 0, height: int = 0) -> str:
    size = f"has {width} x {height} pixels" if width else "has far too many pixels"
    return f"{name} {size}; the limit is {MAX_PIXELS / 1e6:.0f} million. Make it smaller and add it again."
