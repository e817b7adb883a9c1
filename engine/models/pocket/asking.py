"""Takes a question apart: its words, what kind of answer it wants, which picture it means. Rules on English text only.

Knows nothing of notes.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

STOP = frozenset(
    "a an the this that these those it its is are was were be been am do does did done can could will would shall should "
    "may might must have has had i me my you your we our he she they them there here what which who whom whose when where "
    "why how much many of in on at to for from by with about and or but not no so if then than as please tell show shows "
    "shown give say says said see seen look looks picture image photo photograph pic screenshot figure any some all just "
    "only also too very one ones thing things named called name written stand stands find let us know get got out up "
    "number value exactly kind type sort us s t re d ll ve m".split())
DEICTIC = re.compile(
    r"\b(this|that|these|it|here|picture|image|photo(?:graph)?|pic|screenshot|shown?|see|seen|sign|receipt|chart|graph|table"
    r"|page|document|ticket|boarding pass|label|poster|menu|drawing|bill|invoice|form|text|words)\b")
# Words that mean the same on receipts, tickets, signs and forms.
ALIKE = tuple(frozenset(words.split()) for words in (
    "total sum amount altogether due pay paid bill cost overall spend spent", "tax vat gst mwst taxes", "date day dated issued",
    "time hour clock", "phone tel telephone mobile fax", "email mail", "address street avenue road located location",
    "from origin departure depart departs leave leaves", "to destination arrive arrives arrival going",
    "passenger traveller traveler person", "price cost costs", "discount reduction saving savings off",
    "shop store market supermarket merchant seller company business", "change", "open opens opening hours", "close closes closed",
    "inhabitants population people", "title heading headline", "quantity qty count", "boarding board boards",
    "size area surface", "weight heavy kg", "website url web site internet www",
))
HEADER = frozenset("shop store market supermarket merchant seller company business restaurant cafe title heading headline "
                   "airline hotel newspaper brand".split())
# What a value looks like when the question asks for it without naming its label.
PATTERNS = {
    "date": re.compile(r"\b\d{1,4}[./-]\d{1,2}[./-]\d{2,4}\b|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
                       r"(?:,? \d{4})?|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}\b"
                       r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.I),
    "time": re.compile(r"\b\d{1,2}[:h]\d{2}(?!\d)|\b\d{1,2}(?:[.:]\d{2})?\s*[ap]\.?m\b", re.I),
    "distance": re.compile(r"\b\d[\d.,]*\s*(?:km|m|mi|miles?|kilomet(?:er|re)s?|met(?:er|re)s?|ft|yd)\b", re.I),
    "amount": re.compile(r"[$€£¥]\s*\d|\d[.,]\d\d\b|\d\s*(?:[$€£¥]|eur|usd|gbp)", re.I),
    "phone": re.compile(r"(?:\+|\b0|\(\d)[\d ()/-]{6,}\d|\b\d{3}[- ]\d{3,4}[- ]\d{3,4}\b"),
    "email": re.compile(r"\S+@\S+\.\w+"),
    "website": re.compile(r"\b(?:https?://|www\.)\S+|\b[\w-]+\.(?:com|org|net|de|uk|fr|io)\b", re.I),
    "percent": re.compile(r"\d\s*%"),
}
HIGHEST = re.compile(r"\b(highest|most|largest|biggest|greatest|max(?:imum)?|tallest|best|top|longest|expensive|peak)\b")
LOWEST = re.compile(r"\b(lowest|least|smallest|fewest|min(?:imum)?|shortest|worst|cheapest|bottom)\b")
ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
YES_NO = re.compile(
    r"^(?:is|are|was|were) (?:there|this|that|it|these|those)\b|^(?:can|do|could) you see\b|^(?:does|do|has|have) "
    r"(?:it|this|that|the (?:picture|image|photo))\b|^any\b|^is the (?:animal|vehicle|thing|picture|image|photo)\b")


@dataclass(frozen=True)
class Question:
    """text: lower case, one space. words: all words. content: words that can select something, in order.

    wants: names of `PATTERNS` asked for. follows: whether it leans on the question before ("and the tax?").
    """
    text: str
    words: tuple[str, ...]
    content: tuple[str, ...]
    wants: frozenset[str]
    follows: bool
    names: tuple[str, ...]

    def has(self, *words: str) -> bool:
        return any(word in self.words for word in words)


def take_apart(question: str) -> Question:
    """Split a question into words and find what it wants."""
    text = " ".join(question.lower().replace("’", "'").split())
    words = tuple(re.findall(r"[^\W_]+(?:[.,'-]\d+)?", text))
    content = tuple(word for word in words if word not in STOP)
    # "to" and "from" are labels on tickets, and too common to be looked for otherwise.
    if re.search(r"\bwhere\b.*\b(?:to|going|fl(?:y|ies|ying)|land|arrive)\b|\bdestination\b", text):
        content = ("destination",)
    elif re.search(r"\bwhere\b.*\bfrom\b|\bdepart(?:s|ure)? from\b|\borigin\b", text):
        content = ("origin",)
    follows = bool(re.match(r"(and|what about|how about|also|then|or)\b", text)) and len(content) <= 4
    spelled = re.findall(r"(?<!^)(?<![.?!] )\b[A-Z][a-zA-Z]+", question.strip())
    return Question(text, words, content, frozenset(_wants(text)), follows, tuple(name.lower() for name in spelled))


def _wants(text: str) -> list[str]:
    asked = {
        "date": r"\bwhen\b|\bdate\b|\bwhat day\b|\bwhich day\b", "time": r"\bwhat time\b|\btime\b|\bwhen\b|\bhour",
        "distance": r"\bhow far\b|\bdistance\b|\bhow many (?:km|kilomet|mile|met)",
        "amount": r"\bhow much\b|\bprice\b|\bcosts?\b|\bpaid\b|\bpay\b", "phone": r"\bphone\b|\btel(?:ephone)?\b|\bcall\b",
        "email": r"\be-?mail\b", "website": r"\bwebsite\b|\bweb site\b|\burl\b|\bweb address\b", "percent": r"\bpercent|%",
    }
    return [name for name, pattern in asked.items() if re.search(pattern, text)]


def is_mostly_cjk(text: str) -> bool:
    """Whether a question is written in Chinese, Japanese or Korean rather than in Latin letters."""
    letters = [letter for letter in text if letter.isalpha()]
    cjk = [letter for letter in letters if "\u2e80" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af" or letter >= "\U00020000"]
    return len(cjk) > 0.3 * len(letters) if letters else False


def which_pictures(question: Question, count: int, new: int) -> list[int]:
    """Places (from 0) of the pictures a question means: by number or order, else the newest ones."""
    picture = r"(?:picture|image|photo(?:graph)?|pic|one)s?"
    for word, number in ORDINALS.items():
        if re.search(rf"\b{word} {picture}\b", question.text) and number <= count:
            return [number - 1]
    found = re.search(rf"\b{picture} (?:number |no\.? |#)?(\d+)\b", question.text)
    if found and 1 <= int(found.group(1)) <= count:
        return [int(found.group(1)) - 1]
    if re.search(rf"\blast {picture}\b", question.text):
        return [count - 1]
    if re.search(rf"\b(?:both|all|two|every|each)\b.*{picture}", question.text):
        return list(range(count))
    return list(range(count - new, count)) if new else [count - 1]


def alike(word: str, other: str) -> bool:
    """Whether two words mean the same here: equal, plural, a slip of the OCR, or in one group of `ALIKE`."""
    return same(word, other) or any(word in group and other in group for group in ALIKE)


def same(word: str, other: str) -> bool:
    """Equal, singular and plural, or one letter misread in a long word."""
    if word == other or word.rstrip("s") == other.rstrip("s") and len(word) > 2:
        return True
    if len(word) < 5 or len(word) != len(other) or word[0] != other[0]:
        return False
    return sum(a != b for a, b in zip(word, other)) == 1


def words_of(text: str) -> Sequence[str]:
    """Lower-case words and numbers of a line."""
    return re.findall(r"[^\W_]+", text.lower())
