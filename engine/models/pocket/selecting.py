"""What a question selects from the notes: facts of the picture as short sentences, or that the picture lacks them.

Retrieval by rules. It never answers: the language model does, from these sentences. Knows nothing of models or prompts.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .asking import ALIKE, DEICTIC, HEADER, HIGHEST, LOWEST, PATTERNS, YES_NO, Question, alike, same, words_of
from .layout import is_amount
from .notes import Notes, bar_text, describe_shapes
from .objects import Thing
from .things import UNSEEN, everyday, known_names

FIELDS = frozenset().union(*ALIKE) | set("subtotal gate seat flight class name number cash card title".split())
BOUGHT = re.compile(r"\b(?:bought|items?|products?|ordered|purchased|goods|articles)\b")
MOST_READ = 900  # letters of text repeated when asked to read; the notes hold the rest
DESCRIBE = re.compile(
    r"\b(describe|description|caption|summari[sz]e|summary)\b|\bwhat(?: do| can)? you see\b|\bwhat(?:'s| is| are) (?:this|that|it|these)\W*$"
    r"|\bwhat(?:'s| is| are)(?: there| shown| visible| seen)?(?: in| on)? (?:the|this|that|these|my) (?:\w+ )?(?:picture|image|photo|pic|photograph|drawing)s?\b"
    r"|\bwhat does (?:the|this|that) (?:\w+ )?(?:picture|image|photo) show\b|\btell me (?:about|what)\b.*\b(?:this|picture|image|photo|see)\b"
    r"|\bwhat is (?:here|happening|going on)\b|\bwho is (?:this|that)\b|\bwhat am i looking at\b|\bexplain (?:this|the) (?:picture|image|photo)\b")
READ = re.compile(
    r"\bread\b|\btranscribe\b|\bocr\b|\bwhat (?:does|do|did) (?:it|this|that|the [\w ]+|they) says?\b|\bwhat (?:is|was|stands) written\b"
    r"|\b(?:which|what) (?:words|text|writing)\b|\bwhat(?:'s| is) (?:the |all the )?(?:text|writing|words)\b|\ball (?:the )?(?:text|words)\b")
TEXT = frozenset("text texts word words letter letters writing caption inscription".split())
COLOUR = re.compile(r"\bcolou?r(?:s|ed)?\b")
SIZE = re.compile(r"\b(resolution|pixels?|how (?:big|large|wide|tall|high) is (?:the|this) (?:picture|image|photo)|(?:width|height|size) of (?:the|this) (?:picture|image|photo))\b")


@dataclass(frozen=True)
class Selection:
    """sentences: () where the question is not about the picture. found: False if they only say that it lacks the thing."""
    sentences: tuple[str, ...] = ()
    found: bool = True


def select(question: Question, notes: Notes, earlier: Sequence[Question] = (), *, asked_about: bool = True) -> Selection:
    """What the notes hold for a question.

    earlier: the questions before, oldest first; a follow-up ("and the tax?") borrows what it leaves out.
    asked_about: whether the picture came with this very question.
    """
    found = _found(question, notes, earlier)
    return Selection(tuple(found)) if found else Selection(tuple(_nothing(question, notes, asked_about)), found=False)


def _found(question: Question, notes: Notes, earlier: Sequence[Question]) -> list[str]:
    if not question.words or DESCRIBE.search(question.text):
        return describe(notes)
    if SIZE.search(question.text):
        return [f"The picture is {notes.width} pixels wide and {notes.height} pixels high."]
    if YES_NO.match(question.text):
        return _yes_or_no(question, notes)
    if READ.search(question.text):
        return _read(notes)
    found = _of_chart(question, notes, earlier) or _of_things(question, notes) or _of_tables(question, notes, earlier) \
        or _of_lines(question, notes, earlier)
    if found:
        return found
    return _colours(question, notes) if COLOUR.search(question.text) else []


def describe(notes: Notes) -> list[str]:
    """The picture in a few sentences."""
    if notes.empty:
        return [f"The picture is plain {notes.main_colour}.", "There is nothing on it."]
    said = []
    if notes.chart:
        chart = notes.chart
        said.append(f'The picture is a bar chart with the title "{chart.title}".' if chart.title else "The picture is a bar chart.")
        said.append(f"The highest bar is {bar_text(chart, chart.highest)} and the lowest is {bar_text(chart, chart.lowest)}.")
        return said
    if notes.things:
        sure = notes.things[0].sure and notes.kind == "photograph"
        said.append(f"This is a photograph of {seen(notes)}." if sure else f"The picture shows {seen(notes)}.")
    elif notes.kind not in ("photograph", "picture", "drawing", "picture with words"):
        said.append(f"The picture is {_a(notes.kind)}.")
    elif not notes.lines and not notes.shapes:
        said.append(f"The picture is {_a(notes.kind)}, but what it shows was not recognised.")
    if notes.shapes and not notes.things and notes.kind in ("drawing", "picture with words"):
        said.append(f"This is a drawing of {_list([_a(shape) for shape in describe_shapes(notes.shapes)])}.")
    said.append(f"Its main colour is {notes.main_colour}.")
    if notes.lines:
        total = next((f" The {label.lower()} is {value}." for label, value in notes.pairs if label.lower() == "total"), "")
        said.append(f'It says "{_shorten(notes.lines, 60)}".{total}')
    return said


def seen(notes: Notes) -> str:
    """What the picture shows, in words: "a cat (Egyptian cat)", "maybe a tower", "nothing that was recognised"."""
    if notes.empty:
        return f"only plain {notes.main_colour}"
    if notes.things:
        return _list([_name(thing) for thing in notes.things])
    if notes.chart:
        return "a bar chart"
    if notes.kind not in ("photograph", "picture", "drawing", "picture with words"):
        return _a(notes.kind)
    if notes.shapes:
        return _list([_a(shape) for shape in describe_shapes(notes.shapes)])
    return f'the words "{_shorten(notes.lines, 80)}"' if notes.lines else "nothing that was recognised"


def _yes_or_no(question: Question, notes: Notes) -> list[str]:
    asked = [word for word in question.content if not COLOUR.fullmatch(word)]
    if TEXT & set(asked) and not (set(asked) - TEXT - {"readable", "visible"}):
        return [f'There are words in the picture: "{_shorten(notes.lines, 160)}".'] if notes.lines \
            else ["There is no text in the picture."]
    if not asked:
        return describe(notes)
    noun = everyday(asked[-1])
    for thing in notes.things:
        names = {thing.name, *thing.wider, *(everyday(word) for fine in thing.fine for word in words_of(fine))}
        if noun in names or noun in {everyday(word) for word in words_of(thing.name)}:
            kind = "" if noun == thing.name else f": {_a(thing.name)}"
            return [f"There is {_a(noun)} in the picture{kind}." if thing.sure else f"Maybe there is {_a(noun)} in the picture{kind}."]
    for shape in notes.shapes:
        if noun in (shape.form, shape.colour):
            return [f"There is {_a(f'{shape.colour} {shape.form}')} in the picture."]
    for line in notes.lines:
        if any(same(asked[-1], word) for word in words_of(line)):
            return [f'The picture says "{line}".']
    colours = [name for name, _ in notes.colours.names]
    if any(asked[-1] in name.split() for name in colours):
        return [f"The picture has {asked[-1]} in it."]
    if noun in notes.kind.split() or (noun == "chart" and notes.chart):
        return [f"The picture is {_a(notes.kind)}."]
    if noun in UNSEEN:
        return [f"The picture shows {seen(notes)}, but whether there is {_a(noun)} is not known."]
    missing = " ".join(asked[-2:]) if len(asked) > 1 and noun not in known_names() else asked[-1]
    return [f"The picture shows {seen(notes)}, but no {missing}."]


def _read(notes: Notes) -> list[str]:
    if not notes.lines:
        return ["There is no text in the picture."]
    if len(notes.lines) <= 3:  # a small model copies one quoted line better than several bare ones
        return [f'The picture says "{", ".join(notes.lines)}".']
    words = _shorten(notes.lines, MOST_READ, "\n")
    return [f"The picture says:\n{words}"]


def _of_things(question: Question, notes: Notes) -> list[str]:
    """"What animal is this?", "What breed is the dog?", "What is in the cup?"."""
    asked = {everyday(word) for word in question.content}
    for thing in notes.things:
        if asked & {thing.name, *thing.wider} or asked & {"object", "item", "subject", "scene", "building"} & {*thing.wider, "object"}:
            if thing.name in asked and re.search(r"\b(breed|kind|type|sort|species|race|model)\b", question.text) and thing.fine:
                return [f"The {thing.name} is maybe {_a(' or '.join(thing.fine))}."]
            if not COLOUR.search(question.text) and not question.has("many"):
                wide = next((word for word in map(everyday, question.content) if word in thing.wider), None)
                return [f"The {wide} is {_name(thing)}." if wide else f"The picture shows {_name(thing)}."]
        if "cup" in asked and {"drink", "food"} & set(thing.wider):
            return [f"The cup holds {_uncounted(thing)}."]
    wide = asked & {"animal", "vehicle", "food", "drink", "fruit", "bird", "plant", "building", "instrument"}
    if wide and not notes.lines and not question.has("many"):
        return [f"No {next(iter(wide))} was recognised.", f"The picture shows {seen(notes)}."]
    return []


def _of_chart(question: Question, notes: Notes, earlier: Sequence[Question]) -> list[str]:
    chart = notes.chart
    if chart is None:
        return []
    for place, (label, value) in enumerate(chart.bars):
        if label and any(same(asked, word) for asked in question.content for word in words_of(label)):
            return [f"The value of {label} is {value}." if value else f"The value of {label} can't be read."]
    if question.has("title", "heading", "about", "topic"):
        return [f'The title is "{chart.title}".'] if chart.title else ["The chart has no title."]
    if re.search(r"\bhow many (?:bars|columns|categories)\b", question.text):
        return [f"There are {len(chart.bars)} bars."]
    if HIGHEST.search(question.text):
        return [f"The highest bar is {_bar(chart, chart.highest)}."]
    if LOWEST.search(question.text):
        return [f"The lowest bar is {_bar(chart, chart.lowest)}."]
    if question.has("bars", "values", "labels", "categories"):
        return ["The bars are " + _list([bar_text(chart, place) for place in range(len(chart.bars))]) + "."]
    return []


def _of_tables(question: Question, notes: Notes, earlier: Sequence[Question]) -> list[str]:
    content = list(question.content)
    borrowed = list(earlier[-1].content) if question.follows and earlier else []
    for table in notes.tables:
        heads, rows = table[0], table[1:]
        row = _best(content, [line[0] for line in rows])
        column = _best(content, heads[1:])
        if column is None and row is not None:
            column = _best(borrowed, heads[1:])
        elif row is None and column is not None:
            row = _best(borrowed, [line[0] for line in rows])
        if row is not None and column is not None:
            value = rows[row][column + 1] or "empty"
            return [f"The {heads[column + 1]} of {rows[row][0]} is {value}."]
        if row is not None:
            return [f"{rows[row][0]}: " + ", ".join(f"{head} {cell}" for head, cell in zip(heads[1:], rows[row][1:]) if cell) + "."]
        if column is not None:
            numbers = [(_first_number(line[column + 1]), line) for line in rows]
            known = [(number, line) for number, line in numbers if number is not None]
            if known and (HIGHEST.search(question.text) or LOWEST.search(question.text)):
                pick = max if HIGHEST.search(question.text) else min
                line = pick(known, key=lambda pair: pair[0])[1]
                word = "highest" if pick is max else "lowest"
                return [f"The {word} {heads[column + 1]} is {line[column + 1]} ({line[0]})."]
            return [f"{heads[column + 1]}: " + ", ".join(f"{line[0]} {line[column + 1]}" for line in rows) + "."]
    return []


def _of_lines(question: Question, notes: Notes, earlier: Sequence[Question]) -> list[str]:
    """The lines that share words with the question or look like what it wants, the best first."""
    if not notes.lines:
        return []
    pairs = dict(notes.pairs)
    if HEADER & set(question.content) and notes.kind in ("receipt", "invoice", "menu", "page of text"):
        label = next((f"{name}: {value}" for name, value in notes.pairs if HEADER & set(words_of(name))), notes.lines[0])
        return [f'The heading is "{label}".']
    if BOUGHT.search(question.text) and not question.wants:
        sold = [f"{label} {value}" for label, value in notes.pairs if is_amount(value) and not FIELDS & set(words_of(label))]
        if sold:
            return [f"The items are {_list(sold)}."]
    scored: list[tuple[float, int]] = []
    for place, line in enumerate(notes.lines):
        words = words_of(line)
        score = 0.0
        for asked in question.content:
            score += 3 if any(same(asked, word) for word in words) else 2 if any(alike(asked, word) for word in words) else 0
        patterns = sum(bool(PATTERNS[want].search(line)) for want in question.wants)
        if score or (patterns and question.wants - {"amount"}):
            scored.append((score + patterns, place))
    if not scored:
        return []
    best = max(score for score, _ in scored)
    chosen = [place for score, place in scored if score == best][:3]
    said = []
    for place in chosen:
        line = notes.lines[place]
        label = next((name for name in pairs if line.startswith(name) and line.endswith(pairs[name])
                      or f"{name}: {pairs[name]}" in line), None)
        named = label and any(alike(asked, word) for asked in question.content for word in words_of(label))
        if label and (named or not question.wants or any(PATTERNS[want].search(pairs[label]) for want in question.wants)):
            said.append(_pair(label, pairs[label]))
        else:
            said.append(f'The picture says "{line}".')
    return said


def _pair(label: str, value: str) -> str:
    """A label with its value as a sentence."""
    if label.lower() in ("to", "from"):
        return f"The {'destination' if label.lower() == 'to' else 'origin'} is {value}."
    if FIELDS & set(words_of(label)) or is_amount(value):
        return f"The {label.lower()} is {value}."
    return f"{label} is {value}."


def _colours(question: Question, notes: Notes) -> list[str]:
    if notes.empty:
        return [f"The colour of the picture is {notes.main_colour}."]
    asked = {everyday(word) for word in question.content}
    for shape in notes.shapes:
        if shape.form in asked:
            return [f"The colour of the {shape.form} is {shape.colour}."]
    others = [name for name, _ in notes.colours.names[1:]]
    said = [f"The main colour of the picture is {notes.main_colour}."]
    if notes.colours.middle and notes.colours.middle != notes.main_colour and notes.things:
        said.append(f"In the middle it is mostly {notes.colours.middle}.")
    if others:
        said.append(f"The other colours are {_list(others)}.")
    return said


def _nothing(question: Question, notes: Notes, asked_about: bool) -> list[str]:
    """The picture lacks what is asked: say so, unless the question is plainly about the world."""
    shown = {word for line in notes.lines for word in words_of(line)}
    world = [name for name in question.names if name not in shown]
    points = DEICTIC.search(question.text)
    field = re.match(r"(?:and |what about |how about )?(?:what(?:'s| is| are| was)|when|where|who|which|how (?:much|many|far|long)|give me)?\W*(?:is |are |was )?(?:the|my)\b",
                     question.text)
    if world or not (points or (asked_about and field)):
        return []
    if notes.lines and len(notes.lines) <= 4:
        return [f'The picture says "{_shorten(notes.lines, 160)}".']
    noun = re.search(r"\b(?:the|a|an|my)\s+((?:\w+ ){0,2}\w+?)\W*(?:$| (?:of|on|in|here|at|for|from|to|shown|is|are)\b)", question.text)
    lacks = f"There is no {noun.group(1)} in the picture." if noun else "The picture does not show that."
    return [lacks, f"The picture shows {seen(notes)}."]


def _best(words: Sequence[str], cells: Sequence[str]) -> int | None:
    """The cell that shares most with the words; None if none shares anything."""
    scores = [sum(2 if any(same(word, part) for part in words_of(cell)) else 1 if any(alike(word, part) for part in words_of(cell)) else 0
                  for word in words) for cell in cells]
    return max(range(len(cells)), key=scores.__getitem__) if any(scores) else None


def _first_number(cell: str) -> float | None:
    found = re.search(r"-?\d[\d,]*\.?\d*", cell)
    return float(found.group().replace(",", "")) if found else None


def _bar(chart, place: int) -> str:
    label, value = chart.bars[place]
    return f"{label or f'number {place + 1}'} with {value}" if value else label or f"number {place + 1}"


def _name(thing: Thing) -> str:
    # Closer names of vehicles and buildings are wrong too often; of food they are what is asked.
    fine = f" ({' or '.join(thing.fine)})" if thing.fine and thing.sure and "food" in thing.wider else ""
    where = "" if not thing.place else " in the middle" if thing.place == "middle" else f" at the {thing.place}"
    return f"{'' if thing.sure else 'maybe '}{_a(thing.name)}{fine}{where}"


def _uncounted(thing: Thing) -> str:
    return f"{thing.name} ({' or '.join(thing.fine)})" if thing.fine else thing.name


def _a(noun: str) -> str:
    if noun[0].isdigit() or noun in ("coffee", "wine", "soup", "bread", "pasta", "ice cream", "glasses", "trousers", "plain colour"):
        return noun
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _list(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _shorten(lines: Sequence[str], letters: int, between: str = ", ") -> str:
    text = ""
    for line in lines:
        if text and len(text) + len(line) > letters:
            return f"{text}{between}..."
        text += (between if text else "") + line
    return text


