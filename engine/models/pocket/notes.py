"""`Notes`: what the eyes saw of one picture, and how it reads as text for the language model.

Pure values and text. The text is the same whatever is asked, so that a kept KV cache stays good. Knows nothing of how
things were seen.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from .charts import Chart, Shape
from .colours import Colours
from .layout import Layout, is_amount
from .objects import Thing

MOST_TOKENS = 700
FLAT = 0.6  # above it a picture is drawn or a screen; photographs lie below 0.3
PAGE_LINES = 12
KINDS = (  # the first whose words all stand in the text gives the kind
    ("boarding pass", (r"\bgate\b", r"\bseat\b|\bflight\b")),
    ("invoice", (r"\binvoice\b",)),
    ("receipt", (r"\btotal\b|\bamount due\b|\bsumme\b|\bbalance\b", r"\d[.,]\d\d\b")),
    ("menu", (r"\bmenu\b", r"\d[.,]\d\d\b")),
)


@dataclass(frozen=True)
class Notes:
    """What was seen in one picture.

    width, height: pixels. layout: the words in order, pairs and tables. things: what it shows, the surest first.
    shapes: simple drawn forms. chart: a bar chart, if it is one.
    """
    width: int
    height: int
    layout: Layout = Layout()
    things: tuple[Thing, ...] = ()
    colours: Colours = Colours()
    shapes: tuple[Shape, ...] = ()
    chart: Chart | None = None
    most_tokens: int = field(default=MOST_TOKENS, repr=False)

    @property
    def lines(self) -> tuple[str, ...]:
        return self.layout.lines

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        return self.layout.pairs

    @property
    def tables(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        return self.layout.tables

    @property
    def empty(self) -> bool:
        """One even colour and nothing on it."""
        return self.colours.plain and not self.lines

    @cached_property
    def kind(self) -> str:
        """In one or two words: "photograph", "receipt", "bar chart", "sign", ..."""
        if self.empty:
            return "plain colour"
        if self.chart:
            return "bar chart"
        words = "\n".join(self.lines).lower()
        for kind, patterns in KINDS:
            if len(self.lines) >= 3 and all(re.search(pattern, words) for pattern in patterns):
                return kind
        if self.tables and sum(len(table) for table in self.tables) >= 0.6 * len(self.lines):
            return "table"
        if any(thing.sure for thing in self.things) or self.colours.flat < FLAT / 2:
            return "photograph" if len(self.lines) < PAGE_LINES or self.things else "page of text"
        if len(self.lines) >= PAGE_LINES:
            return "page of text"
        if self.lines:
            return "picture with words"
        return "drawing" if self.colours.flat >= FLAT else "picture"

    @property
    def main_colour(self) -> str:
        return self.colours.names[0][0] if self.colours.names else "unknown"

    @cached_property
    def _parts(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(lines that always stand, lines of words that fit)."""
        facts = [f"kind: {self.kind}"]
        if self.empty:
            facts += [f"colour: {self.main_colour}", "things: none", "words: none"]
            return tuple(facts), ()
        if self.things:
            facts += [f"{'thing' if thing.sure else 'maybe'}: {describe_thing(thing)}" for thing in self.things]
        elif not self.chart and not self.lines and not self.shapes:
            facts.append("things: not recognised")
        if self.shapes and not self.chart:
            facts.append("shapes: " + ", ".join(describe_shapes(self.shapes)))
        facts.append(f"main colour: {self.main_colour}")
        others = [name for name, _ in self.colours.names[1:]]
        if others:
            facts.append("other colours: " + ", ".join(others))
        if self.chart:
            facts += _chart_lines(self.chart)
        if not self.lines:
            facts.append("words: none")
            return tuple(facts), ()
        if self.chart and not self._other_lines:
            return tuple(facts), ()
        facts.append("other words:" if self.chart else "words:")
        left = self.most_tokens - sum(count_tokens(line) for line in facts) - 20
        fitting: list[str] = []
        for line in self._other_lines:
            left -= count_tokens(line)
            if left < 0:
                break
            fitting.append(line)
        return tuple(facts), tuple(fitting)

    @cached_property
    def _other_lines(self) -> tuple[str, ...]:
        """The lines without those that the chart's own facts repeat: title, labels, values and the axis."""
        if not self.chart:
            return self.lines
        told = {self.chart.title, *(cell for bar in self.chart.bars for cell in bar), *map(" ".join, self.chart.bars)}
        return tuple(line for line in self.lines
                     if line not in told and not all(cell in told or is_amount(cell) for cell in line.split(" | ")))

    @property
    def dropped(self) -> int:
        """Lines of words that found no room in `text`; they stay in `lines`, where questions still find them."""
        return len(self._other_lines) - len(self._parts[1])

    @cached_property
    def text(self) -> str:
        """The notes as the language model reads them: one fact a line, words last, at most about `most_tokens`."""
        facts, fitting = self._parts
        rest = (f"({self.dropped} more lines)",) if self.dropped else ()
        return "\n".join(facts + fitting + rest)

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the user about what the notes leave out."""
        if not self.dropped:
            return ()
        return (f"The picture has {len(self.lines)} lines of text; pocket keeps the first {len(self._parts[1])} in mind"
                " and looks the others up by the words of your question.",)


def describe_thing(thing: Thing) -> str:
    """"cat (maybe Egyptian cat)", "dog (at the left)"."""
    # Closer names of vehicles and buildings are wrong too often to stand here.
    more = ["maybe " + " or ".join(thing.fine)] if thing.fine and {"animal", "food"} & set(thing.wider) else []
    if thing.place:
        more.append("in the middle" if thing.place == "middle" else f"at the {thing.place}")
    return f"{thing.name} ({', '.join(more)})" if more else thing.name


def describe_shapes(shapes: tuple[Shape, ...]) -> list[str]:
    """"red circle", "2 blue squares"; eight kinds at most."""
    counts: dict[tuple[str, str], int] = {}
    for shape in shapes:
        counts[shape.colour, shape.form] = counts.get((shape.colour, shape.form), 0) + 1
    return [f"{colour} {form}" if count == 1 else f"{count} {colour} {form}s" for (colour, form), count in counts.items()][:8]


def bar_text(chart: Chart, place: int) -> str:
    """"Pears 45", or "Pears" where no value is known."""
    label, value = chart.bars[place]
    return " ".join(part for part in (label or f"bar {place + 1}", value) if part)


def _chart_lines(chart: Chart) -> list[str]:
    bars = ", ".join(bar_text(chart, place) for place in range(len(chart.bars)))
    title = [f"title: {chart.title}"] if chart.title else []
    return [*title, f"bars: {bars}", f"highest bar: {bar_text(chart, chart.highest)}",
            f"lowest bar: {bar_text(chart, chart.lowest)}"]


def count_tokens(line: str) -> int:
    """About how many tokens SmolLM2's tokenizer makes of a line (a little above, so that a cap holds)."""
    total = 1
    for piece in re.findall(r"\d|[A-Za-z]+|[^\w\s]|[^\x00-\x7f]", line):
        total += 1 if not piece.isalpha() or len(piece) <= 6 else len(piece) // 4
        total += 1 if ord(piece[0]) > 0x7F else 0
        if piece.isascii() and piece.isupper() and len(piece) > 3:
            total += len(piece) // 4  # capitals split into more pieces
    return total


