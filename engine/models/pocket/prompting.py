"""The words around a question: the system text, the notes at a picture's place, the facts after the question."""
from __future__ import annotations

from collections.abc import Sequence

from .asking import is_mostly_cjk, take_apart, which_pictures
from .notes import Notes
from .selecting import select

SYSTEM = "You are a helpful AI assistant named pocket. You answer in one or two short English sentences."
NOT_ENGLISH = "Sorry, I only understand English. Please ask in English."


def picture_text(notes: Notes, number: int, total: int) -> str:
    """What stands at the place of a picture. number counts from 1 through the conversation, total is how many there are."""
    title = f"Picture {number}" if total > 1 else "Picture"
    return f"{title}:\n{notes.text}"


def suffix(question: str, notes_so_far: Sequence[Notes], earlier_questions: Sequence[str], *, new: int = 0) -> str:
    """What the question selects from the notes, to stand right after it; "" where nothing helps.

    notes_so_far: of all pictures of the conversation up to this question. earlier_questions: oldest first.
    new: how many of the pictures came with this question.
    """
    if is_mostly_cjk(question):
        return _wrap(NOT_ENGLISH)
    if not notes_so_far:
        return ""
    asked = take_apart(question)
    earlier = [take_apart(one) for one in earlier_questions]
    places = which_pictures(asked, len(notes_so_far), new)
    selected = [(place, select(asked, notes_so_far[place], earlier, asked_about=bool(new))) for place in places]
    if any(one.found for _, one in selected):
        selected = [(place, one) for place, one in selected if one.found]
    said = []
    for place, one in selected:
        for sentence in one.sentences:
            said.append(sentence.replace("The picture", f"Picture {place + 1}", 1) if len(notes_so_far) > 1 else sentence)
    return _wrap(" ".join(said)) if said else ""


def _wrap(facts: str) -> str:
    return f"{facts}\n\nRewrite the sentence above as your answer."
