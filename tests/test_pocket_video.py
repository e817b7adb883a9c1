"""The real `pocket` watches clips that the test draws, and answers about them."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from clips import clip
from drawings import font
from PIL import Image, ImageDraw

from engine import GenerationSettings, Session, load_model
from engine.rounds import Status

pytestmark = pytest.mark.full

SHORT = GenerationSettings(max_new_tokens=60)
SIZE = (480, 320)


def captions(index, width, height):
    """Three captions, four seconds each, at 5 frames a second."""
    picture = Image.new("RGB", (width, height), (240, 240, 230))
    text = ("Boil the water", "Add the rice", "Wait ten minutes")[index // 20]
    ImageDraw.Draw(picture).text((40, 130), text, fill="black", font=font(44))
    return np.asarray(picture)


def ball(x0, y0, x1, y1, r0=40, r1=40, frames=20):
    """A red ball on white that goes from one place to another."""

    def draw(index, width, height):
        part = index / (frames - 1)
        x, y, r = x0 + (x1 - x0) * part, y0 + (y1 - y0) * part, r0 + (r1 - r0) * part
        picture = Image.new("RGB", (width, height), "white")
        ImageDraw.Draw(picture).ellipse((x - r, y - r, x + r, y + r), fill=(220, 20, 30))
        return np.asarray(picture)

    return draw


def cut(index, width, height):
    """Three seconds red, then three seconds blue."""
    return np.full((height, width, 3), (200, 20, 20) if index < 15 else (20, 40, 200), np.uint8)


CLIPS = {
    "captions": (captions, 60), "right": (ball(60, 160, 420, 160), 20), "left": (ball(420, 160, 60, 160), 20),
    "up": (ball(240, 270, 240, 50), 20), "bigger": (ball(240, 160, 240, 160, 25, 120), 20), "cut": (cut, 30),
}  # fmt: skip
QUESTIONS = [
    ("captions", "Which caption came second?", r"(?i)add the rice"),
    ("captions", "List the steps in order.", r"(?is)boil.*rice.*wait"),
    ("captions", "What is on screen at second 5?", r"(?i)add the rice"),
    ("captions", "What comes after \"Add the rice\"?", r"(?i)wait ten"),
    ("captions", "How long is the clip?", r"\b12\b"),
    ("cut", "What is shown first and what after that?", r"(?is)red.*blue"),
    ("right", "Which way does the ball move?", r"(?i)left to right"),
    ("left", "Which way does the ball move?", r"(?i)right to left"),
    ("up", "Does the ball move up or down?", r"(?i)\bup\b"),
    ("bigger", "Does the ball get bigger or smaller?", r"(?i)bigger"),
]


@pytest.fixture(scope="module")
def pocket():
    model, processor = load_model("pocket")
    yield model, processor
    model.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    return {
        name: clip(folder / f"{name}.mp4", frames, rate=5, size=SIZE, draw=draw) for name, (draw, frames) in CLIPS.items()
    }


def test_at_least_eight_of_ten_questions_about_clips_are_answered_right(pocket, made):
    answers = []
    for name, question, wanted in QUESTIONS:
        ended = list(Session(*pocket).ask(question, [made[name]], SHORT))[-1]
        answers.append((bool(re.search(wanted, ended.text)), name, question, ended.text or ended.error))
    print(*answers, sep="\n")
    assert sum(right for right, *_ in answers) >= 8, answers


def test_a_video_is_watched_with_progress_counted_and_remembered(pocket, made):
    session = Session(*pocket)
    events = list(session.ask("How long is the clip?", [made["captions"]], GenerationSettings(max_new_tokens=30)))
    assert events[-2].frames == 12 and events[-2].images == 0
    again = list(session.ask("What does the last caption say?", settings=SHORT))
    assert not any(event.text.startswith("Watching video 1 of 1:") for event in again if isinstance(event, Status))
    assert "Wait ten" in again[-1].text


def test_stop_while_a_video_is_watched_frees_the_asker_at_once(pocket, tmp_path):
    path = clip(tmp_path / "new.mp4", 60, rate=5, size=SIZE, draw=ball(60, 60, 420, 260, frames=60))
    reply = Session(*pocket).ask("What happens?", [path], SHORT)
    for event in reply:
        if isinstance(event, Status) and event.text.startswith("Watching video 1 of 1:"):
            break
    began = time.monotonic()
    reply.stop()
    assert list(reply)[-1].reason == "stopped" and time.monotonic() - began < 0.3


def test_a_video_that_cant_be_read_ends_in_a_sentence(pocket, tmp_path):
    (tmp_path / "empty.mp4").write_bytes(b"\0\0\0\x20ftypisom" + b"\0" * 200)
    ended = list(Session(*pocket).ask("What happens?", [tmp_path / "empty.mp4"], SHORT))[-1]
    assert ended.reason == "failed" and "empty.mp4" in ended.error
