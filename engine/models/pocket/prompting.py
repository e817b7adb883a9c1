"""The words around a question: the system text, the notes at a picture's place, the facts after the question."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Union

from .asking import is_mostly_cjk, take_apart, which_pictures
from .clips import ClipNotes, clip_facts
from .notes import Notes
from .selecting import select

SYSTEM = "You are a helpful AI assistant named pocket. You answer in one or two short English sentences."
NOT_ENGLISH = "I cannot read {}. I only understand English."
OWN = re.compile(r"\b(?:my|mine|me|i|our|we)\b")
ENDS = 400
SMALL = frozenset("what which who whom where when how is are am was were do does did have has the a an of in on at to for"
                  " my mine me i our we you your it that this tell remember know can could s and or so".split())

Seen = Union[Notes, ClipNotes]


def picture_text(notes: Seen, number: int, total: int) -> str:
    """What stands at the place of a picture or video: `number` counts from 1 through the conversation up to `total`."""
    title = f"Picture {number}" if total > 1 else "Picture"
    return f"{title}:\n{notes.text}"


def suffix(question: str, notes_so_far: Sequence[Seen], earlier_questions: Sequence[str], *, new: int = 0) -> str:
    """What the question selects from the notes, to stand right after it; "" where nothing helps.

    notes_so_far: of all pictures and videos of the conversation up to this question. earlier_questions: oldest first.
    new: how many of the pictures came with this question.
    """
    if is_mostly_cjk(_ends(question)):
        return _wrap(NOT_ENGLISH.format(_language(question)))
    if told := _told(question, earlier_questions):
        return _wrap(told)
    if not notes_so_far:
        return ""
    asked = take_apart(_ends(question))
    earlier = [take_apart(_ends(one)) for one in earlier_questions]
    places = which_pictures(asked, len(notes_so_far), new)
    selected = []
    for place in places:
        seen = notes_so_far[place]
        found = clip_facts(asked, seen, earlier) if isinstance(seen, ClipNotes) \
            else select(asked, seen, earlier, asked_about=bool(new))
        selected.append((place, found))
    if any(one.found for _, one in selected):
        selected = [(place, one) for place, one in selected if one.found]
    said = []
    for place, one in selected:
        for sentence in one.sentences:
            if len(notes_so_far) > 1:
                sentence = re.sub(r"^(?:The picture|This(?= is))", f"Picture {place + 1}", sentence)
            said.append(sentence)
    return _wrap(" ".join(said)) if said else ""


def _told(question: str, earlier: Sequence[str]) -> str:
    """What the user has said about themselves, where the question asks for it ("What is my name?")."""
    question = _ends(question)
    if not OWN.search(question.lower()):
        return ""
    asked = set(re.findall(r"\w+", question.lower())) - SMALL
    for one in reversed(earlier):
        if "?" not in one and len(one) < 300 and asked & set(re.findall(r"\w+", one.lower())):
            return f'You said: "{one.strip()}"'
    return ""


def _ends(question: str) -> str:
    """The beginning and the end of a long question, where what is asked stands; the rules are slow on a pasted book."""
    return question if len(question) <= 2 * ENDS else f"{question[:ENDS]} {question[-ENDS:]}"


def _language(text: str) -> str:
    if any("\u3040" <= letter <= "\u30ff" for letter in text):
        return "Japanese"
    return "Korean" if any("\uac00" <= letter <= "\ud7af" for letter in text) else "Chinese"


def _wrap(facts: str) -> str:
    # Found by trying some twenty wordings on 71 questions: they keep figures and names, and aren't echoed.
    order = "Repeat the text below word for word." if "\n" in facts else "Answer the question with this sentence."
    return f"{order}\n\n{facts}"
