"""Flat shapes of a drawn picture, and the bar chart they may form. cv2 and numpy; knows nothing of notes.

Only pictures with large even areas (drawings, screens) have such shapes; a photograph gives none.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from statistics import linear_regression, median

from .colours import name_colour
from .layout import Word, is_amount

SIDE = 800
LEAST_AREA = 0.0006  # of the picture; thinner things are lines and letters
MOST_COLOURS = 24


@dataclass(frozen=True)
class Shape:
    """form: "rectangle", "square", "circle", "ellipse", "triangle" or "shape". Pixels of the whole picture."""
    form: str
    colour: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Chart:
    """bars: (label, value as written, or "about N" when measured on the axis, or ""), in the order of the axis."""
    title: str
    bars: tuple[tuple[str, str], ...]
    sizes: tuple[float, ...]

    @property
    def highest(self) -> int:
        return max(range(len(self.sizes)), key=self.sizes.__getitem__)

    @property
    def lowest(self) -> int:
        return min(range(len(self.sizes)), key=self.sizes.__getitem__)


def find_shapes(image, words: Sequence[Word] = ()) -> tuple[Shape, ...]:
    """Solid one-colour areas of an RGB picture, without its background and its letters; from left to right."""
    import cv2
    import numpy as np

    scale = min(1.0, SIDE / max(image.size))
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    pixels = np.asarray(image.resize(size, 0))  # nearest: blended edge colours would make shapes of their own
    # 32 steps a channel: an even area with a little noise stays one area.
    coarse = (pixels >> 3).astype(np.int32)
    codes = (coarse[..., 0] << 10) | (coarse[..., 1] << 5) | coarse[..., 2]
    kinds, counts = np.unique(codes, return_counts=True)
    border = np.concatenate([codes[0], codes[-1], codes[:, 0], codes[:, -1]])
    background = int(np.bincount(border).argmax())
    total = codes.size
    shapes: list[Shape] = []
    for kind in kinds[np.argsort(-counts)][:MOST_COLOURS]:
        if kind == background:
            continue
        mask = (codes == kind).astype(np.uint8)
        if mask.sum() < LEAST_AREA * total:
            break
        _, labels, boxes, _ = cv2.connectedComponentsWithStats(mask, connectivity=4)
        large = [number for number in np.flatnonzero(boxes[:, 4] >= LEAST_AREA * total) if number]  # 0 is the rest
        for number in large:
            left, top, width, height, area = (int(part) for part in boxes[number])
            if area < 0.35 * width * height or min(width, height) < 4 or width * height > 0.9 * total:
                continue
            piece = labels[top:top + height, left:left + width] == number
            red, green, blue = colour = np.median(pixels[top:top + height, left:left + width][piece], axis=0)
            shape = Shape(_form(piece, area), name_colour(red, green, blue),
                          left / scale, top / scale, (left + width) / scale, (top + height) / scale)
            if not any(_inside(shape, word) for word in words) and _stands_out(pixels, labels == number, colour):
                shapes.append(shape)
    return tuple(sorted(shapes, key=lambda shape: (shape.left, shape.top)))


def _inside(shape: Shape, word: Word) -> bool:
    """Whether a shape is a letter of a word."""
    wide = min(shape.right, word.right) - max(shape.left, word.left)
    tall = min(shape.bottom, word.bottom) - max(shape.top, word.top)
    return wide > 0 and tall > 0 and wide * tall > 0.7 * (shape.right - shape.left) * (shape.bottom - shape.top)


def _stands_out(pixels, mask, colour) -> bool:
    """Whether the pixels around an area differ from it; the steps of a gradient don't."""
    import cv2
    import numpy as np

    around = cv2.dilate(mask.astype(np.uint8), np.ones((7, 7), np.uint8)).astype(bool) & ~mask
    return bool(around.any()) and float(np.abs(pixels[around] - colour).max(axis=1).mean()) > 24


def find_chart(shapes: Sequence[Shape], words: Sequence[Word]) -> Chart | None:
    """A bar chart, standing or lying, if at least two bars share a baseline; None otherwise."""
    standing = _read_bars([_turned(shape, False) for shape in shapes], [_turned(word, False) for word in words], words)
    if standing:
        return standing
    return _read_bars([_turned(shape, True) for shape in shapes], [_turned(word, True) for word in words], words)


@dataclass(frozen=True)
class _Box:
    """Along the baseline from `start` to `end`; away from it from `foot` (nearest) to `tip`, growing with the value."""
    start: float
    end: float
    foot: float
    tip: float
    text: str

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


def _turned(item: Shape | Word, lying: bool) -> _Box:
    text = item.text if isinstance(item, Word) else item.form
    if lying:
        return _Box(item.top, item.bottom, item.left, item.right, text)
    return _Box(item.left, item.right, -item.bottom, -item.top, text)


def _read_bars(shapes: list[_Box], words: list[_Box], plain_words: Sequence[Word]) -> Chart | None:
    bars = _bars([shape for shape in shapes if shape.text in ("rectangle", "square")])
    if not bars:
        return None
    baseline = median(bar.foot for bar in bars)
    step = min(after.middle - before.middle for before, after in zip(bars, bars[1:]))
    axis = _axis(words, bars)
    labels, values = [], []
    for bar in bars:
        near = [word for word in words if abs(word.middle - bar.middle) < 0.5 * step]
        below = [word for word in near if word.tip <= baseline + 0.3 * (word.tip - word.foot) and _room(word, baseline) < 3]
        label = max(below, key=lambda word: word.tip, default=None)
        numbers = [word for word in near if is_amount(word.text) and word.foot > baseline and
                   (word.tip <= bar.tip or word.foot - bar.tip < 2.5 * (word.tip - word.foot))]
        value = min(numbers, key=lambda word: abs(word.foot - bar.tip), default=None)
        labels.append(label.text if label else "")
        values.append(value.text if value else _measured(bar.tip, axis))
    sizes = [bar.tip - baseline for bar in bars]
    alike = max(sizes) - min(sizes) < 0.02 * max(sizes)  # buttons or the head of a table
    if not any(labels) or (len(bars) < 3 and not all(labels)) or (alike and not all(values)):
        return None
    top = min(plain_words, key=lambda word: word.top, default=None)
    title = top.text if top and top.text not in labels and not is_amount(top.text) else ""
    return Chart(title, tuple(zip(labels, values)), tuple(sizes))


def _room(word: _Box, baseline: float) -> float:
    """How far below the baseline a word stands, in its own heights."""
    return (baseline - word.tip) / max(1.0, word.tip - word.foot)


def _bars(boxes: list[_Box]) -> list[_Box]:
    """The largest set of rectangles on one baseline, of like width, side by side."""
    best: list[_Box] = []
    for first in boxes:
        width = first.end - first.start
        row: list[_Box] = []
        for box in sorted(boxes, key=lambda box: box.start):
            level = abs(box.foot - first.foot) <= max(3.0, 0.02 * max(one.tip - one.foot for one in boxes))
            alike = 0.8 * width <= box.end - box.start <= 1.25 * width
            if level and alike and (not row or box.start >= row[-1].end - 0.1 * width):
                row.append(box)
        if len(row) > len(best):
            best = row
    return best if len(best) >= 2 else []


def _axis(words: list[_Box], bars: list[_Box]) -> tuple[float, float, float] | None:
    """(value at place 0, value per pixel, largest value) from the numbers beside the first bar, if at least two lie on one line."""
    ticks = []
    for word in words:
        number = _number(word.text)
        if number is not None and word.end <= bars[0].start + 2:
            ticks.append(((word.foot + word.tip) / 2, number))
    if len({place for place, _ in ticks}) < 2:
        return None
    places, values = zip(*ticks)
    fit = linear_regression(places, values)  # over all ticks: boxes of words jitter by a pixel or two
    spread = max(values) - min(values)
    off = max(abs(fit.intercept + fit.slope * place - value) for place, value in ticks)
    if fit.slope <= 0 or off > 0.05 * spread:
        return None
    foot = median(bar.foot for bar in bars)
    near_zero = abs(fit.intercept + fit.slope * foot) < 0.03 * spread  # then bars start at nought, to the pixel
    return -fit.slope * foot if near_zero else fit.intercept, fit.slope, max(values)


def _measured(tip: float, axis: tuple[float, float, float] | None) -> str:
    if axis is None:
        return ""
    zero, a_pixel, largest = axis
    places = 2 - int(log10(max(abs(largest), 1e-9)) // 1)  # a bar is measured to about a hundredth of the axis
    return f"about {round(zero + a_pixel * tip, places):.{max(0, places)}f}"


def _number(text: str) -> float | None:
    found = re.fullmatch(r"[^\d\-]{0,3}(-?[\d,]*\.?\d+)\s*[%kKmM]?", text.strip())
    return float(found.group(1).replace(",", "")) if found else None


def _form(piece, area: int) -> str:
    """Name a mask's form by how much of its box it fills and by its corners."""
    import cv2
    import numpy as np

    height, width = piece.shape
    filled = area / (width * height)
    contour = max(cv2.findContours(np.pad(piece, 1).astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=len)
    outline = cv2.contourArea(contour) / (width * height)
    if outline > 0.9 or filled > 0.9:
        return "square" if 0.93 < width / height < 1.07 else "rectangle"
    corners = len(cv2.approxPolyDP(contour, 0.04 * cv2.arcLength(contour, True), True))
    if corners == 3 and 0.4 < outline < 0.6:
        return "triangle"
    if 0.72 < outline < 0.84 and corners > 4:
        return "circle" if 0.93 < width / height < 1.07 else "ellipse"
    return "shape"
