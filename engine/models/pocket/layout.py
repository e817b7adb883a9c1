"""Words with places -> lines as people read them: columns, rows, label with amount, label above value, tables.

Pure geometry and text; knows nothing of the OCR that found the words, nor of notes.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

AMOUNT = re.compile(
    r"^[-+(]?\s*(?:[$€£¥]|USD|EUR|GBP|CHF)?\s*-?\d[\d.,' ]*(?:[$€£¥%]|USD|EUR|GBP|CHF)?\s*\)?[A-Z*]?$", re.IGNORECASE)
PROSE_LETTERS = 18  # a column whose usual line is this long is running text; shorter pieces are cells


@dataclass(frozen=True)
class Word:
    """A piece of text found in one place (often several words). Pixels, y grows downwards; score 0 to 1."""
    text: str
    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True)
class Layout:
    """lines: everything in reading order; table rows stand there too, cells joined by " | ".

    pairs: (label, value) from "Gate: B12", "TOTAL   23.40" and labels standing above their values.
    tables: rows of cells, the first row being the heads.
    """
    lines: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    tables: tuple[tuple[tuple[str, ...], ...], ...] = ()


def lay_out(words: Sequence[Word]) -> Layout:
    """Put words in reading order. Columns of running text are read one after the other; rows of cells stay together."""
    lines: list[str] = []
    pairs: list[tuple[str, str]] = []
    tables: list[tuple[tuple[str, ...], ...]] = []
    for block in _blocks(tuple(words)):
        rows = _rows(block)
        at = 0
        while at < len(rows):
            table = _table(rows, at)
            if table:
                at += len(table)
                forms = _forms(table, rows[at - len(table):at])
                if forms:
                    pairs += forms
                    lines += [f"{label}: {value}" for label, value in forms]
                else:
                    tables.append(table)
                    lines += [" | ".join(row) for row in table]
                continue
            line, found = _line(rows[at])
            lines.append(line)
            pairs += found
            at += 1
    return Layout(tuple(lines), tuple(pairs), tuple(tables))


def is_amount(text: str) -> bool:
    """Whether a cell is a number, a price or a share: "23.40", "$ 5", "12 %"."""
    return bool(AMOUNT.match(text.strip()))


def _blocks(words: tuple[Word, ...]) -> list[tuple[Word, ...]]:
    """Cut into columns of running text where a gutter parts them, keeping whole-width lines above and below."""
    if len(words) < 4:
        return [words]
    gutter = _gutter(words)
    if gutter is None:
        return [words]
    spanning = [word for word in words if word.left < gutter < word.right]
    blocks: list[tuple[Word, ...]] = []
    edges = sorted(word.middle[1] for word in spanning)
    top = float("-inf")
    for edge in [*edges, float("inf")]:
        band = [word for word in words if top < word.middle[1] < edge and word not in spanning]
        left = tuple(word for word in band if word.right <= gutter)
        right = tuple(word for word in band if word.left >= gutter)
        blocks += [*_blocks(left), *_blocks(right)]
        blocks += [(word,) for word in spanning if word.middle[1] == edge]
        top = edge
    return blocks


def _gutter(words: tuple[Word, ...]) -> float | None:
    """The x of an empty strip between two columns of running text, or None."""
    size = median(word.height for word in words)
    page_left, page_right = min(word.left for word in words), max(word.right for word in words)
    starts = sorted({word.left for word in words})
    for start in starts:
        x = start - 0.3 * size
        if x <= page_left or x >= page_right:
            continue
        crossing = [word for word in words if word.left < x < word.right]
        left = [word for word in words if word.right <= x]
        right = [word for word in words if word.left >= x]
        if len(crossing) > len(words) // 4 or min(len(left), len(right)) < 3:
            continue
        if _is_prose(left) and _is_prose(right):
            return x
    return None


def _is_prose(words: Sequence[Word]) -> bool:
    width = max(word.right for word in words) - min(word.left for word in words)
    return (median(len(word.text) for word in words) >= PROSE_LETTERS
            and median(word.right - word.left for word in words) >= 0.6 * width)


def _rows(words: Sequence[Word]) -> list[list[Word]]:
    """Group by height on the page; each row from left to right."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: word.middle[1]):
        # A row is left open for any word whose middle falls inside it: boxes of one line differ by a few pixels.
        for row in rows[-3:]:
            overlap = min(word.bottom, row[-1].bottom) - max(word.top, row[-1].top)
            apart = all(word.left >= other.right - 0.3 * word.height or word.right <= other.left + 0.3 * word.height
                        for other in row)
            if overlap > 0.5 * min(word.height, row[-1].height) and apart:
                row.append(word)
                break
        else:
            rows.append([word])
    for row in rows:
        row.sort(key=lambda word: word.left)
    return rows


def _cells(row: Sequence[Word]) -> list[Word]:
    """Words of a row that stand close together are one cell."""
    cells = [row[0]]
    for word in row[1:]:
        last = cells[-1]
        if word.left - last.right < 0.9 * min(word.height, last.height):
            cells[-1] = Word(f"{last.text} {word.text}", last.left, min(last.top, word.top), word.right,
                             max(last.bottom, word.bottom), min(last.score, word.score))
        else:
            cells.append(word)
    return cells


def _line(row: Sequence[Word]) -> tuple[str, list[tuple[str, str]]]:
    """One row as a line, and the label-value pairs it holds."""
    cells = [cell.text for cell in _cells(row)]
    pairs = []
    if len(cells) == 2 and not is_amount(cells[0]) and not re.search(r":\s*\S", cells[0]):
        pairs.append((cells[0].rstrip(" :."), cells[1]))
        line = f"{cells[0]} {cells[1]}"
    else:
        line = " | ".join(cells) if len(cells) > 2 else " ".join(cells)
        for cell in cells:
            label, colon, value = cell.partition(":")
            if colon and value.strip() and re.search(r"[^\W\d]", label) and not value.startswith("//"):
                pairs.append((label.strip(), value.strip()))
    return line, pairs


def _table(rows: Sequence[Sequence[Word]], start: int) -> tuple[tuple[str, ...], ...] | None:
    """Rows from `start` on that share at least two columns and are no label-amount list; None if there are no two."""
    first = _cells(rows[start])
    if len(first) < 2:
        return None
    columns = [[cell.left, cell.right] for cell in first]
    table = [[cell.text for cell in first]]
    bottom, size = max(cell.bottom for cell in first), median(cell.height for cell in first)
    for row in rows[start + 1:]:
        cells = _cells(row)
        if len(cells) < 2 or min(cell.top for cell in cells) - bottom > 3 * size:
            break
        places = [_column(cell, columns) for cell in cells]
        if None in places or len(set(places)) < len(places):
            break
        texts = [""] * len(columns)
        for place, cell in zip(places, cells):
            texts[place] = cell.text
            columns[place] = [min(columns[place][0], cell.left), max(columns[place][1], cell.right)]
        table.append(texts)
        bottom = max(cell.bottom for cell in cells)
    if len(table) < 2:
        return None
    if len(columns) == 2 and not _heads(table) and not _forms(table, rows[start:start + len(table)]):
        return None
    return tuple(tuple(row) for row in table)


def _heads(table: Sequence[Sequence[str]]) -> bool:
    """Two columns are a table only with a row of heads: letters over values that hold digits."""
    return _are_labels(table[0]) and all(re.search(r"\d", row[1]) for row in table[1:])


def _forms(table: Sequence[Sequence[str]], rows: Sequence[Sequence[Word]]) -> list[tuple[str, str]]:
    """Labels standing above their values, as on tickets: (label, value) pairs, or [] if this is a plain table."""
    if len(table) % 2:
        return []
    heights = [median(word.height for word in row) for row in rows]
    labelled = all(_are_labels(row) for row in table[0::2])
    sizes = all(max(one, other) > 1.2 * min(one, other) for one, other in zip(heights[0::2], heights[1::2]))
    single = len(table) == 2 and not _are_labels(table[1])
    if not labelled or not (single or sizes):
        return []
    return [(label.rstrip(" :"), value) for labels, values in zip(table[0::2], table[1::2])
            for label, value in zip(labels, values) if value]


def _column(cell: Word, columns: Sequence[Sequence[float]]) -> int | None:
    """The one column a cell shares x with; the nearest free-standing one if it only comes close; None if several."""
    touching = [n for n, (left, right) in enumerate(columns) if cell.left < right and cell.right > left]
    if len(touching) == 1:
        return touching[0]
    if touching:
        return None
    near = min(range(len(columns)), key=lambda n: max(columns[n][0] - cell.right, cell.left - columns[n][1]))
    gap = max(columns[near][0] - cell.right, cell.left - columns[near][1])
    return near if gap < cell.height else None


def _are_labels(cells: Sequence[str]) -> bool:
    return all(cell and not re.search(r"\d", cell) for cell in cells)
