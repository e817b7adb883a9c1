"""`open_image`: every usual file becomes one upright RGB picture with right colours, or one sentence."""

from __future__ import annotations

import io
import os
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from engine.errors import InputError
from engine.media import images, open_image
from engine.media.images import read_image
from engine.media.limits import MediaLimits, set_media_limits

RED, GREEN = (255, 0, 0), (0, 255, 0)


def close(pixel, wanted, slack=6):
    return all(abs(a - b) <= slack for a, b in zip(pixel, wanted))


def saved(picture, **options):
    out = io.BytesIO()
    picture.save(out, **options)
    return out.getvalue()


@pytest.fixture(autouse=True)
def usual_limits():
    yield
    set_media_limits(**vars(MediaLimits()))


def banded(orientation, format):
    """60 x 30, white, red along the top and green down the left as the sensor saw it, marked with an orientation."""
    picture = Image.new("RGB", (60, 30), "white")
    picture.paste(GREEN, (0, 0, 8, 30))
    picture.paste(RED, (0, 0, 60, 8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    lossless = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95}, "AVIF": {"quality": 95}}.get(format, {})
    return saved(picture, format=format, exif=exif, **lossless)


TURNS = [
    (1, (60, 30), (30, 2), (3, 20)), (2, (60, 30), (30, 2), (56, 20)), (3, (60, 30), (30, 27), (56, 9)),
    (4, (60, 30), (30, 27), (3, 9)), (5, (30, 60), (2, 30), (20, 3)), (6, (30, 60), (27, 30), (9, 3)),
    (7, (30, 60), (27, 30), (9, 56)), (8, (30, 60), (2, 30), (20, 56)),
]  # fmt: skip


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize(("orientation", "size", "red_at", "green_at"), TURNS)
def test_a_photo_is_upright(format, orientation, size, red_at, green_at):
    """Phone photos reached other models sideways, without any error."""
    picture = open_image(banded(orientation, format))
    assert picture.size == size and close(picture.getpixel(red_at), RED, 40)
    assert close(picture.getpixel(green_at), GREEN, 60), picture.getpixel(green_at)
    assert close(picture.getpixel((size[0] // 2, size[1] // 2)), (255, 255, 255), 40)


@pytest.mark.parametrize("old", [b"Exif\0\0MM", b"Exif\0\0MM\0*\0\0\0\x08\0\x01"])
def test_broken_exif_is_only_ignored(old):
    data = banded(6, "JPEG")
    assert old in data and open_image(data.replace(old, old[:6] + b"\xff" * (len(old) - 6))).size == (60, 30)


@pytest.mark.parametrize(("orientation", "size", "red_at", "green_at"), TURNS)
def test_an_iphone_photo_is_upright(orientation, size, red_at, green_at):
    """HEIC says how it is turned in a box of its own, which pillow-heif follows: EXIF must not turn it again."""
    pytest.importorskip("pillow_heif").register_heif_opener()
    photo = Image.open(io.BytesIO(banded(orientation, "JPEG")))
    picture = open_image(saved(photo, format="HEIF", quality=95))  # writes the boxes, and the EXIF tag as well
    assert picture.size == size and close(picture.getpixel(red_at), RED, 40)
    assert close(picture.getpixel(green_at), GREEN, 60), picture.getpixel(green_at)


def test_a_transparent_heic_lies_over_white():
    pytest.importorskip("pillow_heif").register_heif_opener()
    assert open_image(saved(Image.new("RGBA", (40, 40), (255, 0, 0, 0)), format="HEIF")).getpixel((9, 9)) == (255,) * 3


def test_a_photo_of_a_portrait_lens_is_its_first_picture():
    """Phones write two pictures into one .jpg (MPO)."""
    second = Image.new("RGB", (60, 30), "blue")
    data = saved(Image.new("RGB", (60, 30), RED), format="MPO", save_all=True, append_images=[second])
    picture, notices = read_image(data)
    assert Image.open(io.BytesIO(data)).format == "MPO" and close(picture.getpixel((5, 5)), RED, 9) and notices == ()


def test_heic_without_its_reader_says_what_to_install(monkeypatch, tmp_path):
    pytest.importorskip("pillow_heif").register_heif_opener()
    (tmp_path / "IMG_1.HEIC").write_bytes(banded(1, "HEIF"))
    monkeypatch.setattr(images, "_formats", lambda: ("JPEG", "PNG"))
    with pytest.raises(InputError, match="IMG_1.HEIC is an HEIC photo.*pip install pillow-heif.* or save .* as JPEG"):
        open_image(tmp_path / "IMG_1.HEIC")


@pytest.mark.parametrize(
    ("mode", "colour", "wanted"),
    [
        ("1", 1, (255, 255, 255)), ("L", 128, (128, 128, 128)), ("LA", (100, 255), (100, 100, 100)),
        ("LA", (0, 0), (255, 255, 255)), ("RGB", RED, RED), ("RGBA", (255, 0, 0, 255), RED),
        ("RGBA", (0, 0, 0, 0), (255, 255, 255)), ("RGBA", (0, 0, 0, 128), (127, 127, 127)),
        ("CMYK", (0, 255, 255, 0), RED), ("YCbCr", (76, 85, 255), RED), ("HSV", (0, 255, 255), RED),
        ("LAB", (136, 208, 195), (250, 3, 11)), ("I", 65535, (255, 255, 255)), ("I", 200, (200, 200, 200)),
        ("I;16", 32896, (128, 128, 128)), ("F", 0.5, (128, 128, 128)), ("F", 200.0, (200, 200, 200)),
        ("P", 0, (0, 0, 0)), ("PA", (0, 0), (255, 255, 255)), ("RGBX", (255, 0, 0, 0), RED),
        ("RGBa", (0, 0, 0, 0), (255, 255, 255)), ("RGBa", (128, 0, 0, 128), (255, 127, 127)),
        ("La", (0, 0), (255, 255, 255)), ("La", (128, 128), (255, 255, 255)), ("I;16B", 32896, (128, 128, 128)),
        ("I;16L", 65535, (255, 255, 255)), ("I", -5, (0, 0, 0)), ("F", -3.0, (0, 0, 0)),
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


def test_a_palette_with_half_transparent_entries_lies_over_white():
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 128, 0, 255, 0, 255], "RGBA")
    palette.putpixel((1, 0), 1)
    for source in (palette, saved(palette, format="PNG"), saved(palette.convert("RGBA"), format="WEBP", lossless=True)):
        picture = open_image(source)
        assert close(picture.getpixel((0, 0)), (255, 127, 127), 2) and picture.getpixel((1, 0)) == (0, 255, 0)


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(depth, colour_type, pixels, transparent=None, palette=None):
    """Two pixels as a PNG of any depth: Pillow writes only a few of the kinds that it reads."""
    chunk = png_chunk
    extra = (chunk(b"PLTE", palette) if palette else b"") + (chunk(b"tRNS", transparent) if transparent else b"")
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, depth, colour_type, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(b"\0" + pixels)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "second"),
    [
        (png(1, 0, b"\x40", b"\0\0"), 255), (png(1, 0, b"\x80", b"\0\1"), 0),
        (png(2, 0, b"\x60", b"\0\1"), 170),
        (png(4, 0, b"\x5a", b"\0\5"), 170), (png(8, 0, b"\5\x0a", b"\0\5"), 10),
        (png(16, 0, struct.pack(">2H", 1000, 40000), struct.pack(">H", 1000)), 156),
        (png(8, 2, b"\t\t\t\x63\x63\x63", struct.pack(">3H", 9, 9, 9)), 99),
        (png(16, 2, struct.pack(">6H", 1000, 2000, 3000, *[25700] * 3), struct.pack(">3H", 1000, 2000, 3000)), 100),
        (png(16, 4, struct.pack(">4H", 1000, 0, 40000, 65535)), 156),
        (png(16, 6, struct.pack(">8H", 1, 2, 3, 0, 40000, 40000, 40000, 65535)), 156),
        (png(8, 3, b"\0\1", b"\0\xff", b"\0\0\0\x63\x63\x63"), 99), (png(4, 3, b"\1", b"\0", b"\0\0\0ccc"), 99),
    ],
    ids="L1 L1-white L2 L4 L8 L16 RGB8 RGB16 LA16 RGBA16 P8 P4".split(),
)  # fmt: skip
def test_a_png_of_every_depth_has_its_transparency(data, second):
    """Pillow scales the pixels of 2-, 4- and 16-bit files but not the value that is transparent."""
    picture = open_image(data)
    assert picture.getpixel((0, 0)) == (255, 255, 255) and close(picture.getpixel((1, 0)), (second,) * 3, 1)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "AVIF"])
def test_of_a_moving_picture_it_is_the_first_frame_and_that_is_said(format):
    frames = [Image.new("RGB", (20, 20), colour) for colour in (RED, "blue", "green")]
    data = saved(frames[0], format=format, save_all=True, append_images=frames[1:], duration=100)
    picture, notices = read_image(data, "anim")
    assert close(picture.getpixel((5, 5)), RED, 9) and notices == ("anim moves; only its first frame is looked at.",)


def test_further_pages_are_left_out_and_that_is_said():
    pages = [Image.new("L", (9, 9), value) for value in (10, 20, 30)]
    picture, notices = read_image(saved(pages[0], format="TIFF", save_all=True, append_images=pages[1:]), "scan.tif")
    assert picture.getpixel((1, 1)) == (10, 10, 10) and "scan.tif has more than one page" in notices[0]


@pytest.mark.parametrize("format", "BMP DIB GIF ICO JPEG2000 PCX PPM QOI SGI TGA TIFF DDS".split())
def test_older_formats_open(format):
    picture = Image.new("RGB", (32, 32), RED)
    assert close(open_image(saved(picture, format=format)).getpixel((5, 5)), RED, 9)


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
    chunk = png_chunk
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
        "drawing.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n",
        "clip.mp4": b"\0\0\0\x20ftypisom" + b"\0" * 50,
        "song.mp3": b"ID3\4" + bytes(range(200)),
        "letter.docx": b"PK\3\4" + b"\0" * 60,
        "photo.heic": b"\0\0\0\x20ftypheic" + b"\0" * 50,
        "page.jpg": b"<!DOCTYPE html><html>",
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


@pytest.mark.parametrize(
    ("name", "hint"),
    [("drawing.svg", "SVG drawing"), ("paper.pdf", "PDF"), ("drawing.eps", "EPS drawing"), ("text.png", "text"),
     ("song.mp3", "sound"), ("letter.docx", "office document"), ("page.jpg", "web page"), ("clip.mp4", "is a video")],
)  # fmt: skip
def test_the_sentence_says_what_the_file_looks_like(name, hint):
    with pytest.raises(InputError, match=hint):
        open_image(broken_files()[name], name)


def test_an_eps_file_starts_no_ghostscript(monkeypatch):
    """Pillow hands EPS to a PostScript interpreter, which runs what a stranger wrote."""
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_, **__: pytest.fail("Ghostscript"))
    with pytest.raises(InputError):
        open_image(broken_files()["drawing.eps"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(InputError, match="pipe.png can.t be found"):
        open_image(tmp_path / "pipe.png")


def test_limits_can_be_set(tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(saved(Image.new("RGB", (50, 50)), format="PNG"))
    set_media_limits(picture_bytes=path.stat().st_size - 1)
    with pytest.raises(InputError, match=r"large\.png has .* MB; the limit is"):
        open_image(path)
    set_media_limits(picture_bytes=path.stat().st_size, pixels=2499)
    for source in (path, Image.new("RGB", (50, 50))):
        with pytest.raises(InputError, match=r"has 50 x 50 pixels; the limit is 0.002499 million"):
            open_image(source)
    set_media_limits(pixels=2500)
    assert open_image(path).size == (50, 50)
