"""Clips that the tests make: every frame carries its number as twelve black and white fields, so that it survives
lossy codecs, and a red band along its top and a green one down its left side, so that turns and mirrors show."""

from __future__ import annotations

import struct
from fractions import Fraction

import av
import numpy as np

RED, GREEN, WHITE = (255, 0, 0), (0, 255, 0), (255, 255, 255)
BITS = 12


def numbered(number, width=128, height=96):
    """A frame: red on top (a quarter), green at the left (an eighth), below them its number in fields."""
    frame = np.full((height, width, 3), 128, np.uint8)
    field = (width - width // 8) // BITS
    for bit in range(BITS):
        left = width // 8 + bit * field
        frame[height // 4 :, left : left + field] = 255 if number >> bit & 1 else 0
    frame[:, : width // 8] = GREEN
    frame[: height // 4] = RED
    return frame


def number_of(image):
    """The number in an upright frame."""
    width, height = image.size
    field = (width - width // 8) // BITS
    places = [(width // 8 + bit * field + field // 2, height * 5 // 8) for bit in range(BITS)]
    return sum((image.getpixel(place)[1] > 127) << bit for bit, place in enumerate(places))


def clip(path, frames=30, rate=10, *, size=(128, 96), codec="libx264", at_ms=None, pix_fmt="yuv420p", gop=10,
         options=None, container_options=None, draw=numbered, format=None, setup=None):
    """Write `frames` numbered frames, `rate` a second, or at the times `at_ms`. Returns the path."""
    with av.open(path, "w", format=format, options=container_options or {}) as out:
        stream = out.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = *size, pix_fmt
        stream.codec_context.gop_size = gop
        if codec.startswith("libx26"):
            quiet = {"x265-params": "log-level=none"} if codec == "libx265" else {}
            stream.options = {"preset": "ultrafast", **quiet, **(options or {})}
        if codec.startswith("libvpx"):
            stream.bit_rate = 500_000
        if at_ms:
            stream.codec_context.time_base = Fraction(1, 1000)
        if setup:
            setup(stream)
        for index in range(frames):
            frame = av.VideoFrame.from_ndarray(draw(index, *size), format="rgb24")
            if stream.codec_context.colorspace in (1, 5):
                spaces = {1: "ITU709", 5: "ITU601"}
                frame = frame.reformat(format=pix_fmt, dst_colorspace=spaces[stream.codec_context.colorspace])
            frame.pts, frame.time_base = (at_ms[index], Fraction(1, 1000)) if at_ms else (index, Fraction(1, rate))
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def packets_of(path):
    """Where each packet of an MP4's video lies: (first byte, length)."""
    with av.open(path) as container:
        return [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]


class NoSeek:
    """A sink as a browser's recorder has it: what is written stays as it is, so no duration gets into the header."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data)
        return len(data)


def recorded(path, frames=30):
    """A WebM without a duration."""
    sink = NoSeek()
    clip(sink, frames, codec="libvpx", format="webm")
    path.write_bytes(sink.data)
    return path


def sound_only(path):
    """An MP4 with sound and no picture."""
    with av.open(path, "w") as out:
        stream = out.add_stream("aac", rate=8000)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def with_sound(path, first=0):
    """Two seconds of numbered frames, the first of them frame `first`, with eight seconds of sound."""
    with av.open(path, "w") as out:
        video, sound = out.add_stream("libx264", rate=10), out.add_stream("aac", rate=8000)
        video.width, video.height, video.pix_fmt, sound.layout = 128, 96, "yuv420p", "mono"
        for index in range(first, first + 20):
            frame = av.VideoFrame.from_ndarray(numbered(index), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, 10)
            out.mux(video.encode(frame))
        out.mux(video.encode(None))
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8 * 8000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        out.mux(sound.encode(frame))
        out.mux(sound.encode(None))
    return path


def with_matrix(path, a, b, c, d):
    """Put a display matrix into the track header of an MP4, as a phone does that was turned."""
    data = bytearray(path.read_bytes())
    place = data.find(b"tkhd") + 4 + 4 + 20 + 16  # version 0: flags, times and ids, then layer, volume and so on
    one = 1 << 16
    data[place : place + 36] = struct.pack(">9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path
