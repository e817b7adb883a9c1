"""Any PIL image becomes upright eight-bit RGB with the colours that a person sees: turned as its EXIF tag says,
transparent parts over white, 16-bit and float grey scaled instead of cut off. Knows nothing of files and limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def to_rgb(picture: Image) -> Image:
    """A new RGB image; `picture` itself is decoded (as Pillow does on first use) but not changed.

    Raises whatever Pillow's decoder raises when the file is broken.
    """
    from PIL import Image

    key = _transparent_value(picture)
    picture.load()
    picture = _upright(picture)
    if picture.mode == "La":
        picture = picture.convert("LA")
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        picture = _to_eight_bits(picture, key)
    elif picture.mode == "LAB":
        from PIL import ImageCms

        to_rgb_ = ImageCms.buildTransform(ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), "LAB", "RGB")
        picture = ImageCms.applyTransform(picture, to_rgb_)
    elif key is not None and key != picture.info.get("transparency"):
        picture = picture.copy()
        picture.info["transparency"] = key
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(white, picture).convert("RGB")
    # A new object also when the mode fits: callers may keep or change it without touching the source.
    return picture.convert("RGB") if picture.mode != "RGB" else picture.copy()


def _upright(picture: Image) -> Image:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # a broken EXIF block says nothing about the picture itself
        return picture


def _transparent_value(picture: Image) -> int | tuple[int, ...] | bytes | None:
    """The colour that counts as transparent, in the values that the decoded picture will have.

    A PNG's tRNS chunk is written in the depth of the file. Pillow scales 2- and 4-bit grey up and 16-bit colour down,
    but not this value, so nothing would match it.
    """
    key = picture.info.get("transparency")
    raw_mode = picture.tile[0].args if getattr(picture, "tile", None) and picture.format == "PNG" else None
    if raw_mode in ("L;2", "L;4") and isinstance(key, int):
        return key * {"L;2": 85, "L;4": 17}[raw_mode]
    if raw_mode == "RGB;16B" and isinstance(key, tuple):
        return tuple(value >> 8 for value in key)
    return key


def _to_eight_bits(picture: Image, key: object) -> Image:
    """Scale 16-bit, 32-bit and float grey to 0..255 by the range that the values lie in; LA where `key` is set."""
    import numpy as np
    from PIL import Image

    if picture.mode.startswith("I;16"):
        picture = picture.convert("I")
    values = np.asarray(picture, dtype=np.float32)
    whole = picture.mode == "I"
    clear = values == key if isinstance(key, int) else None
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if whole and low >= 0 and high <= 65535:
        low, high = 0.0, 255.0 if high <= 255 else 65535.0
    elif low >= 0 and high <= 255:
        low, high = 0.0, 1.0 if high <= 1 else 255.0
    scaled = (values - low) * np.float32(255.0 / (high - low)) if high > low else values * 0
    grey = Image.fromarray(scaled.round().clip(0, 255).astype(np.uint8))
    if clear is not None:
        grey.putalpha(Image.fromarray(np.where(clear, 0, 255).astype(np.uint8)))
    return grey
