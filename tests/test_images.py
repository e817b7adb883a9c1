"""`open_image`: every usual file becomes one upright RGB picture with right colours, or one sentence."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from engine.errors import InputError
from engine.media import open_image
from engine.media.intake import media_part
from engine.messages import ImagePart, VideoPart

RED = (255, 0, 0)


def close(pixel, wanted, slack=6):
    return all(abs(a - b) <= slack for a, b in zip(pixel, wanted))


def saved(picture, **options):
    out = io.BytesIO()
    picture.save(out, **options)
    return out.getvalue()


def banded(orientation, format):
    """60 x 30, white, a red band along the top as the sensor saw it, marked with an EXIF orientation."""
    picture = Image.new("RGB", (60, 30), "white")
    picture.paste(RED, (0, 0, 60, 8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    lossless = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95}}.get(format, {})
    return saved(picture, format=format, exif=exif, **lossless)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(
    ("orientation", "size", "red_at"),
    [
        (1, (60, 30), (30, 2)), (2, (60, 30), (30, 2)), (3, (60, 30), (30, 27)), (4, (60, 30), (30, 27)),
        (5, (30, 60), (2, 30)), (6, (30, 60), (27, 30)), (7, (30, 60), (27, 30)), (8, (30, 60), (2, 30)),
    ],
)  # fmt: skip
def test_a_photo_is_upright(format, orientation, size, red_at):
    """Phone photos reached other models sideways, without any error."""
    picture = open_image(banded(orientation, format))
    assert picture.size == size and close(picture.getpixel(red_at), RED, 40)
    assert close(picture.getpixel((size[0] // 2, size[1] // 2)), (255, 255, 255), 40)


def test_broken_exif_is_only_ignored():
    data = banded(6, "JPEG").replace(b"Exif\0\0MM", b"Exif\0\0XX")
    assert open_image(data).mode == "RGB"


@pytest.mark.parametrize(
    ("mode", "colour", "wanted"),
    [
        ("1", 1, (255, 255, 255)), ("L", 128, (128, 128, 128)), ("LA", (100, 255), (100, 100, 100)),
        ("LA", (0, 0), (255, 255, 255)), ("RGB", RED, RED), ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (0, 0, 0, 0), (255, 255, 255)), ("RGBA", (0, 0, 0, 128), (127, 127, 127)),
        ("CMYK", (0, 255, 255, 0), RED), ("YCbCr", (76, 85, 255), RED), ("HSV", (0, 255, 255), RED),
        ("LAB", (136, 208, 195), (250, 3, 11)), ("I", 65535, (255, 255, 255)), ("I", 200, (200, 200, 200)),
        ("I;16", 32896, (128, 128, 128)), ("F", 0.5, (128, 128, 128)), ("F", 200.0, (200, 200, 200)),
    ],
)  # fmt: skip
def test_every_mode_has_its_right_colour(mode, colour, wanted):
    picture = open_image(Image.new(mode, (4, 4), colour))
    assert picture.mode == "RGB" and close(picture.getpixel((1, 1)), wanted), picture.getpixel((1, 1))


def test_a_palette_with_transparency_lies_over_white():
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([0, 0, 0, 255, 0, 0])
    palette.putpixel((1, 1), 1)
    picture = open_image(saved(palette, format="PNG", transparency=0))
    assert picture.getpixel((0, 0)) == (255, 255, 255) and picture.getpixel((1, 1)) == RED


def test_a_transparent_colour_lies_over_white():
    picture = Image.new("RGB", (4, 4), RED)
    picture.putpixel((0, 0), (0, 0, 0))
    opened = open_image(saved(picture, format="PNG", transparency=(0, 0, 0)))
    assert opened.getpixel((0, 0)) == (255, 255, 255) and opened.getpixel((2, 2)) == RED


def test_sixteen_bit_grey_keeps_its_brightness():
    """Converted the plain way, everything above 255 turns white."""
    grey = Image.fromarray(np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16))
    values = np.asarray(open_image(saved(grey, format="PNG")))[..., 0].ravel()
    assert abs(int(values[128]) - 128) <= 1 and values[0] == 0 and values[-1] == 255


def test_float_with_nan_is_a_picture():
    values = np.array([[0.0, np.nan], [np.inf, 1.0]], dtype=np.float32)
    assert open_image(Image.fromarray(values)).getpixel((1, 1)) == (255, 255, 255)


def test_the_source_is_not_changed():
    source = Image.new("RGB", (4, 4), RED)
    open_image(source).putpixel((0, 0), (0, 0, 0))
    assert source.getpixel((0, 0)) == RED


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (1, 2000), (2000, 1), (8000, 20)])
def test_extreme_shapes_open(size):
    assert open_image(saved(Image.new("RGB", size), format="PNG")).size == size


def test_content_decides_not_the_name(tmp_path):
    path = tmp_path / "图片 really.webp.JPG"
    path.write_bytes(saved(Image.new("RGB", (5, 4), RED), format="WEBP", lossless=True))
    assert open_image(path).getpixel((0, 0)) == RED
    assert open_image(str(path)).size == (5, 4)


def bomb_png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = b"\0" * (1 + (width + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8100, 14000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path, side, monkeypatch):
    path = tmp_path / "bomb.png"
    path.write_bytes(bomb_png(side, side))
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(InputError, match=r"bomb\.png .*pixels; the limit is 64 million"):
        open_image(path)


def broken_files():
    good = saved(Image.effect_noise((300, 200), 50).convert("RGB"), format="JPEG")
    return {
        "truncated.jpg": good[: len(good) // 2],
        "empty.png": b"",
        "text.png": b"just words\n" * 20,
        "drawing.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>',
        "noise.png": bytes(range(256)) * 8,
        "head.png": b"\x89PNG\r\n\x1a\n",
        "paper.pdf": b"%PDF-1.7\n" + b"\0" * 99,
    }


@pytest.mark.parametrize("name", broken_files())
def test_a_broken_file_ends_in_one_sentence_with_its_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(broken_files()[name])
    with pytest.raises(InputError) as caught:
        open_image(path)
    sentence = str(caught.value)
    assert sentence.startswith(name) and sentence.endswith(".") and "\n" not in sentence and len(sentence) < 200


@pytest.mark.parametrize("source", ["gone.png", "", "https://example.org/a.png", "a\0b.png", 7, None, "."])
def test_what_is_no_file_ends_in_one_sentence(source):
    with pytest.raises(InputError):
        open_image(source)


def test_a_file_above_the_size_limit_is_refused_by_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("engine.media.images.read_file.__defaults__", (100,))
    path = tmp_path / "large.png"
    path.write_bytes(b"x" * 101)
    with pytest.raises(InputError, match=r"large\.png has .* MB; the limit is"):
        open_image(path)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\0\0\0\x20ftypisom" + b"\0" * 50, VideoPart), (b"\x1aE\xdf\xa3" + b"\0" * 60, VideoPart),
        (b"RIFF\0\0\0\0AVI LIST", VideoPart), (b"RIFF\0\0\0\0WEBPVP8 ", ImagePart),
        (b"\0\0\0\x20ftypheic" + b"\0" * 50, ImagePart), (b"\0\0\0\x20ftypavif" + b"\0" * 50, ImagePart),
        (b"GIF89a", ImagePart), (b"", ImagePart),
    ],
)  # fmt: skip
def test_videos_are_told_from_pictures_by_their_first_bytes(tmp_path, head, kind):
    (tmp_path / "file").write_bytes(head)
    assert isinstance(media_part(tmp_path / "file"), kind)
