"""`open_image`: the only reader of pictures. A file becomes one upright RGB picture, or one plain sentence.

Limits are looked at before anything is decoded, since a file of 20 KB can unfold to a gigabyte. What a file is, is
decided by its content, never by its name. Moving pictures are read by `animations.py`; here they are their first frame.
"""

from __future__ import annotations

import functools
import io
import os
import warnings
from typing import TYPE_CHECKING

from ..errors import InputError
from ..messages import Source
from .kinds import HEAD_BYTES, kind_of, looks_like
from .limits import media_limits
from .right_colours import to_rgb

if TYPE_CHECKING:
    from PIL.Image import Image

_FORMATS = {
    "AVIF", "BMP", "CUR", "DCX", "DDS", "DIB", "GIF", "HEIF", "ICNS", "ICO", "IM", "JPEG", "JPEG2000", "MPO", "PCX",
    "PNG", "PPM", "PSD", "QOI", "SGI", "SUN", "TGA", "TIFF", "WEBP", "XBM", "XPM",
}  # fmt: skip
"""Pillow's readers that are let near a user's file: EPS would start Ghostscript, and the stubs (WMF, MPEG, HDF5, ...)
open files that they can't decode."""
_MOVING = ("AVIF", "GIF", "PNG", "WEBP")


LONGEST_NAME = 100


def source_name(source: Source, unnamed: str = "picture") -> str:
    """The name that people know a source by: the file's name, or `unnamed` for bytes and PIL images."""
    path = source if isinstance(source, (str, os.PathLike)) else getattr(source, "filename", "")
    if not isinstance(path, (str, os.PathLike)):
        return unnamed
    path = os.fsdecode(path)
    name = os.path.basename(path.rstrip("/\\")) or path
    # A name stands in sentences, on terminals too: no control characters, no half characters, not without end.
    name = "".join(letter if letter.isprintable() else "?" for letter in name)
    return (name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…") or unnamed


def checked_path(source: str | os.PathLike, name: str, limit: int) -> str:
    """The path of a file that is there and has from 1 to `limit` bytes.

    Raises:
        InputError: no such file, a folder, empty, above `limit` bytes, or a web address.
    """
    path = os.fsdecode(source)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if path.lower().startswith(("http://", "https://", "ftp://", "data:")):
        shown = name if len(name) <= 60 else name[:60] + "..."
        raise InputError(f"{shown} is a web address, and those are not opened here. Save the file and add it.")
    try:
        if os.path.isdir(path):
            raise InputError(f"{name} is a folder. Add the files inside it.")
        if not os.path.isfile(path):  # pipes and devices too: reading them may never end
            raise FileNotFoundError
        size = os.path.getsize(path)
    except (FileNotFoundError, ValueError):  # ValueError: a NUL character in the path
        raise InputError(f"{name} can't be found. Check its name, or add the file again.") from None
    except OSError as error:
        raise _unreadable(name, error) from None
    _check_size(name, size, limit)
    return path


def read_file(source: Source, name: str, limit: int | None = None) -> bytes:
    """The bytes of a file, or of bytes as they are; `limit` is in bytes, by default the one for pictures.

    Raises:
        InputError: as `checked_path`, or the file can't be read.
    """
    limit = limit or media_limits().picture_bytes
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    elif isinstance(source, (str, os.PathLike)):
        try:
            with open(checked_path(source, name, limit), "rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise _unreadable(name, error) from None
    else:
        raise InputError(f"{name} is of the type {type(source).__name__}; give a path, bytes or a PIL image.")
    _check_size(name, len(data), limit)
    return data


def open_image(source: Source, name: str | None = None) -> Image:
    """Open a picture: RGB, upright by its EXIF tag, transparent parts over white.

    Args:
        source: a path, the bytes of a file, or a PIL image (which is not changed). Of a moving picture it is the
            first frame; of a PIL image the frame that it stands at, which is the first unless you moved it.
        name: what to call it in an error; the file's own name by default.

    Raises:
        InputError: the file is missing, empty, a folder, no picture, broken, or above the `picture_bytes` or `pixels`
            of `MediaLimits`; the text names the file and says what to do.
    """
    return read_image(source, name)[0]


def read_image(source: Source, name: str | None = None) -> tuple[Image, tuple[str, ...]]:
    """`open_image`, with sentences for the user about what was left out: further frames, further pages."""
    name = name or source_name(source)
    picture = lazily_opened(source, name)
    try:
        return to_rgb(picture), _left_out(picture, name)
    except Exception as error:  # each of Pillow's decoders has its own way to say that a file is broken
        raise broken_picture(name, error) from None


def broken_picture(name: str, error: Exception) -> InputError:
    """The sentence for whatever a decoder raised."""
    if isinstance(error, MemoryError):
        return InputError(f"{name} needs more memory than there is. Make it smaller and add it again.")
    return InputError(f"{name} is damaged or cut off."
                      " Save or copy it again and add it once more.")  # fmt: skip


def lazily_opened(source: Source, name: str) -> Image:
    """A PIL image that is within the limits and not decoded yet.

    Raises:
        InputError: as `open_image`, but for damage that only decoding shows.
    """
    from PIL import Image

    if isinstance(source, Image.Image):
        picture = source
    else:
        data = read_file(source, name)
        try:
            picture = Image.open(io.BytesIO(data), formats=_formats())
        except Image.DecompressionBombError:
            raise InputError(_too_many_pixels(name)) from None
        except Exception:  # not only UnidentifiedImageError: mutated headers find many ways
            raise InputError(_no_picture(name, data[:HEAD_BYTES])) from None
    width, height = picture.size
    if width * height > media_limits().pixels:
        raise InputError(_too_many_pixels(name, width, height))
    if width < 1 or height < 1:
        raise InputError(f"{name} has no pixels ({width} x {height}). Save it again and add it once more.")
    return picture


@functools.cache
def _formats() -> tuple[str, ...]:
    from PIL import Image

    try:
        import pillow_heif

        pillow_heif.register_heif_opener()
    except ImportError:  # it has no wheels for some machines; the sentence for HEIC says what to do
        pass
    Image.init()
    # Pillow warns above its own limit; ours is lower, and looked at before anything is decoded.
    warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
    return tuple(sorted(_FORMATS & set(Image.OPEN)))


def moves(picture: Image) -> bool:
    """Whether a picture has frames that follow each other in time (and not pages, layers or a second lens)."""
    return picture.format in _MOVING and _goes_on(picture)


def _goes_on(picture: Image) -> bool:
    try:
        return bool(getattr(picture, "is_animated", False))
    except Exception:  # Pillow looks into the second frame, which may be broken while the first is good
        return False


def _left_out(picture: Image, name: str) -> tuple[str, ...]:
    if moves(picture):
        return (f"{name} moves; only its first frame is looked at.",)
    if picture.format == "TIFF" and _goes_on(picture):
        return (f"{name} has more than one page; only the first is looked at.",)
    return ()


def _check_size(name: str, size: int, limit: int) -> None:
    if not size:
        raise InputError(f"{name} is empty (0 bytes). Save it again and add it once more.")
    if size > limit:
        shown = [f"{bytes_ / 2**20:.3g}" if bytes_ < 2**20 else f"{bytes_ / 2**20:.0f}" for bytes_ in (size, limit)]
        raise InputError(f"{name} has {shown[0]} MB; the limit is {shown[1]} MB. Make it smaller and add it again.")


def _unreadable(name: str, error: OSError) -> InputError:
    return InputError(f"{name} can't be read ({error.strerror}). Check the file and add it again.")


def _no_picture(name: str, head: bytes) -> str:
    if kind_of(head) == "video":
        return f"{name} is a video, not a picture. Add it as a video."
    if head[4:8] == b"ftyp" and head[8:11] != b"avi" and "HEIF" not in _formats():
        return (f"{name} is an HEIC photo, and pillow-heif is not installed. Install it (pip install pillow-heif)"
                " or save the photo as JPEG.")
    if kind_of(head) == "picture":
        return f"{name} is damaged or cut off. Save or copy it again and add it once more."
    return f"{name} is not a picture that can be read{looks_like(head)}. Save it as PNG or JPEG and add it again."


def _too_many_pixels(name: str, width: int = 0, height: int = 0) -> str:
    size = f"has {width} x {height} pixels" if width else "has far too many pixels"
    return f"{name} {size}; the limit is {media_limits().pixels / 1e6:g} million. Make it smaller and add it again."
