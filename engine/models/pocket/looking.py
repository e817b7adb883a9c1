"""The eyes of `pocket`: look at one picture step by step and write down what is there.

Knows nothing of the language model or of questions.
"""
from __future__ import annotations

from collections.abc import Generator

from .charts import find_chart, find_shapes
from .colours import see_colours
from .layout import lay_out
from .notes import FLAT, Notes
from .objects import ThingNamer
from .words import WordReader

PAPER = "printed page"
FEW = 8


class Eyes:
    """OCR and classifier, loaded once (about 1 s). Needs no network. One picture at a time.

    threads: CPU threads for OCR; None leaves the choice to onnxruntime. torch's own setting stays as it is.

    Raises ImportError where `rapidocr`, `onnxruntime` or the classifier's packages are missing.
    """

    def __init__(self, threads: int | None = None):
        self._words = WordReader(threads)
        self._words.warm_up()
        self._things = ThingNamer()

    def look(self, image) -> Generator[str, None, Notes]:
        """Look at an upright RGB PIL picture.

        Yields a short progress text before each step of about 0.3 s; the generator's value is the `Notes`. It can be
        closed between any two steps. The longest step is finding words: up to 1 s for the largest pictures on 2 cores.
        """
        yield "seeing colours"
        colours = see_colours(image)
        words = ()
        for step in self._words.read(image):
            if isinstance(step, str):
                yield step
            else:
                words = step
        drawn = colours.flat >= FLAT
        if not drawn and len(words) < FEW:
            words = tuple(word for word in words if len(word.text) > 1)  # photographs are full of things like an O
        layout = lay_out(words)
        shapes = find_shapes(image, words) if drawn and not colours.plain else ()
        chart = find_chart(shapes, words) if words else None
        things = ()
        # On plain pictures and on pages the classifier invents things.
        covered = sum((word.right - word.left) * word.height for word in words) / (image.width * image.height)
        page = len(words) >= FEW and covered > 0.12
        if not (colours.plain or chart or page or (drawn and words)):
            for step in self._things.name(image):
                if isinstance(step, str):
                    yield step
                else:
                    things = step
        things = tuple(thing for thing in things if thing.name != PAPER and not (drawn and not thing.sure))
        return Notes(image.width, image.height, layout, things, colours, shapes, chart)
