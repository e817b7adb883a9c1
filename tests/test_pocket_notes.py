"""Notes and prompting of `pocket`: pure functions, no OCR, no torch."""
from __future__ import annotations

import time

import sys

import pytest

from engine.models.pocket.asking import is_mostly_cjk
from engine.models.pocket.charts import Chart, Shape
from engine.models.pocket.colours import Colours, name_colour
from engine.models.pocket.layout import Layout, Word, lay_out
from engine.models.pocket.notes import Notes
from engine.models.pocket.objects import Thing
from engine.models.pocket.prompting import SYSTEM, picture_text, suffix

PHOTO = Colours((("brown", 0.6), ("grey", 0.2)), "brown", flat=0.05)
PAPER = Colours((("white", 0.9),), "white", flat=0.95)
CAT = Notes(640, 480, things=(Thing("cat", ("tabby",), ("animal", "pet", "mammal"), 0.8),), colours=PHOTO)
DOG = Notes(640, 480, things=(Thing("dog", (), ("animal", "pet", "mammal"), 0.6),), colours=PHOTO)
TOWER = Notes(640, 480, things=(Thing("tower", (), ("building",), 0.2),), colours=PHOTO)
RED = Notes(640, 480, colours=Colours((("red", 1.0),), "red", plain=True, flat=1.0))


def row(y, *cells, height=20):
    """Words at (x, text) in one row, eight pixels a letter."""
    return [Word(text, x, y, x + 10 * len(text), y + height) for x, text in cells]


RECEIPT = Notes(400, 600, lay_out([
    *row(10, (120, "GREEN MARKET")), *row(50, (20, "Date: 12 May 2024"), (300, "10:42")), *row(90, (20, "Milk"), (340, "1.20")),
    *row(130, (20, "Bread"), (340, "2.35")), *row(170, (20, "Subtotal"), (340, "3.55")), *row(210, (20, "Tax"), (340, "0.28")),
    *row(250, (20, "TOTAL"), (340, "3.83")),
]), colours=PAPER)
TABLE = Notes(800, 300, lay_out([
    *row(10, (20, "City"), (220, "Population"), (440, "Area")), *row(60, (20, "Berlin"), (220, "3.7 million"), (440, "891 km2")),
    *row(110, (20, "Madrid"), (220, "3.3 million"), (440, "604 km2")),
]), colours=PAPER)
CHART = Notes(800, 560, Layout(("Fruit sold", "52 | 88", "Apples | Plums")), colours=PAPER,
              chart=Chart("Fruit sold", (("Apples", "52"), ("Plums", "88")), (200.0, 340.0)))


def ask(question, *notes, earlier=()):
    return suffix(question, notes, earlier, new=len(notes))


def test_label_and_amount_stand_on_one_line():
    assert "TOTAL 3.83" in RECEIPT.lines and dict(RECEIPT.pairs)["TOTAL"] == "3.83"


def test_a_dated_line_keeps_its_label_apart_from_the_time():
    """"Date: 12 May 2024   10:42" once became a label "Date: 12 May 2024" with the value "10:42"."""
    assert dict(RECEIPT.pairs)["Date"] == "12 May 2024"


def test_table_rows_are_kept_with_bars():
    assert TABLE.lines[1] == "Berlin | 3.7 million | 891 km2" and TABLE.kind == "table"


def test_labels_over_values_become_pairs():
    layout = lay_out([*row(10, (20, "GATE"), (220, "SEAT"), height=14), *row(34, (20, "B12"), (220, "14C"), height=26),
                      *row(90, (20, "FROM"), (220, "TO"), height=14), *row(114, (20, "LISBON"), (220, "OSLO"), height=26)])
    assert layout.pairs == (("GATE", "B12"), ("SEAT", "14C"), ("FROM", "LISBON"), ("TO", "OSLO"))
    assert layout.lines[0] == "GATE: B12"


def test_columns_of_running_text_are_read_one_by_one():
    words = [Word("THE NEWS OF TODAY AND OF TOMORROW", 20, 0, 780, 30)]
    for line in range(4):
        words += row(60 + 40 * line, (20, f"left column line number {line}"), (420, f"right column line number {line}"))
    sides = [line.split()[0] for line in lay_out(words).lines]
    assert sides == ["THE"] + ["left"] * 4 + ["right"] * 4


def test_no_words_give_no_lines():
    assert lay_out([]) == Layout() and "words: none" in CAT.text


@pytest.mark.parametrize("rgb, name", [
    ((255, 0, 0), "red"), ((200, 30, 40), "red"), ((0, 0, 110), "dark blue"), ((70, 130, 200), "blue"), ((135, 206, 235), "light blue"),
    ((230, 210, 175), "beige"), ((120, 70, 30), "brown"), ((255, 150, 0), "orange"), ((0, 128, 0), "green"), ((250, 250, 250), "white"),
    ((20, 20, 20), "black"), ((128, 128, 128), "grey"), ((128, 0, 128), "purple"), ((255, 192, 203), "pink"),
])
def test_colours_are_named_as_people_name_them(rgb, name):
    assert name_colour(*rgb) == name


def test_plain_picture_says_that_nothing_is_on_it():
    assert RED.text == "kind: plain colour\ncolour: red\nthings: none\nwords: none"
    assert "plain red" in ask("What is in this picture?", RED) and "nothing" in ask("What is in this picture?", RED)


def test_notes_are_one_fact_a_line():
    assert CAT.text.splitlines() == [
        "kind: photograph", "thing: cat (maybe tabby)", "main colour: brown", "other colours: grey", "words: none"]
    assert "highest bar: Plums 88" in CHART.text and "lowest bar: Apples 52" in CHART.text


def test_words_in_a_chart_are_not_said_twice():
    assert CHART.text.count("Apples") == 2 and "words:" not in CHART.text  # among the bars, and as the lowest


@pytest.mark.parametrize("question, fact", [
    ("What is the total?", "3.83"), ("How much did I pay?", "3.83"), ("what's the sum", "3.83"), ("How much was the bread?", "2.35"),
    ("When was this?", "12 May 2024"), ("What is the VAT?", "0.28"), ("Which shop is it?", "GREEN MARKET"), ("What time was it?", "10:42"),
])
def test_the_question_selects_its_line(question, fact):
    assert fact in ask(question, RECEIPT)


def test_total_is_not_the_subtotal():
    assert "3.55" not in ask("What is the total?", RECEIPT)


@pytest.mark.parametrize("question, fact", [
    ("What is the population of Madrid?", "3.3 million"), ("Which city has the largest area?", "Berlin"), ("How big an area has Berlin?", "891"),
])
def test_table_cell_is_found_by_row_and_column(question, fact):
    assert fact in ask(question, TABLE)


def test_follow_up_borrows_from_the_question_before():
    assert "0.28" in ask("And the tax?", RECEIPT, earlier=["What is the total?"])
    said = suffix("And Madrid?", [TABLE], ["What is the population of Berlin?"])
    assert "3.3 million" in said and "604" not in said


def test_highest_bar_is_selected():
    assert "Plums with 88" in ask("Which bar is the highest?", CHART) and "Fruit sold" in ask("What is the title?", CHART)


@pytest.mark.parametrize("question, notes, expected, never", [
    ("Is there a dog?", CAT, "a cat, but no dog", "is a dog"), ("Is there a dog?", DOG, "There is a dog", "no dog"),
    ("Is there a puppy?", DOG, "There is a", " no "), ("Do you see an animal?", CAT, "There is an animal", " no "), ("Are there any vehicles?", CAT, "but no vehicles", "There is a "),
    ("Is there any text?", RED, "There is no text", "is text"), ("Is there any text?", RECEIPT, "There are words", "no text"),
    ("Is this a tower?", TOWER, "Maybe", "There is no"),
])
def test_is_there_a_thing_is_compared_with_what_was_seen(question, notes, expected, never):
    said = ask(question, notes)
    assert expected in said and never not in said


def test_people_are_never_denied():
    """No class of the classifier is a person: "no people" would be a guess."""
    assert "not known" in ask("Are there any people?", CAT) and "There is no" not in ask("Are there any people?", CAT)


@pytest.mark.parametrize("question, said", [
    ("What is the phone number?", "There is no phone number"), ("What is the name of the cashier?", "There is no name"),
    ("When does this open?", "does not show that"),
])
def test_what_the_picture_lacks_is_said_to_be_lacking(question, said):
    assert said in ask(question, CAT)


@pytest.mark.parametrize("question", ["What is the capital of France?", "Who wrote Hamlet?", "How do I boil rice?", "Thanks!", "What is 2 + 2?"])
def test_questions_about_the_world_are_left_alone(question):
    assert ask(question, CAT) == "" and suffix(question, [], []) == ""


def test_unsure_things_stay_unsure():
    assert "maybe a tower" in ask("What is this?", TOWER) and "maybe: tower" in TOWER.text


def test_chinese_gets_told_that_only_english_is_understood():
    assert "English" in ask("这是什么动物？", CAT) and "English" in suffix("你好", [], [])
    assert not is_mostly_cjk("What does 出口 mean?") and not is_mostly_cjk("Qué es esto?") and not is_mostly_cjk("?!")


def test_numbered_pictures_are_told_apart():
    assert picture_text(CAT, 1, 2).startswith("Picture 1:") and picture_text(DOG, 2, 2).startswith("Picture 2:")
    second = ask("What is in the second picture?", CAT, DOG)
    assert "Picture 2 is a photograph of a dog" in second and "cat" not in second
    both = ask("", CAT, DOG)
    assert "Picture 1 is a photograph of a cat" in both and "Picture 2 is a photograph of a dog" in both


def test_only_the_picture_that_holds_the_answer_speaks():
    said = ask("What is the total?", CAT, RECEIPT)
    assert "3.83" in said and "no total" not in said


def test_shape_colours_are_selected():
    notes = Notes(600, 400, shapes=(Shape("circle", "red", 60, 100, 220, 260),), colours=PAPER)
    assert "circle is red" in ask("What colour is the circle?", notes)


def test_long_text_is_cut_by_whole_lines_and_still_searched():
    lines = tuple(f"line {number} says that number {number * 7} is here" for number in range(200))
    notes = Notes(1000, 2000, Layout((*lines, "Secret code: 4711")), colours=PAPER)
    kept = notes.text.splitlines()
    assert kept[-1] == f"({notes.dropped} more lines)" and set(kept[:-1]) - {"words:"} - {line for line in kept if ": " in line} <= set(lines)
    assert notes.dropped and "201 lines" in notes.notices[0]
    assert "4711" in ask("What is the secret code?", notes)


def test_plain_chat_is_told_nothing_of_pictures():
    assert not any(word in SYSTEM.lower() for word in ("picture", "image", "notes"))


def test_prompting_needs_no_heavy_packages():
    """The texts around a question must load on a machine that has neither the OCR nor the classifier."""
    import subprocess

    code = ("import sys; import engine.models.pocket.prompting; "
            "print([name for name in ('torch', 'onnxruntime', 'rapidocr', 'cv2', 'torchvision') if name in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_pasted_book_is_taken_apart_at_once():
    """Rules with `.*` were quadratic: 84,000 characters froze the server for half a minute."""
    for word in ("where ", "all ", "picture both ", "from to "):
        began = time.process_time()
        suffix(word * 20_000, [CAT, DOG], [word * 20_000])
        assert time.process_time() - began < 1
