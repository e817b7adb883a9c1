"""Files on their way in: told apart by content, checked, named when they can't be used; and files that are broken in
every way, which end in an answer or one sentence, in time, and leave nothing behind."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import random
import resource
import threading
import time
from pathlib import Path

import pytest
from clips import clip, numbered, recorded, sound_only
from PIL import Image

from engine.errors import InputError
from engine.media import open_image, sample_frames
from engine.media.intake import media_part, take_in
from engine.media.limits import MediaLimits, set_media_limits
from engine.messages import ImagePart, VideoPart, user
from engine.rounds import Round, Status


@pytest.fixture(autouse=True)
def usual_limits():
    yield
    set_media_limits(**vars(MediaLimits()))


def picture(format="PNG", colour="red", **options):
    out = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(out, format=format, **options)
    return out.getvalue()


def moving(format="GIF"):
    out = io.BytesIO()
    frames = [Image.fromarray(numbered(index)) for index in range(3)]
    frames[0].save(out, format=format, save_all=True, append_images=frames[1:], duration=1000)
    return out.getvalue()


def taken(parts, text="what?"):
    """The message that `take_in` gives and what it told the user."""
    round_ = Round()
    steps = take_in(user(text, parts), round_)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        message = done.value
    events = list(round_.reply.events.queue)
    return message, [event.text for event in events if isinstance(event, Status) and event.notice]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\0\0\0\x20ftypisom" + b"\0" * 50, VideoPart), (b"\x1aE\xdf\xa3" + b"\0" * 60, VideoPart),
        (b"RIFF\0\0\0\0AVI LIST", VideoPart), (b"RIFF\0\0\0\0WEBPVP8 ", ImagePart),
        (b"\0\0\0\x20ftypheic" + b"\0" * 50, ImagePart), (b"\0\0\0\x20ftypavif" + b"\0" * 50, ImagePart),
        (b"GIF89a", ImagePart), (b"", ImagePart), (b"\0\0\0\x08wide\0\0\0\0mdat", VideoPart), (b"FLV\1", VideoPart),
        (b"\0\0\1\xba\x44", VideoPart), (b"\x47" + b"\0" * 187 + b"\x47" + b"\0" * 187, VideoPart),
        (b"\0\0\0\0\x47" + b"\0" * 191 + b"\x47" + b"\0" * 99, VideoPart), (b"OggS", VideoPart),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", VideoPart), (b"Good morning", ImagePart),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["file", "file.jpg"])
def test_videos_are_told_from_pictures_by_their_first_bytes(tmp_path, head, kind, name):
    (tmp_path / name).write_bytes(head)
    assert isinstance(media_part(tmp_path / name), kind) and isinstance(media_part(head), kind)


def test_only_what_is_neither_goes_by_its_name(tmp_path):
    kinds = {"text.MP4": VideoPart, "zero.webm": VideoPart, "text.png": ImagePart, "photo.mp4": ImagePart}
    for name, kind in kinds.items():
        data = {"zero.webm": b"", "photo.mp4": picture()}.get(name, b"just words")
        (tmp_path / name).write_bytes(data)
        assert isinstance(media_part(str(tmp_path / name)), kind), name


def test_good_files_are_taken_with_the_hash_of_their_content(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    files = [tmp_path / "a.png", clip(tmp_path / "b.mp4"), picture("JPEG"), Image.new("RGB", (3, 3)), moving()]
    message, notices = taken([media_part(file) for file in files])
    assert [part.digest for part in message.media[:3]] == [
        hashlib.sha256(data).hexdigest() for data in (picture(), files[1].read_bytes(), picture("JPEG"))
    ]
    assert len({part.digest for part in message.media}) == 5
    assert notices == ["picture moves; only its first frame is looked at."]


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_a_moving_picture_is_its_first_frame_or_all_of_it_as_a_video(tmp_path, format):
    path = tmp_path / "anim.gif"
    path.write_bytes(moving(format))
    message, notices = taken([media_part(path)])
    assert isinstance(message.media[0], ImagePart) and notices == ["anim.gif moves; only its first frame is looked at."]
    message, notices = taken([VideoPart(path, "anim.gif")])
    assert isinstance(message.media[0], VideoPart) and message.media[0].digest and notices == []
    assert len(sample_frames(message.media[0].source).images) == 3


def test_a_file_that_is_no_good_is_told_and_the_rest_goes_on(tmp_path):
    (tmp_path / "broken.mp4").write_bytes(clip(tmp_path / "x.mp4").read_bytes()[:700])
    (tmp_path / "empty.png").write_bytes(b"")
    bad = [media_part(tmp_path / name) for name in ("broken.mp4", "empty.png")]
    message, notices = taken([*bad, media_part(picture())])
    assert len(message.media) == 1 and message.text == "what?"
    assert [notice.split()[0] for notice in notices] == ["broken.mp4", "empty.png"]
    with pytest.raises(InputError, match="broken.mp4 is damaged or cut off.*empty.png is empty"):
        taken(bad)


def test_the_number_of_files_has_a_limit_and_a_setting():
    parts = [media_part(picture())] * 21
    with pytest.raises(InputError, match="21 files are too many for one question; the limit is 20"):
        taken(parts)
    set_media_limits(files=21)
    assert len(taken(parts)[0].media) == 21


def test_a_stop_while_a_video_is_read_leaves_nothing(tmp_path):
    """The worker closes the steps; the child that reads must not live on."""
    steps = take_in(user("what?", [media_part(clip(tmp_path / "a.mp4", 2000, gop=250))]), Round())
    for _ in range(2):
        next(steps)
    assert children()
    started = time.monotonic()
    steps.close()
    assert not children() and time.monotonic() - started < 0.3


# Every file that broke other products, as a video and as a picture


def zoo(folder):
    """Files by name: good ones, broken ones, misnamed ones, of every kind."""
    whole = clip(folder / "whole.mp4", 60, container_options={"movflags": "faststart"}).read_bytes()
    jpeg = picture("JPEG")
    return {
        "plain.mp4": clip(folder / "p.mp4").read_bytes(), "UPPER.MP4": clip(folder / "p.mp4").read_bytes(),
        "no_ending": clip(folder / "p.mp4").read_bytes(), "one.mp4": clip(folder / "p.mp4", 1).read_bytes(),
        "two.mp4": clip(folder / "p.mp4", 2).read_bytes(), "rec.webm": recorded(folder / "r.webm").read_bytes(),
        "cut.mp4": whole[: len(whole) * 2 // 3], "header.mp4": whole[: whole.find(b"mdat") - 4],
        "sound.mp4": sound_only(folder / "s.mp4").read_bytes(), "text.mp4": b"words " * 80, "zero.mp4": b"",
        "anim.gif": moving(), "anim.webp": moving("WEBP"), "anim.png": moving("PNG"), "really.jpg": picture("WEBP"),
        "cut.jpg": jpeg[: len(jpeg) // 2], "empty.png": b"", "logo.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "thin.png": picture(), "照片.HEIC": picture("AVIF"), "noise": bytes(range(256)) * 3,
    }  # fmt: skip


def test_every_file_is_an_answer_or_a_sentence_with_its_name(tmp_path):
    files = zoo(tmp_path)
    good_videos = {"plain.mp4", "UPPER.MP4", "no_ending", "one.mp4", "two.mp4", "rec.webm", "cut.mp4"}
    good_pictures = {"anim.gif", "anim.webp", "anim.png", "really.jpg", "thin.png", "照片.HEIC"}
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        for reader, good in ((open_image, good_pictures), (sample_frames, good_videos | good_pictures)):
            if name in good:
                assert reader(path)
            else:
                with pytest.raises(InputError) as caught:
                    reader(path)
                assert str(caught.value).startswith(name + " ") and str(caught.value).endswith("."), str(caught.value)


# Mutations


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20))):
        place, length = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 16, 200))
        kind = rng.randrange(6)
        if kind == 0:
            data[place : place + length] = rng.randbytes(min(length, len(data) - place))
        elif kind == 1:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[place : None if rng.random() < 0.2 else place + length]
        elif kind == 3:
            data[place:place] = data[place : place + length]
        elif kind == 4:
            data[place : place + length] = rng.choice((b"\0", b"\xff")) * min(length, len(data) - place)
        else:
            data[place : place + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\1\0\0"))
        if not data:
            return b"\0"
    return bytes(data)


def children():
    tasks = Path("/proc/self/task")
    lists = [(task / "children").read_text().split() for task in tasks.iterdir()] if tasks.exists() else []
    return sum(lists, [])


def held():
    """What a reader could leave behind: threads, child processes, open files, temporary files."""
    gc.collect()
    handles = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    return threading.active_count(), children(), len(handles)


def answer_or_sentence(reader, data, seconds):
    started = time.monotonic()
    try:
        reader(data)
    except InputError as error:
        assert str(error).endswith(".") and "\n" not in str(error) and len(str(error)) < 300, str(error)
    assert time.monotonic() - started < seconds


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_mutated_pictures_are_an_answer_or_a_sentence():
    rng = random.Random(2026)
    noise = Image.effect_noise((60, 40), 80).convert("RGB")
    sources = [moving(), moving("WEBP"), moving("PNG")]
    for format, mode, options in (
        ("JPEG", "RGB", {}), ("JPEG", "CMYK", {"progressive": True}), ("PNG", "RGBA", {}),
        ("PNG", "P", {"transparency": 0}), ("PNG", "I;16", {}), ("WEBP", "RGBA", {}), ("GIF", "P", {}),
        ("TIFF", "RGB", {"compression": "tiff_lzw"}), ("TIFF", "CMYK", {}), ("BMP", "RGB", {}), ("AVIF", "RGB", {}),
        ("HEIF", "RGB", {}), ("JPEG2000", "RGB", {}),
        ("ICO", "RGBA", {}), ("MPO", "RGB", {}), ("QOI", "RGB", {}), ("TGA", "RGB", {"compression": "tga_rle"}),
    ):  # fmt: skip
        exif = Image.Exif()
        exif[0x0112] = 6
        if format == "HEIF":
            pytest.importorskip("pillow_heif").register_heif_opener()
        out = io.BytesIO()
        more = {"exif": exif} if format in ("JPEG", "WEBP", "AVIF") else {}
        noise.convert(mode).save(out, format=format, **more, **options)
        sources.append(out.getvalue())
    for source in sources:
        assert open_image(source).mode == "RGB"
    before, peak = held(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for index in range(4000):
        data = mutated(sources[index % len(sources)], rng)
        answer_or_sentence(open_image, data, 5)
        if index % len(sources) < 3:
            answer_or_sentence(sample_frames, data, 5)
    assert held() == before
    # KB: a picture at the limit and its copies
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1_500_000


@pytest.mark.full
def test_mutated_videos_are_an_answer_or_a_sentence(tmp_path, monkeypatch):
    rng = random.Random(5)
    sources = [
        clip(tmp_path / "a.mp4", 20, container_options={"movflags": "faststart"}),
        clip(tmp_path / "b.mp4", 20, codec="libx265"),
        clip(tmp_path / "a.mkv", 20), recorded(tmp_path / "a.webm", 20), clip(tmp_path / "a.avi", 20, codec="mpeg4"),
        clip(tmp_path / "a.ts", 20), clip(tmp_path / "a.flv", 20),
    ]  # fmt: skip
    files = [path.read_bytes() for path in sources]
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    set_media_limits(video_seconds=5)
    before = held()
    for index in range(140):
        answer_or_sentence(lambda data: sample_frames(data, fps=4), mutated(files[index % len(files)], rng), 6)
    assert held() == before and not os.listdir(tmp_path / "temporary")
