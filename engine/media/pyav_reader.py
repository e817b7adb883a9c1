"""PyAV plans every video and reads most: what is in the file, which frames are wanted, who reads them.

One rule says who reads (`_plain`): decord reads ordinary whole MP4 and MOV files, and PyAV everything else and whatever
decord failed at. Runs in the child process of `video_child.py`, so nothing of the engine is imported here, and nothing
is said to people: answers are records, and the bytes of a frame.
"""

from __future__ import annotations

import importlib.util
import math
import struct
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sampling import frames_on_screen, sample_times

DEMUXERS = (
    "mov,matroska,avi,mpegts,mpeg,mpegvideo,flv,asf,ogg,rm,mxf,mxf_opatom,nut,ivf,dv,wtv,m4v,"
    "mp3,wav,aac,flac"  # the last four only to say that a file is sound
)
"""FFmpeg's readers that may see a file. Playlists (HLS, concat, SDP) are not among them: they open other files."""
DECORD_FAILS_AT = (16, 24, 48, 72)
"""Widths at which decord 0.6.0 raises (dmlc/decord issue 336)."""
DECORD_PIXELS = 2_000_000_000
"""Most pixels that decord decodes for one video, about a minute of 1280 x 720: it can't make do with key frames."""
SEEK_PAYS = 16
"""Frames between here and a key frame from which on a seek is cheaper than decoding on."""


class Unreadable(Exception):
    """The video can't be read; the arguments are a reason, and values for the sentence about it."""


@dataclass(frozen=True)
class Table:
    """What is in a file, by its packets: nothing is decoded for this.

    `pts` are the frames' times in units of the stream's time base, sorted, each once; `keys` those of key frames, and
    `seeks` where to seek to for each. In seconds: `zero` is the time stamp that players show as 0:00, `end` where the
    last frame ends after that, `missing` how much more the header promises. `ordinary` is False where packets lack
    times or are broken, or where frames come after a key frame that are shown before it (open GOPs): decord then gives
    other frames than asked for, silently.
    """

    pts: list[int]
    keys: list[int]
    seeks: list[int]
    zero: float
    end: float
    missing: float
    ordinary: bool

    def key_before(self, pts: int) -> int:
        """Index of the last key frame at or before `pts`, or 0."""
        return max(0, bisect_right(self.keys, pts) - 1)


def read(request: dict) -> Iterator[tuple[dict, bytes]]:
    """Plan a video: say what it is, and then either which frames decord shall read, or the frames themselves."""
    try:
        import av
    except ImportError:
        raise Unreadable("no_pyav") from None
    give_up_exactness = time.monotonic() + request["seconds"] / 2
    try:
        # Tags in no known encoding would end it; PyAV 19 has no such setting any more.
        lenient = {"metadata_errors": "ignore"} if int(av.__version__.split(".")[0]) < 19 else {}
        safe = {"format_whitelist": DEMUXERS, "protocol_whitelist": "file"}
        container = av.open(request["path"], options=safe, **lenient)
    except (av.FFmpegError, ValueError):
        raise Unreadable("unknown") from None
    with container:
        stream = _video_stream(container)
        context = stream.codec_context
        if context.width * context.height > request["pixels"]:
            raise Unreadable("pixels", context.width, context.height)
        context.thread_type = "AUTO"
        context.options = {"max_pixels": str(request["pixels"])}
        table = _scan(container, stream)
        start = min(request["start"], table.end)
        end = table.end if request["end"] is None else min(request["end"], table.end)
        yield dict(kind="video", seconds=table.end, missing=table.missing, start=start, end=end), b""
        if start >= end:
            raise Unreadable("range", table.end)
        moments = sample_times(start, end, request["fps"], request["min_frames"], request["max_frames"])
        times = [pts * float(stream.time_base) - table.zero for pts in table.pts]
        indices = frames_on_screen(times, moments)
        first = _first_frame(container, stream, table)
        size = _size(first, stream, len(indices), request)
        step = moments[1] - moments[0] if len(moments) > 1 else 0.0
        yield dict(kind="plan", width=first.width, height=first.height, size=size, matrix=_matrix(first),
                   wanted=len(indices), step=step), b""  # fmt: skip
        if request["decord"] and len(indices) > 1 and _plain(container, stream, first, table, indices, size):
            shown = [max(start, times[index]) for index in indices]
            yield dict(kind="for_decord", indices=indices, times=shown, count=len(table.pts), size=size), b""
            return
        wanted = [table.pts[index] for index in indices]
        for frame, rough in _decoded(container, stream, table, wanted, give_up_exactness):
            shown = max(start, frame.pts * float(stream.time_base) - table.zero)
            yield dict(kind="frame", time=shown, rough=rough), _rgb(frame, size)


def _video_stream(container: Any) -> Any:
    covers = 0x400 | 0x800  # AV_DISPOSITION_ATTACHED_PIC and TIMED_THUMBNAILS: the pictures of songs
    streams = [stream for stream in container.streams.video if not stream.disposition.value & covers]
    if not streams:
        raise Unreadable("no_video" if len(container.streams) else "empty")
    known = [stream for stream in streams if stream.codec_context is not None]
    if not known:
        raise Unreadable("codec")
    return max(known, key=lambda stream: (stream.disposition.value & 1, stream.codec_context.width))


def _scan(container: Any, stream: Any) -> Table:
    import av

    keys, seen, ordinary, any_end, last, last_shown = {}, set(), True, 0.0, None, 0
    last_key = -math.inf
    try:
        for packet in container.demux():
            stamp = packet.dts if packet.pts is None else packet.pts
            if stamp is None or packet.is_discard or not packet.size:
                continue
            any_end = max(any_end, float((stamp + (packet.duration or 0)) * packet.time_base))
            if packet.stream_index != stream.index:
                continue
            ordinary = ordinary and packet.pts is not None and stamp >= last_key
            if packet.is_corrupt:  # the half of a packet that a cut left over
                ordinary = False
                continue
            seen.add(stamp)
            if last is None or stamp > last:
                last, last_shown = stamp, packet.duration or 0
            if packet.is_keyframe:
                last_key = max(last_key, stamp)
                keys[stamp] = stamp if packet.dts is None else min(stamp, packet.dts)
    except av.FFmpegError:  # a broken end: what came before it counts
        ordinary = False
    if not seen:
        raise Unreadable("empty")
    pts, base = sorted(seen), float(stream.time_base)
    zero = pts[0] * base
    if container.start_time is not None:
        zero = min(zero, container.start_time / 1e6)
    rate = float(stream.average_rate or 25)
    end = last * base + (last_shown * base or 1 / rate) - zero
    promised = math.inf if container.duration is None else container.duration / 1e6
    if stream.duration:
        missing = min(promised, stream.duration * base) - end
    else:  # the length is the file's, and sound may go on after the last frame: only what no track has is missing
        missing = promised - (any_end - zero)
    missing = missing if 0 < missing < math.inf else 0.0
    key_times = sorted(keys) or pts[:1]
    return Table(pts, key_times, [keys.get(key, key) for key in key_times], zero, end, missing, ordinary)


def _packets_decoded(container: Any, stream: Any) -> Any:
    import av

    try:
        for packet in container.demux(stream):
            try:
                yield from (frame for frame in packet.decode() if frame.pts is not None and not frame.is_corrupt)
            except av.FFmpegError:  # a broken packet: the next key frame helps
                continue
    except av.FFmpegError:
        return


def _first_frame(container: Any, stream: Any, table: Table) -> Any:
    container.seek(table.seeks[0], stream=stream)
    for frame in _packets_decoded(container, stream):
        return frame
    raise Unreadable("empty")


def _decoded(container: Any, stream: Any, table: Table, wanted: list[int], give_up_exactness: float) -> Any:
    """The frames at the times `wanted`, and whether each is only the nearest key frame before.

    A frame that is broken is replaced by the next whole one, unless that one is wanted itself.
    """
    frames, at, rough = None, None, False
    while wanted:
        if not rough and time.monotonic() > give_up_exactness:
            rough = True
            near = {table.keys[table.key_before(pts)] for pts in wanted}
            wanted = sorted(pts for pts in near if at is None or pts > at)
            continue
        key = table.key_before(wanted[0])
        if frames is None or _frames_between(table, at, table.keys[key]) > (0 if rough else SEEK_PAYS):
            container.seek(table.seeks[key], stream=stream)
            frames = _packets_decoded(container, stream)
        for frame in frames:
            at = frame.pts
            if at >= wanted[0]:
                wanted = wanted[max(1, bisect_right(wanted, at)) :]
                yield frame, rough
                break
        else:
            return  # nothing whole from that key frame to the end of the file


def _frames_between(table: Table, at: int, key: int) -> int:
    return bisect_right(table.pts, key) - bisect_right(table.pts, at)


def _size(frame: Any, stream: Any, count: int, request: dict) -> tuple[int, int]:
    ratio = float(stream.sample_aspect_ratio or 1)
    width, height = frame.width * (ratio if 0.1 < ratio < 10 else 1.0), float(frame.height)
    share = min(1.0, request["side"] / max(width, height), math.sqrt(request["all_pixels"] / (count * width * height)))
    return max(1, round(width * share)), max(1, round(height * share))


def _matrix(frame: Any) -> list[int] | None:
    data = frame.side_data.get("DISPLAYMATRIX") if len(frame.side_data) else None
    return list(struct.unpack("=9i", bytes(data)[:36])) if data is not None else None


def _rgb(frame: Any, size: tuple[int, int]) -> bytes:
    # Players take untagged video of 720 lines and more for BT.709, and smaller for BT.601, FFmpeg's default.
    colours = "ITU709" if frame.colorspace == 2 and frame.height >= 720 else None
    plane = frame.reformat(*size, "rgb24", src_colorspace=colours, interpolation="BICUBIC").planes[0]
    rows, row, used = memoryview(plane), plane.line_size, size[0] * 3
    return b"".join(rows[start : start + used] for start in range(0, row * size[1], row))


def _plain(
    container: Any, stream: Any, frame: Any, table: Table, indices: list[int], size: tuple[int, int]
) -> bool:
    """Whether decord reads this file: an ordinary whole MP4 or MOV, not too long, where it was seen to be right.

    Not turned or flipped (it takes a mirror for a turn), not stretched, eight bits, colours that it reads the same.
    """
    return (
        importlib.util.find_spec("decord") is not None
        and container.format.name.startswith("mov")
        and stream.codec_context.name in ("h264", "hevc")
        and frame.format.name in ("yuv420p", "yuvj420p")
        and (frame.colorspace in (1, 5, 6) or frame.height < 720)
        and _matrix(frame) in (None, [65536, 0, 0, 0, 65536, 0, 0, 0, 1 << 30])
        and (stream.sample_aspect_ratio or 1) == 1
        and table.ordinary
        and not table.missing > 0.5
        and frame.width not in DECORD_FAILS_AT
        and size[0] not in DECORD_FAILS_AT
        and _to_decode(table, indices) * frame.width * frame.height <= DECORD_PIXELS
    )


def _to_decode(table: Table, indices: list[int]) -> int:
    """How many frames must be decoded to show the ones at `indices`."""
    count, done = 0, 0
    for index in indices:
        key = bisect_right(table.pts, table.keys[table.key_before(table.pts[index])]) - 1
        count += index + 1 - max(done, key)
        done = index + 1
    return count
