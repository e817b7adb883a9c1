"""`python -m engine` as a person runs it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "engine", *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, timeout=300, **options
    )  # fmt: skip


def one_sentence(text):
    return text.strip().endswith(".") and "Traceback" not in text and len(text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["ask", "hi", "--max-new-tokens", "0"], "max_new_tokens"),
        (["ask", "hi", "--temperature", "nan"], "temperature"),
        (["ask", "hi", "--seed", "-1"], "seed"),
        (["ask", "hi", "--model", "no/such-model"], "no/such-model"),
        (["ask", "hi", "--dtype", "int3"], "dtype"),
        (["ask", "  "], "Type a question"),
    ],
)
def test_a_wrong_argument_ends_in_one_sentence_that_names_it(arguments, named):
    done = run(*arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert named in done.stderr and one_sentence(done.stderr), done.stderr


def test_no_command_shows_how_to_use_it():
    done = run()
    assert done.returncode == 2 and "usage" in done.stderr


@pytest.mark.full
def test_ask_prints_the_answer_and_nothing_else_to_stdout(tmp_path):
    Image.new("RGB", (300, 200), "red").save(tmp_path / "red.png")
    done = run("ask", "What colour is this?", tmp_path / "red.png", "--max-new-tokens", 40)
    assert done.returncode == 0, done.stderr
    assert "red" in done.stdout.lower() and done.stderr == "", "progress is for terminals only"


@pytest.mark.full
def test_json_prints_one_event_a_line_in_order(tmp_path):
    Image.new("RGB", (300, 200), "blue").save(tmp_path / "blue.png")
    (tmp_path / "bad.png").write_text("words")
    done = run("ask", "Which colour?", tmp_path / "blue.png", tmp_path / "bad.png", "--json", "--max-new-tokens", 8)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [events[0]["event"], events[-2]["event"], events[-1]["event"]] == ["RoundStarted", "Stats", "RoundEnded"]
    assert "".join(event["text"] for event in events if event["event"] == "Text") == events[-1]["text"]
    assert events[-2]["images"] == 1 and events[-2]["answer_tokens"] > 0 and events[-2]["ttft_s"] > 0
    assert any("bad.png" in event["text"] for event in events if event["event"] == "Status" and event["notice"])


@pytest.mark.full
def test_files_that_cant_be_used_end_in_one_sentence(tmp_path):
    (tmp_path / "empty.png").touch()
    done = run("ask", "What is this?", tmp_path / "empty.png")
    assert done.returncode == 1 and "empty.png" in done.stderr and one_sentence(done.stderr)


@pytest.mark.full
@pytest.mark.parametrize("when", ["loading", "answering"])
def test_ctrl_c_stops_cleanly(when):
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "ask", "Tell me a very long story about a lighthouse."],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    if when == "answering":
        assert process.stdout.read(1)
    else:
        time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and b"Traceback" not in err, err
    assert err.decode().strip() == "Stopped."
