"""What `pocket` saw of a video: moments with their times, and what moves. Pure values and text.

A moment is a stretch in which nothing changes that notes can hold. The text is the same whatever is asked. Nothing
here knows how a frame was looked at.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from .asking import ORDINALS, Question
from .notes import Notes
from .selecting import Selection, seen, select

MOST_MOMENTS = 24
"""Moments that stand in the text; questions still find the others."""
SAME_WORDS = 0.8
"""Share of letters that two readings of one caption have in common at least."""
MOVED = 0.08
"""Of the frame's width or height, from where on a change of place counts as movement."""
GREW = 1.3

_AT = re.compile(r"\b(?:at|second|sec|after|minute)\s+(\d+(?:\.\d+)?)(?:\s*(?:s|sec|seconds?)\b)?|\b(\d+(?:\.\d+)?)\s*(?:s|sec|seconds?)\b|\b(\d+):(\d\d)\b")
_LONG = re.compile(r"\bhow long\b|\bduration\b|\blength\b|\bhow many seconds\b")
_MOVES = re.compile(r"\b(?:which|what) (?:way|direction)\b|\bdirection\b|\bmov\w+|\bgo(?:es|ing)?\b|\bgrow\w*|\bshrink\w*|\bbigger\b|\bsmaller\b")
_ORDER = re.compile(r"\border\b|\bsteps\b|\bsequence\b|\bcaptions\b|\blist\b|\bone after (?:the other|another)\b|\bread\b")
_AFTER = re.compile(r"\b(?:after|then|next|following|follows)\b")
_BEFORE = re.compile(r"\bbefore\b")
_LAST = re.compile(r"\b(?:last|end|ends|final|finally)\b")
_WORDS = re.compile(r"\b(?:caption|text|words?|title|step|say|says|written|read)s?\b")


@dataclass(frozen=True)
class Moment:
    """From `start` to `end` seconds the frames show what `notes` say."""

    start: float
    end: float
    notes: Notes

    @property
    def words(self) -> str:
        return ", ".join(self.notes.lines)

    @property
    def text(self) -> str:
        """What is on screen, in words."""
        if self.notes.empty:
            return f"plain {self.notes.main_colour}"
        said = [] if self.notes.lines and not self.notes.things and not self.notes.shapes else [seen(self.notes)]
        if self.notes.lines:
            said.append(f'"{self.words}"')
        return " and ".join(said)


@dataclass(frozen=True)
class ClipNotes:
    """A video: its length in seconds, its moments in order, sentences about what moves, and the frames looked at."""

    seconds: float
    moments: tuple[Moment, ...]
    movements: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    frames: int = 0

    @property
    def text(self) -> str:
        """The notes as the language model reads them."""
        shown = self.moments[:MOST_MOMENTS]
        lines = [f"kind: video, {length(self.seconds)} long"]
        lines += [f"{clock(moment.start)} to {clock(moment.end)}: {moment.text}" for moment in shown]
        if len(self.moments) > len(shown):
            lines.append(f"({len(self.moments) - len(shown)} more moments)")
        return "\n".join([*lines, *self.movements])


def clip_facts(question: Question, clip: ClipNotes, earlier: list[Question]) -> Selection:
    """What the notes of a video hold for a question, as short sentences."""
    text, moments = question.text, clip.moments
    if _LONG.search(text):
        return Selection((f"The video is {length(clip.seconds)} long.",))
    if (second := _second(text)) is not None:
        if second > clip.seconds:
            return Selection((f"The video is only {length(clip.seconds)} long.",), found=False)
        moment = next((moment for moment in reversed(moments) if moment.start <= second), moments[0])
        if moment.notes.lines:
            return Selection((f'The words at second {second:g} are "{moment.words}".',))
        return Selection((f"At second {second:g} the video shows {moment.text}.",))
    if _MOVES.search(text):
        return Selection(clip.movements or ("Nothing was seen to move in the video.",), found=bool(clip.movements))
    named = [moment for moment in moments if moment.notes.lines] if _WORDS.search(text) else []
    told = named or list(moments)
    place = next((number for word, number in ORDINALS.items() if word in question.words), None)
    if _AFTER.search(text) or _BEFORE.search(text):
        if (neighbour := _neighbour(question, told, 1 if _AFTER.search(text) else -1)) is not None:
            return Selection((neighbour,))
    if place is not None and not _AFTER.search(text):
        if place > len(told):
            return Selection((f"The video has only {len(told)} different {'texts' if named else 'scenes'}.",), found=False)
        which = next(word for word, number in ORDINALS.items() if number == place and word in question.words)
        return Selection((_which(which, told[place - 1], bool(named)),))
    if _LAST.search(text):
        return Selection((_which("last", told[-1], bool(named)),))
    if named and _ORDER.search(text):
        return Selection((" ".join(f"{number}. {moment.words}." for number, moment in enumerate(named, start=1)),))
    for moment in moments:
        found = select(question, moment.notes, earlier)
        if found.found and found.sentences and question.content:
            return Selection(tuple(sentence.replace("The picture", "The video", 1) for sentence in found.sentences))
    return Selection(tuple(story(clip)))


def story(clip: ClipNotes) -> list[str]:
    """The video in a few sentences: first, then, at the end."""
    moments = clip.moments[:6]
    starts = ["First", *["then"] * (len(moments) - 1)]
    said = [", ".join(f"{start} it shows {moment.text}" for start, moment in zip(starts, moments)) + "."]
    if len(moments) == 1:
        said = [f"The video shows {moments[0].text}."]
    return [*said, *clip.movements]


def same_moment(one: Notes, other: Notes) -> bool:
    """True when two frames show the same, as far as notes go: places may differ, a letter may be misread."""
    if {thing.name for thing in one.things} != {thing.name for thing in other.things}:
        return False
    if {shape.colour for shape in one.shapes} != {shape.colour for shape in other.shapes}:
        return False
    if one.empty != other.empty or (one.empty and one.main_colour != other.main_colour):
        return False
    words = (" ".join(one.lines), " ".join(other.lines))
    return words[0] == words[1] or difflib.SequenceMatcher(None, *words).ratio() >= SAME_WORDS


def movements(frames: list[tuple[float, Notes]]) -> tuple[str, ...]:
    """Sentences about shapes that are alone in their colour and change place or size over the frames."""
    tracks: dict[str, list[tuple[float, float, float, str]]] = {}
    for _, notes in frames:
        for shape in notes.shapes:
            if sum(other.colour == shape.colour for other in notes.shapes) == 1:
                x = (shape.left + shape.right) / 2 / notes.width
                y = (shape.top + shape.bottom) / 2 / notes.height
                size = ((shape.right - shape.left) * (shape.bottom - shape.top)) ** 0.5 / notes.width
                tracks.setdefault(shape.colour, []).append((x, y, size, shape.form))
    said = []
    for colour, track in tracks.items():
        if len(track) < 2:
            continue
        (x0, y0, size0, form), (x1, y1, size1, _) = track[0], track[-1]
        ways = []
        if abs(x1 - x0) > MOVED and abs(x1 - x0) >= abs(y1 - y0) / 2:
            ways.append("moves from left to right" if x1 > x0 else "moves from right to left")
        if abs(y1 - y0) > MOVED and abs(y1 - y0) >= abs(x1 - x0) / 2:
            ways.append("moves down" if y1 > y0 else "moves up")
        if max(size0, size1) > GREW * min(size0, size1) > 0:
            ways.append("gets bigger" if size1 > size0 else "gets smaller")
        if ways:
            said.append(f"The {colour} {form} {' and '.join(ways)}.")
    return tuple(said)


def length(seconds: float) -> str:
    """ "1 second", "12 seconds", "2 minutes 5 seconds"."""
    minutes, rest = divmod(round(seconds) if seconds >= 1 else round(seconds, 1), 60)
    parts = [f"{minutes} minute{'s' * (minutes != 1)}"] if minutes else []
    if rest or not minutes:
        parts.append(f"{rest} second{'s' * (rest != 1)}")
    return " ".join(parts)


def clock(seconds: float) -> str:
    """ "0:05", "12:30"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def _second(text: str) -> float | None:
    found = _AT.search(text)
    if not found:
        return None
    if found[3]:
        return int(found[3]) * 60 + int(found[4])
    return float(found[1] or found[2])


def _neighbour(question: Question, moments: list[Moment], step: int) -> str | None:
    """What comes after, or before, the moment that the question names; without a name, after the first."""
    asked = set(question.content)
    best = max(range(len(moments)), key=lambda place: _shared(asked, moments[place]))
    if not _shared(asked, moments[best]):
        if step < 0 or len(moments) < 2:
            return None
        best = 0
    if not 0 <= best + step < len(moments):
        return f"Nothing comes {'after' if step > 0 else 'before'} {moments[best].text}."
    first, second = (moments[best], moments[best + step])[::step]
    if not asked or not _shared(asked, moments[best]):
        return f"First comes {first.text}, then comes {second.text}."
    return f"After {first.text} comes {second.text}."


def _shared(asked: set[str], moment: Moment) -> int:
    return len(asked & set(re.findall(r"\w+", moment.text.lower())))


def _which(word: str, moment: Moment, caption: bool) -> str:
    return f'The {word} caption is "{moment.words}".' if caption else f"The {word} thing shown is {moment.text}."
