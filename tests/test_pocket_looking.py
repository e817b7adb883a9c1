"""The eyes of `pocket` on drawn pictures: OCR, layout, colours, shapes and charts together."""
from __future__ import annotations

import pytest

pytestmark = pytest.mark.full

pytest.importorskip("rapidocr")
pytest.importorskip("efficientnet_lite_pytorch")

from PIL import Image, ImageDraw, ImageFont  # noqa: E402

from engine.models.pocket.looking import Eyes  # noqa: E402
from engine.models.pocket.notes import MOST_TOKENS, count_tokens  # noqa: E402


@pytest.fixture(scope="module")
def eyes():
    return Eyes(threads=2)


def font(size):
    return ImageFont.load_default(size=size)


def canvas(width, height, colour="white"):
    image = Image.new("RGB", (width, height), colour)
    return image, ImageDraw.Draw(image)


def look(eyes, image):
    steps = eyes.look(image)
    told = []
    while True:
        try:
            told.append(next(steps))
        except StopIteration as done:
            return done.value, told


def test_receipt_lines_carry_their_amounts(eyes):
    image, draw = canvas(420, 420)
    draw.text((100, 20), "GREEN MARKET", fill="black", font=font(30))
    for row, (label, amount) in enumerate((("Milk", "1.20"), ("Bread", "2.35"), ("Tax", "0.28"), ("TOTAL", "3.83"))):
        draw.text((30, 100 + 60 * row), label, fill="black", font=font(26))
        draw.text((390, 100 + 60 * row), amount, fill="black", font=font(26), anchor="ra")
    notes, _ = look(eyes, image)
    assert notes.lines == ("GREEN MARKET", "Milk 1.20", "Bread 2.35", "Tax 0.28", "TOTAL 3.83")
    assert dict(notes.pairs)["TOTAL"] == "3.83"
    assert notes.kind == "receipt"


def test_table_rows_keep_their_cells(eyes):
    image, draw = canvas(700, 260)
    rows = (("City", "Area", "Rain"), ("Berlin", "891", "570"), ("Madrid", "604", "420"))
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            draw.text((40 + 220 * x, 30 + 75 * y), cell, fill="black", font=font(30))
    notes, _ = look(eyes, image)
    assert notes.tables == (rows,)
    assert "Madrid | 604 | 420" in notes.text


def test_labels_above_values_become_pairs(eyes):
    """A ticket's "GATE SEAT" over "B12 14C" once read as two lines that nothing tied together."""
    image, draw = canvas(700, 260)
    for x, (label, value) in enumerate((("GATE", "B12"), ("SEAT", "14C"), ("CLASS", "ECONOMY"))):
        draw.text((40 + 220 * x, 60), label, fill=(90, 90, 90), font=font(20))
        draw.text((40 + 220 * x, 95), value, fill="black", font=font(36))
    notes, _ = look(eyes, image)
    assert dict(notes.pairs) == {"GATE": "B12", "SEAT": "14C", "CLASS": "ECONOMY"}
    assert "SEAT: 14C" in notes.text.splitlines()


def test_sign_words_and_distances_are_read(eyes):
    image, draw = canvas(800, 360, (0, 100, 50))
    for y, (town, far) in enumerate((("Springfield", "25 km"), ("Riverton", "78 km"))):
        draw.text((60, 60 + 130 * y), town, fill="white", font=font(64))
        draw.text((560, 60 + 130 * y), far, fill="white", font=font(56))
    notes, _ = look(eyes, image)
    assert notes.lines == ("Springfield 25 km", "Riverton 78 km")


@pytest.mark.parametrize("value, name", [("red", "red"), ((10, 20, 90), "dark blue"), ("white", "white"), ((20, 150, 40), "green")])
def test_plain_picture_is_plain_and_nothing_is_invented(eyes, value, name):
    """There is nothing to name: the classifier, which would have to guess, isn't asked."""
    notes, told = look(eyes, Image.new("RGB", (320, 240), value))
    assert notes.empty and notes.main_colour == name and not notes.things
    assert not any(step.startswith("naming") for step in told)
    assert notes.text.splitlines() == ["kind: plain colour", f"colour: {name}", "things: none", "words: none"]


@pytest.mark.parametrize("with_values", [True, False])
def test_chart_names_its_highest_and_lowest_bar(eyes, with_values):
    """Values written over the bars are quoted; without them they are measured on the axis and said to be about that."""
    image, draw = canvas(800, 560)
    draw.text((400, 20), "Fruit sold", fill="black", font=font(34), anchor="ma")
    if not with_values:
        for tick in range(0, 101, 20):
            draw.text((80, 480 - 3.8 * tick), str(tick), fill="black", font=font(20), anchor="rm")
    for place, (label, value) in enumerate((("Apples", 52), ("Pears", 31), ("Plums", 88))):
        x = 150 + 200 * place
        draw.rectangle((x, 480 - 3.8 * value, x + 100, 479), fill=(40, 90, 200))
        draw.text((x + 50, 492), label, fill="black", font=font(24), anchor="ma")
        if with_values:
            draw.text((x + 50, 472 - 3.8 * value), str(value), fill="black", font=font(24), anchor="md")
    notes, _ = look(eyes, image)
    about = "" if with_values else "about "
    assert notes.chart.title == "Fruit sold"
    assert f"highest bar: Plums {about}88" in notes.text and f"lowest bar: Pears {about}31" in notes.text


def test_drawn_shapes_are_named_with_their_colours(eyes):
    image, draw = canvas(600, 400)
    draw.ellipse((60, 100, 220, 260), fill="red")
    draw.rectangle((300, 100, 460, 260), fill="blue")
    notes, _ = look(eyes, image)
    assert "shapes: red circle, blue square" in notes.text and not notes.lines


def test_two_columns_are_read_one_after_the_other(eyes):
    image, draw = canvas(1200, 400)
    for column, name in enumerate(("left", "right")):
        for row in range(5):
            draw.text((40 + 600 * column, 30 + 60 * row), f"line {row + 1} of the {name} column of words", fill="black", font=font(28))
    notes, _ = look(eyes, image)
    assert [("left" in line, "right" in line) for line in notes.lines] == [(True, False)] * 5 + [(False, True)] * 5


def test_progress_is_told_and_looking_can_stop_midway(eyes):
    image, draw = canvas(600, 900)
    for row in range(20):
        draw.text((30, 20 + 42 * row), f"row {row} holds a sentence of a fair length", fill="black", font=font(26))
    steps = eyes.look(image)
    told = [next(steps) for _ in range(4)]
    steps.close()
    assert told[1] == "finding words" and any(step.startswith("reading words") for step in told)
    notes, told = look(eyes, image)  # and the eyes still work
    assert len(notes.lines) == 20 and sum(step.startswith("reading words") for step in told) > 2


def test_dense_page_keeps_to_its_cap_and_says_so(eyes):
    """Small print is read at a closer look; whole lines are dropped from the text, never from what questions search."""
    image, draw = canvas(1240, 1754)
    for row in range(70):
        draw.text((60, 40 + 24 * row), f"{row + 1}. the quick brown fox jumps over the lazy dog while seven people wait near home",
                  fill="black", font=font(20))
    notes, _ = look(eyes, image)
    assert len(notes.lines) == 70 and notes.lines[69].startswith("70.")
    assert sum(map(count_tokens, notes.text.splitlines())) <= MOST_TOKENS
    assert 0 < notes.dropped < 70 and notes.text.splitlines()[-1] == f"({notes.dropped} more lines)"
    assert "70 lines" in notes.notices[0]


def test_torch_keeps_its_thread_count(eyes):
    """The classifier runs on one thread; left at that, the language model would run at half its speed."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        _, told = look(eyes, Image.effect_noise((400, 300), 60).convert("RGB"))
        assert "naming things" in told and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("size", [(1, 1), (2000, 20), (20, 2000)])
def test_odd_sizes_are_looked_at(eyes, size):
    """A thin strip was once blown up to 18400 pixels."""
    notes, _ = look(eyes, Image.new("RGB", size, "white"))
    assert notes.empty and (notes.width, notes.height) == size
