"""`sample_frames`: upright frames whose times are right, from every usual file, or one sentence."""

from __future__ import annotations

import importlib.util
import io
import os
import resource
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from clips import GREEN, RED, clip, number_of, numbered, packets_of, recorded, sound_only, with_matrix, with_sound
from PIL import Image

from engine.errors import InputError
from engine.media import open_image, sample_frames, videos
from engine.media.limits import MediaLimits, set_media_limits
from engine.media.sampling import frames_on_screen, sample_times

pytestmark = pytest.mark.full
needs_decord = pytest.mark.skipif(importlib.util.find_spec("decord") is None, reason="decord has no wheel here")


@pytest.fixture(autouse=True)
def usual_limits():
    yield
    set_media_limits(**vars(MediaLimits()))


@pytest.fixture
def readers(monkeypatch):
    """Which readers ran, in order; they run as always."""
    ran = []
    run_child = videos.run_child

    def noting(request, deadline):
        ran.append("decord" if "indices" in request else "pyav")
        return run_child(request, deadline)

    monkeypatch.setattr(videos, "run_child", noting)
    return ran


def children():
    own = Path("/proc/self/task")
    return [pid for task in own.iterdir() for pid in (task / "children").read_text().split()] if own.exists() else []


def sentence_of(source, **options):
    with pytest.raises(InputError) as caught:
        sample_frames(source, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 200, sentence
    return sentence


# Which moments


@pytest.mark.parametrize(
    ("seconds", "fps", "at_least", "at_most", "count"),
    [
        (10, 1, 1, 256, 10), (0.4, 1, 1, 256, 1), (600, 1, 1, 256, 256), (10.01, 1, 1, 256, 11), (10, 2, 1, 256, 20),
        (10, 0.5, 1, 256, 5), (3, 1, 8, 256, 8), (0, 1, 1, 32, 1), (10, 1, 1, 1, 1),
    ],
)  # fmt: skip
def test_the_count_is_seconds_times_fps_within_its_bounds(seconds, fps, at_least, at_most, count):
    times = sample_times(0, seconds, fps, at_least, at_most)
    assert len(times) == count and times[0] == 0 and all(later > earlier for earlier, later in zip(times, times[1:]))
    assert not seconds or times[-1] < seconds


def test_a_frame_stays_on_screen_until_the_next_one():
    """Frames picked by number from a screen recording came from the wrong moments."""
    assert frames_on_screen([0, 0.1, 0.9, 5, 9], [0, 1, 2, 3, 4, 5, 6]) == [0, 2, 3]
    assert frames_on_screen([0.5, 2], [0, 1, 2]) == [0, 1] and frames_on_screen([0], [0.0] * 8) == [0]


# Which frames


KINDS = {
    "a.mp4": {}, "a.mov": {"options": {"bf": "3", "preset": "medium"}}, "a.mkv": {"codec": "libx265"},
    "a.webm": {"codec": "libvpx-vp9"}, "a.avi": {"codec": "mpeg4"}, "a.ts": {}, "a.flv": {},
    "A.MP4": {"codec": "libx265"}, "a.mpg": {"codec": "mpeg2video", "rate": 25, "format": "vob"},
    "a.wmv": {"codec": "wmv2", "format": "asf"}, "b.mp4": {"codec": "libsvtav1"},
    "whole.mp4": {"gop": 250, "options": {"bf": "2", "preset": "medium"}},
    "parts.mp4": {"container_options": {"movflags": "frag_keyframe+empty_moov"}},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_frame_is_the_one_of_its_time(tmp_path, name):
    """One frame a second of a 4-second clip; each carries its number, so a frame from another moment shows."""
    rate = KINDS[name].get("rate", 10)
    path = clip(tmp_path / name, frames=4 * rate, **{"gop": 12, **KINDS[name]})
    frames = sample_frames(path)
    numbers = [number_of(image) for image in frames.images]
    slack = 1 if name == "a.mpg" else 0  # a program stream doesn't carry the time of every frame
    assert all(abs(number - index * rate) <= slack for index, number in enumerate(numbers)), numbers
    assert frames.times == (0, 1, 2, 3) and abs(frames.seconds - 4) < 0.1 and frames.notices == ()


@needs_decord
def test_decord_reads_ordinary_files_and_pyav_the_rest(tmp_path, readers):
    """One rule: decord for whole upright MP4 and MOV, PyAV for everything else, with the same frames."""
    ordinary = clip(tmp_path / "a.mp4", options={"bf": "3", "preset": "medium"}, gop=250)
    by_decord = sample_frames(ordinary, fps=3)
    assert readers == ["pyav", "decord"]
    by_pyav = sample_frames(clip(tmp_path / "a.mkv", options={"bf": "3", "preset": "medium"}, gop=250), fps=3)
    assert readers[2:] == ["pyav"]
    assert [number_of(image) for image in by_decord.images] == [number_of(image) for image in by_pyav.images]
    assert by_decord.times == by_pyav.times and len(set(by_decord.times)) == 9


def test_a_recording_of_a_browser_has_no_duration_and_is_read(tmp_path):
    """MediaRecorder's WebM made other readers fail with "broken metadata"."""
    frames = sample_frames(recorded(tmp_path / "rec.webm"))
    assert frames.times == (0, 1, 2) and [number_of(image) for image in frames.images] == [0, 10, 20]
    assert abs(frames.seconds - 3) < 0.11 and frames.notices == ()


def test_uneven_frame_times_are_sampled_by_time(tmp_path):
    at = [0, 100, 900, 5000, 9000]
    frames = sample_frames(clip(tmp_path / "uneven.mp4", 5, at_ms=at))
    assert [number_of(image) for image in frames.images] == [0, 2, 3, 4] and frames.times == (0, 0.9, 5, 9)


def test_time_starts_where_players_start_it(tmp_path):
    at = [2000, 3000, 4000, 5000]
    for name in ("late.mp4", "late.ts"):
        frames = sample_frames(clip(tmp_path / name, 4, at_ms=at))
        assert frames.times == (0, 1, 2, 3) and [number_of(image) for image in frames.images] == [0, 1, 2, 3]


def test_fps_and_the_most_frames_decide_how_many(tmp_path):
    path = clip(tmp_path / "a.mp4", 100)
    assert sample_frames(path, fps=2).times == tuple(index / 2 for index in range(20))
    few = sample_frames(path, max_frames=4)
    assert few.times == (0, 2.5, 5, 7.5) and [number_of(image) for image in few.images] == [0, 25, 50, 75]
    assert few.notices == ("4 frames of a.mp4 (10 seconds) are looked at: one every 2.5 seconds.",)
    assert len(sample_frames(path, min_frames=16).times) == 16


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_short_clips_give_each_frame_at_most_once(tmp_path, frames):
    """A fixed count gave eight copies of the only frame, or an index of -1."""
    path = clip(tmp_path / "short.mp4", frames)
    assert [number_of(image) for image in sample_frames(path).images] == [0]
    every = sample_frames(path, fps=30, min_frames=8)
    assert [number_of(image) for image in every.images] == list(range(frames))


def test_a_segment_has_its_start_and_not_its_end(tmp_path):
    path = clip(tmp_path / "a.mp4", 60)
    part = sample_frames(path, start=2, end=5)
    assert part.times == (2, 3, 4) and [number_of(image) for image in part.images] == [20, 30, 40]
    assert sample_frames(path, start=4.5).times == (4.5, 5.5) and sample_frames(path, start=4, end=99).times == (4, 5)
    still = sample_frames(clip(tmp_path / "slides.mp4", 2, at_ms=[0, 4000]), start=1, end=3)
    assert still.times == (1,) and number_of(still.images[0]) == 0  # the frame on screen, and not before the start
    assert "a.mp4 is 6 seconds long" in sentence_of(path, start=6)


@pytest.mark.parametrize(
    "options",
    [{"fps": 0}, {"fps": -1}, {"fps": float("nan")}, {"max_frames": 0}, {"max_frames": 1.5}, {"start": -1},
     {"start": "2"}, {"end": float("inf")}, {"start": 3, "end": 3}, {"min_frames": 9, "max_frames": 3}],
)  # fmt: skip
def test_wrong_settings_are_named(tmp_path, options):
    assert any(name in sentence_of(tmp_path / "gone.mp4", **options) for name in options)


@pytest.mark.parametrize(
    ("matrix", "size", "red_at", "green_at"),
    [
        ((1, 0, 0, 1), (128, 96), (64, 5), (5, 60)), ((0, 1, -1, 0), (96, 128), (90, 64), (40, 5)),
        ((-1, 0, 0, -1), (128, 96), (64, 90), (122, 40)), ((0, -1, 1, 0), (96, 128), (5, 64), (60, 122)),
        ((-1, 0, 0, 1), (128, 96), (64, 5), (122, 60)), ((1, 0, 0, -1), (128, 96), (64, 90), (5, 40)),
        ((0, 1, 1, 0), (96, 128), (5, 64), (60, 5)), ((0, -1, -1, 0), (96, 128), (90, 64), (40, 122)),
    ],
)  # fmt: skip
def test_frames_are_upright_as_players_show_them(tmp_path, matrix, size, red_at, green_at):
    """Phones write how they were held beside the frames; decord takes a mirror for a turn."""
    image = sample_frames(with_matrix(clip(tmp_path / "phone.mp4"), *matrix), fps=2).images[1]
    assert image.size == size and image.mode == "RGB"
    assert all(abs(a - b) < 40 for a, b in zip(image.getpixel(red_at), RED)), image.getpixel(red_at)
    assert all(abs(a - b) < 40 for a, b in zip(image.getpixel(green_at), GREEN)), image.getpixel(green_at)


@pytest.mark.parametrize("space", [1, 5, 2])
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_colours_follow_the_tag_of_the_file(tmp_path, space, name):
    def tag(stream):
        stream.codec_context.colorspace = space

    image = sample_frames(clip(tmp_path / name, setup=tag), fps=2).images[1]
    assert all(abs(a - b) < 8 for a, b in zip(image.getpixel((64, 8)), RED)), image.getpixel((64, 8))
    assert all(abs(a - b) < 8 for a, b in zip(image.getpixel((5, 80)), GREEN)), image.getpixel((5, 80))


def test_stretched_pixels_are_shown_as_players_show_them(tmp_path):
    def stretch(stream):
        stream.codec_context.sample_aspect_ratio = 2

    assert sample_frames(clip(tmp_path / "dv.mp4", setup=stretch)).images[0].size == (256, 96)


@pytest.mark.parametrize("size", [(16, 16), (24, 48), (48, 64), (72, 72), (2, 200), (400, 16), (64, 48)])
def test_small_and_odd_sizes_are_read(tmp_path, size):
    """decord fails at widths of 16, 24, 48 and 72."""
    frames = sample_frames(clip(tmp_path / "s.mp4", 4, size=size), fps=10)
    assert [image.size for image in frames.images] == [size] * 4
    last = frames.images[3]
    assert last.getpixel((size[0] - 1, 0))[0] > 200 > 60 > last.getpixel((size[0] - 1, 0))[1]
    assert size[0] < 16 or last.getpixel((0, size[1] - 1))[1] > 200 > 60 > last.getpixel((0, size[1] - 1))[0]
    odd = tuple(side + 1 for side in size)
    assert sample_frames(clip(tmp_path / "odd.mp4", 4, size=odd, pix_fmt="yuv444p"), fps=10).images[3].size == odd


@pytest.mark.parametrize(
    "name", ["a:b.mp4", "片 ü '$x.MP4", "-x.mp4", "noending", "concat:a|b.mp4", "clip.png", "%d.mp4"]
)
def test_content_decides_and_every_name_opens(tmp_path, name, monkeypatch):
    clip(tmp_path / "plain.mp4")
    os.rename(tmp_path / "plain.mp4", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for source in (name, tmp_path / name, (tmp_path / name).read_bytes()):
        assert sample_frames(source).times == (0, 1, 2)


@pytest.mark.skipif(sys.platform != "linux", reason="such names exist on Linux")
def test_a_name_that_is_no_text_opens(tmp_path):
    path = os.fsdecode(os.fsencode(clip(tmp_path / "a.mp4")) + b"\xff.mp4")
    os.rename(tmp_path / "a.mp4", path)
    assert len(sample_frames(path).images) == 3


def test_tags_in_no_encoding_do_no_harm(tmp_path):
    path = clip(tmp_path / "a.mkv", setup=lambda stream: stream.container.metadata.update(title="titletag"))
    assert b"titletag" in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"titletag", b"\xff\xfe\xc3\x28tag\x80"))
    assert sample_frames(path).times == (0, 1, 2)


def test_an_hour_is_sought_and_not_decoded(tmp_path, monkeypatch):
    """The reader runs here, in this process, to count the frames that it decodes."""
    path = clip(tmp_path / "hour.mkv", 3600, rate=1, size=(128, 96), gop=10)
    frames = sample_frames(path)
    assert [number_of(image) for image in frames.images] == [int(index * 112.5) for index in range(32)]
    assert frames.notices == ("32 frames of hour.mkv (1:00:00) are looked at: one every 112 seconds.",)
    monkeypatch.syspath_prepend(str(Path(videos.__file__).parent))
    import pyav_reader

    decoded, packets_decoded = [], pyav_reader._packets_decoded
    monkeypatch.setattr(
        pyav_reader, "_packets_decoded",
        lambda *args: (decoded.append(frame.pts) or frame for frame in packets_decoded(*args)),
    )  # fmt: skip
    request = {
        "path": str(path), "seconds": 30, "start": 0, "end": None, "fps": 1, "min_frames": 1, "max_frames": 32,
        "pixels": 1e6, "side": 1280, "all_pixels": 1e8, "decord": False,
    }  # fmt: skip
    assert len([data for _, data in pyav_reader.read(request) if data]) == 32
    assert len(decoded) < 32 * 11
    # When half of the time is gone, key frames are near enough, and their own times are told.
    records = [record for record, data in pyav_reader.read({**request, "seconds": 0}) if data]
    assert len(records) == 32 and all(record["rough"] and record["time"] % 10 == 0 for record in records)


# What is broken


def test_what_can_be_read_of_a_cut_file_is_used_and_said(tmp_path):
    """decord spins for ever, or raises; 41 whole frames are there."""
    path = clip(tmp_path / "whole.mp4", 60, container_options={"movflags": "faststart"})
    place, length = packets_of(path)[37]
    (tmp_path / "cut.mp4").write_bytes(path.read_bytes()[: place + length // 2])
    frames = sample_frames(tmp_path / "cut.mp4")
    assert [number_of(image) for image in frames.images] == [0, 10, 20, 30] and frames.times == (0, 1, 2, 3)
    assert frames.notices == ("cut.mp4 is damaged or cut off: only the first 3.7 seconds of 6 seconds can be read.",)


def test_a_zeroed_tail_is_left_out_and_said(tmp_path):
    path = clip(tmp_path / "whole.mp4", 60, gop=1, container_options={"movflags": "faststart"})
    whole, (place, length) = path.read_bytes(), packets_of(path)[37]
    keep = place + length // 2  # half of a frame decodes, grey below
    (tmp_path / "zeroed.mp4").write_bytes(whole[:keep] + bytes(len(whole) - keep))
    frames = sample_frames(tmp_path / "zeroed.mp4")
    assert [number_of(image) for image in frames.images] == [0, 10, 20, 30] and frames.times == (0, 1, 2, 3)
    assert frames.notices == ("zeroed.mp4 is damaged: 2 of 6 frames could not be read.",)
    assert len(sample_frames(tmp_path / "zeroed.mp4", fps=10, max_frames=60).images) == 37


@pytest.mark.parametrize("name", ["cut.mkv", "cut.avi", "cut.ts"])
def test_other_cut_files_are_read_as_far_as_they_go(tmp_path, name):
    codec = "mpeg4" if name == "cut.avi" else "libx264"
    whole = clip(tmp_path / name, 60, codec=codec).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) * 2 // 3])
    frames = sample_frames(tmp_path / name)
    numbers = [number_of(image) for image in frames.images]
    assert 3 <= len(numbers) <= 5 and numbers == [10 * index for index in range(len(numbers))]
    assert name == "cut.ts" or "cut off" in frames.notices[0]  # a transport stream promises no length


def test_sound_that_goes_on_longer_is_no_damage(tmp_path):
    frames = sample_frames(with_sound(tmp_path / "a.mkv"), max_frames=4, fps=2)
    assert frames.times == (0, 0.5, 1, 1.5) and frames.notices == () and frames.seconds == 2


def test_a_picture_that_comes_after_the_sound_keeps_its_time(tmp_path):
    times = sample_frames(with_sound(tmp_path / "a.mkv", first=10)).times
    assert abs(times[0] - 1) < 0.2 and times[-1] < 3  # AAC begins a little before its time


def test_files_without_a_frame_end_in_one_sentence_each(tmp_path):
    whole = clip(tmp_path / "whole.mp4", 60, container_options={"movflags": "faststart"}).read_bytes()
    files = {
        "header.mp4": (whole[: whole.find(b"mdat") - 4], "header.mp4 is damaged or cut off"),
        "noindex.mp4": (clip(tmp_path / "x.mp4").read_bytes()[:2000], "noindex.mp4 is damaged or cut off"),
        "sound.mp4": (sound_only(tmp_path / "x.mp4").read_bytes(), "sound.mp4 has sound but no video track"),
        "empty.mp4": (b"", "empty.mp4 is empty"),
        "text.mp4": (b"just words\n" * 40, "text.mp4 can't be read as a video (it looks like text)"),
        "noise.mp4": (bytes(range(1, 256)) * 8, "noise.mp4 can't be read as a video"),
        "zeros.mp4": (bytes(5000), "zeros.mp4 can't be read as a video"),
        "cut.gif": (b"GIF89a\x01", "cut.gif is damaged or cut off"),
    }
    for name, (data, start) in files.items():
        (tmp_path / name).write_bytes(data)
        assert sentence_of(tmp_path / name).startswith(start)
        if data:
            assert sentence_of(data, name=name).startswith(start)
    assert "can't be found" in sentence_of(tmp_path / "gone.mp4")
    assert "is a folder" in sentence_of(tmp_path) and "web address" in sentence_of("https://example.org/a.mp4")
    assert sentence_of(7) and sentence_of(None)


def test_the_cover_of_a_song_is_no_video(tmp_path):
    import av

    song = sound_only(tmp_path / "song.m4a")
    with av.open(song) as old, av.open(tmp_path / "cover.m4a", "w", format="mp4") as new:
        sound = new.add_stream_from_template(old.streams.audio[0])
        cover = new.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 128, 96, "yuvj420p"
        cover.disposition = 0x400
        new.mux(cover.encode(av.VideoFrame.from_ndarray(numbered(1), format="rgb24").reformat(format="yuvj420p")))
        new.mux(cover.encode(None))
        for packet in old.demux():
            if packet.dts is not None:
                packet.stream = sound
                new.mux(packet)
    assert "has sound but no video track" in sentence_of(tmp_path / "cover.m4a")


@pytest.mark.parametrize(
    ("name", "head"), [("list.m3u8", b"#EXTM3U\n#EXTINF:1,\n"), ("list.mp4", b"ffconcat version 1.0\nfile ")]
)
def test_a_playlist_opens_no_other_file(tmp_path, name, head):
    """FFmpeg follows a playlist to any file or address, whatever its name says."""
    secret = clip(tmp_path / "secret.ts")
    assert sample_frames(secret).images
    (tmp_path / name).write_bytes(head + secret.name.encode() + b"\n#EXT-X-ENDLIST\n")
    assert "can't be read as a video" in sentence_of(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "can't be found" in sentence_of(tmp_path / "pipe.mp4")


# Limits


def test_limits_hold_before_anything_is_decoded(tmp_path):
    path = clip(tmp_path / "a.mp4")
    set_media_limits(pixels=128 * 96 - 1)
    assert sentence_of(path).startswith("a.mp4 has 128 x 96 pixels; the limit is 0.012287 million")
    set_media_limits(pixels=128 * 96, video_bytes=path.stat().st_size - 1)
    assert "a.mp4 has 0.0" in sentence_of(path) and "MB; the limit is" in sentence_of(path.read_bytes(), name="a.mp4")
    set_media_limits(video_bytes=path.stat().st_size)
    assert sample_frames(path).images
    for wrong in ({"pixels": 0}, {"files": 1.5}, {"video_seconds": "30"}, {"colour": 3}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            set_media_limits(**wrong)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.gif"])
def test_large_frames_are_shrunk_and_that_is_said(tmp_path, name):
    path = animated(tmp_path / name, "GIF", 3) if name == "a.gif" else clip(tmp_path / name)
    set_media_limits(frame_side=64)
    frames = sample_frames(path)
    assert [image.size for image in frames.images] == [(64, 48)] * 3
    assert frames.notices == (f"The frames of {name} were shrunk from 128 x 96 to 64 x 48 pixels.",)
    set_media_limits(frame_side=1280, frame_pixels=3 * 32 * 24)
    assert [image.size for image in sample_frames(path).images] == [(32, 24)] * 3


# The child process


def hanging_decord(folder, monkeypatch, frames=0):
    """A decord that gives some frames and then hangs holding the GIL, as decord issue 373 tells."""
    folder.mkdir()
    (folder / "decord.py").write_text(
        "import re, numpy\n"
        "class VideoReader:\n"
        "    def __init__(self, path, width, height): self.shape = (height, width, 3)\n"
        "    def __len__(self): return 30\n"
        "    def __getitem__(self, index):\n"
        f"        if index >= {frames} * 10: re.match('(a+)+$', 'a' * 60 + 'b')\n"
        "        return self\n"
        "    def asnumpy(self): return numpy.full(self.shape, 7, 'uint8')\n"
    )
    monkeypatch.syspath_prepend(str(folder))


def test_a_reader_that_hangs_is_ended_and_the_other_reads(tmp_path, monkeypatch, readers):
    """decord can spin for ever in native code, where no exception and no SIGTERM reaches it."""
    hanging_decord(tmp_path / "fake", monkeypatch)
    path = clip(tmp_path / "a.mp4")
    set_media_limits(video_seconds=3)
    started = time.monotonic()
    frames = sample_frames(path)
    assert [number_of(image) for image in frames.images] == [0, 10, 20] and frames.notices == ()
    assert readers == ["pyav", "decord", "pyav"] and time.monotonic() - started < 3 and children() == []


def test_frames_read_before_the_deadline_are_used_and_that_is_said(tmp_path, monkeypatch):
    hanging_decord(tmp_path / "fake", monkeypatch, frames=2)
    monkeypatch.setattr(videos, "DECORD_SHARE", 1)
    set_media_limits(video_seconds=1)
    frames = sample_frames(clip(tmp_path / "a.mp4"))
    assert frames.times == (0, 1) and frames.images[1].getpixel((0, 0)) == (7, 7, 7)
    (notice,) = frames.notices
    assert notice == "a.mp4 takes longer than 1 second to read; only the first 2 of 3 frames are looked at."


def test_a_file_that_gives_no_frame_in_time_ends_in_a_sentence(tmp_path, monkeypatch):
    hanging_decord(tmp_path / "fake", monkeypatch)
    monkeypatch.setattr(videos, "DECORD_SHARE", 1)
    set_media_limits(video_seconds=0.5)
    assert "could not be read within 0.5 seconds" in sentence_of(clip(tmp_path / "a.mp4")) and children() == []


def test_closing_the_steps_ends_the_child_and_leaves_nothing(tmp_path, monkeypatch):
    """A user's stop: the worker closes the generator between two steps."""
    hanging_decord(tmp_path / "fake", monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    data = clip(tmp_path / "a.mp4").read_bytes()
    handles, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    steps = videos.sample_steps(data)
    for _ in range(12):
        next(steps)
    assert len(children()) == 1 and os.listdir(tmp_path / "temporary")
    started = time.monotonic()
    steps.close()
    assert time.monotonic() - started < 0.3 and children() == [] and not os.listdir(tmp_path / "temporary")
    assert len(os.listdir("/proc/self/fd")) == handles and threading.active_count() == threads


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_the_child_dies_with_its_parent(tmp_path, monkeypatch):
    hanging_decord(tmp_path / "fake", monkeypatch)
    path = clip(tmp_path / "a.mp4")
    code = (
        f"import sys, os; sys.path[:0] = [{str(tmp_path / 'fake')!r}, {str(Path(__file__).parents[1])!r}]\n"
        "from engine.media.videos import sample_steps\n"
        f"steps = sample_steps({str(path)!r})\n"
        "for step in range(30): next(steps)\n"
        "print(open('/proc/self/task/%d/children' % os.getpid()).read().split()[0], flush=True)\n"
        "while True: next(steps)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        child = Path("/proc", parent.stdout.readline().decode().strip())
        assert child.exists()
    finally:
        parent.kill()
        parent.communicate()
    deadline = time.monotonic() + 2
    while child.exists() and "Z" not in (child / "stat").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert time.monotonic() < deadline


def test_the_child_loads_nothing_of_the_engine_and_starts_quickly(tmp_path):
    path = clip(tmp_path / "a.mkv", 1)
    sample_frames(path)
    started = time.monotonic()
    sample_frames(path)
    assert time.monotonic() - started < 1
    source = (Path(videos.__file__).with_name("pyav_reader.py")).read_text()
    assert "from ." not in source and "torch" not in source


# Moving pictures


def animated(path, format, frames=3, duration=1000, **options):
    pictures = [Image.fromarray(numbered(index)) for index in range(frames)]
    lossless = {"lossless": True} if format == "WEBP" else {"quality": 100} if format == "AVIF" else {}
    pictures[0].save(path, format=format, save_all=True, append_images=pictures[1:], duration=duration,
                     **lossless, **options)  # fmt: skip
    return path


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "AVIF"])
def test_a_moving_picture_is_a_video(tmp_path, format):
    path = animated(tmp_path / "anim", format, 5, duration=[500, 500, 3000, 1000, 1000])
    frames = sample_frames(path)
    assert [number_of(image) for image in frames.images] == [0, 2, 3, 4] and frames.times == (0, 1, 4, 5)
    assert frames.seconds == 6 and frames.notices == ()
    assert sample_frames(path.read_bytes(), start=4, end=5).times == (4,)
    with Image.open(path) as picture:
        picture.seek(1)
        assert sample_frames(picture, start=1).times == (1, 4, 5) and picture.tell() == 1
        assert sample_frames(picture, start=1, end=2).times == (1,) and picture.tell() == 1
        assert number_of(picture.convert("RGB")) == 1


@pytest.mark.parametrize("side", [9000, 40000])
def test_a_frame_that_outgrows_the_limit_ends_the_picture(side):
    """A later frame of a GIF can enlarge it: 790 bytes took a minute and 20 GB."""
    data = bytearray(animated(io.BytesIO(), "GIF").getvalue())
    place = second_frame(data)
    data[place + 5 : place + 9] = struct.pack("<2H", side, side)
    started, peak = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    frames = sample_frames(bytes(data))
    assert [number_of(image) for image in frames.images] == [0] and "cut off" in frames.notices[0]
    assert time.monotonic() - started < 1 and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000


def second_frame(gif):
    """Where the descriptor of the second frame begins: after the first frame's block of length 0."""
    return gif.index(b"\x2c", gif.index(b"\0\x21\xf9", gif.index(b"\x2c")))


def test_a_gif_that_is_cut_in_its_second_frame_is_still_a_picture():
    data = animated(io.BytesIO(), "GIF").getvalue()
    for length in range(second_frame(data) - 6, second_frame(data) + 14):
        assert number_of(open_image(data[:length])) == 0 and sample_frames(data[:length]).times[0] == 0


def test_frames_without_a_time_last_as_long_as_in_a_browser(tmp_path):
    assert sample_frames(animated(tmp_path / "a.gif", "GIF", 25, duration=0)).times == (0, 1, 2)


def test_a_still_picture_is_a_video_of_one_frame(tmp_path):
    Image.new("RGBA", (9, 7)).save(tmp_path / "a.png")
    frames = sample_frames(tmp_path / "a.png")
    assert frames.times == (0,) and frames.images[0].getpixel((0, 0)) == (255, 255, 255)
    assert frames.notices == ("a.png is a picture that does not move; it is looked at as one frame.",)
    assert len(sample_frames(Image.new("L", (3, 3))).images) == 1


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_a_cut_moving_picture_is_read_as_far_as_it_goes(format):
    data = animated(io.BytesIO(), format, 10).getvalue()
    data = data[: len(data) // 2]
    frames = None
    try:
        frames = sample_frames(data)
    except InputError as error:
        assert format == "WEBP" and "damaged or cut off" in str(error)  # its reader opens whole files only
    if frames:
        assert [number_of(image) for image in frames.images] == list(range(len(frames.images)))
        assert 3 <= len(frames.images) < 10 and (format == "GIF" or "cut off" in frames.notices[0])
