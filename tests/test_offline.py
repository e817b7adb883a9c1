"""`offline_generate` as the protocol says: scripted conversations, queries in, items out."""

from __future__ import annotations

import queue
import threading
import time

import numpy as np
import pytest
from clips import clip, number_of
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from engine.media import sample_frames
from engine.models.scripted import ScriptedModel
from engine.rounds import RoundEnded, RoundStarted, Status

START, END = "<|round_start|>", "<|round_end|>"
STOP = {"stop_offline_generate": True}
CANCEL = {"cancel_current_generate": True}
RESET = {"reset_session": True}


class Loop:
    """The loop on a thread of its own, as the seed's example starts it."""

    def __init__(self, *scripts, model=None, events=None):
        self.model = model or ScriptedModel(scripts)
        self.queries, self.out = queue.Queue(), queue.Queue()
        self.thread = threading.Thread(
            target=self.model.offline_generate, args=(None, self.queries, self.out), kwargs={"events": events}, daemon=True
        )  # fmt: skip
        self.thread.start()

    def put(self, *queries):
        for query in queries:
            self.queries.put(query)

    def get(self):
        return self.out.get(timeout=5)

    def round(self):
        """The items up to the next end marker, without the markers."""
        items = [self.get()]
        while items[-1] != END:
            items.append(self.get())
        assert items[0] == START and items.count(START) == 1, items
        return items[1:-1]

    def wait_for_a_step(self):
        while self.model.steps == 0:
            time.sleep(0.001)

    def stop(self):
        self.put(STOP)
        self.thread.join(5)
        assert not self.thread.is_alive()
        left = []
        while not self.out.empty():
            left.append(self.out.get())
        return left

    def seen(self, turn=-1):
        return [(message.role, message.text) for message in self.model.seen[turn]]


@pytest.fixture
def loop():
    loops = []

    def make(*scripts, **more):
        loops.append(Loop(*scripts, **more))
        return loops[-1]

    yield make
    for made in loops:
        made.put(STOP)
        made.thread.join(5)
        made.model.close()


A, B = [["Hello", " there"], ["second"]]


@pytest.mark.parametrize(
    ("what", "queries", "rounds"),
    [
        ("streaming: a piece an item", [{"prompt": "a", "stream_output": True}], [["Hello", " there"]]),
        ("stream is another name", [{"prompt": "a", "stream": True}], [["Hello", " there"]]),
        ("stream_output wins over stream", [{"prompt": "a", "stream_output": False, "stream": True}], [["Hello there"]]),
        ("not streaming: one item", [{"prompt": "a"}], [["Hello there"]]),
        ("one after the other", [{"prompt": "a"}, {"prompt": "b"}], [["Hello there"], ["second"]]),
        ("no dicts: ignored", ["text", 7, None, [1], {"prompt": "a"}], [["Hello there"]]),
        ("idle controls start nothing", [CANCEL, RESET, {"stop_generation": 1}, {"prompt": "a"}], [["Hello there"]]),
        ("a reset with a prompt is a query", [{**RESET, "prompt": "a"}], [["Hello there"]]),
        ("unknown keys have no effect", [{"prompt": "a", "colour": 3, "stream": 1}], [["Hello", " there"]]),
        ("None is as good as nothing", [{"prompt": "a", "generate_kwargs": None, "media_kwargs": None, "images": None}],
         [["Hello there"]]),
        ("messages win over the prompt", [{"messages": [{"role": "user", "content": "m"}], "prompt": "p"}],
         [["Hello there"]]),
    ],
)  # fmt: skip
def test_queries_in_items_out(loop, what, queries, rounds):
    made = loop(A, B)
    made.put(*queries)
    assert [made.round() for _ in rounds] == rounds, what
    assert made.stop() == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({}, "asks nothing"),
        ({"prompt": "  "}, "asks nothing"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": "a", "images": ["/no/such/gone.png"]}, "gone.png"),
        ({"prompt": "a", "images": 3}, "images"),
        ({"prompt": "a", "images": [None]}, "image"),
        ({"prompt": "a", "videos": [{"segments": [[0, 1]]}]}, "video_path"),
        ({"prompt": "a", "videos": [{"video_path": "v.mp4", "segments": [[2, 1]]}]}, "segment"),
        ({"prompt": "a", "thinking_mode": "hard"}, "thinking_mode"),
        ({"prompt": "a", "system_prompt_type": "audio"}, "system_prompt_type"),
        ({"prompt": "a", "generate_kwargs": {"beams": 4}}, "beams"),
        ({"prompt": "a", "generate_kwargs": {"max_new_tokens": 0}}, "max_new_tokens"),
        ({"prompt": "a", "generate_kwargs": "fast"}, "generate_kwargs"),
        ({"prompt": "a", "media_kwargs": {"fps": 1}}, "fps"),
        ({"prompt": "a", "media_kwargs": {"min_frames": 9, "max_frames": 2}}, "min_frames"),
        ({"messages": [{"role": "robot", "content": "a"}]}, "robot"),
        ({"messages": [{"role": "user", "content": [{"type": "audio", "audio": "a.wav"}]}]}, "audio"),
        ({"messages": "hello"}, "messages"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_is_one_error_between_the_markers_and_the_loop_lives(loop, query, named, stream):
    made = loop(A)
    made.put({**query, "stream_output": stream}, {"prompt": "fine"})
    (item,) = made.round()
    assert item.startswith("[ERROR] ") and named in item and "\n" not in item
    assert made.round() == ["Hello there"]
    assert made.seen() == [("user", "fine")], "the failed turn left no trace"


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(1)])
def test_a_model_that_raises_gives_what_came_an_error_and_an_end(loop, error):
    made = loop(["one ", error], A)
    made.put({"prompt": "a", "stream": True}, {"prompt": "b"})
    items = made.round()
    assert items[0] == "one " and items[1].startswith("[ERROR] ") and len(items) == 2
    assert made.round() == ["Hello there"]


def test_the_callers_dict_is_untouched(loop):
    query = {"prompt": "a", "media_kwargs": {"video_fps": 2}, "generate_kwargs": {"temperature": None, "do_sample": True}}
    before = repr(query)
    made = loop(A)
    made.put(query)
    made.round()
    assert repr(query) == before


def test_cancel_acts_at_once_and_overtakes_what_waits(loop):
    made = loop(["a", 0.02] * 500, B)
    made.put({"prompt": "long", "stream": True}, {"prompt": "next"})
    assert [made.get(), made.get()] == [START, "a"]
    made.put(CANCEL)
    while made.get() != END:
        pass
    assert made.round() == ["second"]
    assert made.seen() == [("user", "next")], "a cancelled turn is not kept"
    assert made.model.steps < 900


def test_a_cancelled_turn_is_kept_when_asked(loop):
    made = loop(["part", 0.05, "x", 5.0], B)
    made.put({"prompt": "long", "persist_cancelled_turn": True, "stream": True})
    assert [made.get(), made.get(), made.get()] == [START, "part", "x"]
    made.put({"stop_generation": True}, {"prompt": "next"})
    assert made.get() == END


def test_cancel_before_the_first_text(loop):
    made = loop([0.3, "late"], B)
    made.put({"prompt": "slow"})
    assert made.get() == START
    made.wait_for_a_step()
    made.put(CANCEL)
    assert [made.get(), made.get()] == ["", END]
    made.put({"prompt": "next"})
    assert made.round() == ["second"]


def test_cancel_with_a_new_prompt_stops_the_old_and_asks_the_new(loop):
    made = loop(["a", 0.02] * 500, B)
    made.put({"prompt": "long"})
    assert made.get() == START
    made.wait_for_a_step()
    made.put({**CANCEL, "prompt": "instead"})
    made.get(), made.get()
    assert made.round() == ["second"]


def test_a_stop_ends_the_round_and_answers_what_waits(loop):
    made = loop(["a", 0.02] * 500)
    made.put({"prompt": "long", "stream": True}, {"prompt": "b"}, RESET, {"prompt": "c"})
    assert made.get() == START
    left = made.stop()
    first_end = left.index(END)
    assert set(left[:first_end]) <= {"a"}
    rest = left[first_end + 1 :]
    assert [rest[0], rest[2], rest[3], rest[5]] == [START, END, START, END] and len(rest) == 6
    assert all(item.startswith("[ERROR] ") for item in (rest[1], rest[4]))


def test_a_stop_is_not_lost_when_its_round_fails(loop):
    """In the original a stop was forgotten when the round that it met failed."""
    made = loop([0.1, ValueError("boom")])
    made.put({"prompt": "a"}, STOP)
    made.thread.join(5)
    assert not made.thread.is_alive()


def test_what_follows_a_stop_stays_in_the_queue(loop):
    made = loop()
    made.put(STOP, {"prompt": "for somebody else"})
    made.thread.join(5)
    assert made.queries.get_nowait() == {"prompt": "for somebody else"}


def test_the_session_rules(loop):
    made = loop(*[[word] for word in "abcdefghij"])
    ask = lambda **query: (made.put(query), made.round())[1]  # noqa: E731
    ask(prompt="1")
    ask(prompt="2", persist_session=False)
    assert made.seen() == [("user", "1"), ("assistant", "a"), ("user", "2")]
    ask(prompt="3")
    assert made.seen() == [("user", "1"), ("assistant", "a"), ("user", "3")], "2 left no trace"
    ask(messages=[{"role": "user", "content": "4"}], append_messages_to_session=True)
    assert made.seen()[-3:] == [("user", "3"), ("assistant", "c"), ("user", "4")]
    ask(messages=[{"role": "user", "content": "5"}, "not a message", {"role": "assistant", "content": "cut off"}])
    assert made.seen() == [("user", "5")], "explicit messages stand alone"
    ask(prompt="6")
    assert made.seen() == [("user", "5"), ("assistant", "e"), ("user", "6")], "and replace the history"
    ask(prompt="7", clear_history=True)
    assert made.seen() == [("user", "7")]
    made.put(RESET, {"prompt": "8"})
    made.round()
    assert made.seen() == [("user", "8")]


@pytest.mark.parametrize(
    ("query", "system"),
    [
        ({}, None),
        ({"system_prompt": "Be brief."}, "Be brief."),
        ({"system_prompt": "Be brief.", "thinking_mode": "deep_thinking"}, "Be brief."),
        ({"use_default_system_prompt": True}, "pictures"),
        ({"system_prompt_type": " Text / Image "}, "pictures"),
        ({"system_prompt_type": "video"}, "videos"),
        ({"thinking_mode": " Reasoning "}, "<thinking>"),
        ({"thinking_mode": "standard"}, "pictures"),
    ],
)
def test_the_system_text_is_chosen_by_the_rule(loop, query, system):
    made = loop(A, B)
    made.put({"prompt": "a", **query})
    assert made.round() == ["Hello there"]
    roles = [role for role, _ in made.seen()]
    assert roles == (["system", "user"] if system else ["user"])
    assert system is None or system in made.seen()[0][1]
    made.put({"prompt": "b", "system_prompt": "Later."})
    made.round()
    assert ("system", "Later.") not in made.seen(), "only at the start of a session"


def test_media_stand_before_the_words_and_in_message_order(loop):
    red, blue = Image.new("RGB", (4, 4), "red"), Image.new("RGB", (4, 4), "blue")
    made = loop(A, B)
    content = [{"type": "text", "text": "x"}, {"type": "image", "image": red, "text": "y"},
               {"type": "image_url", "image_url": {"url": blue}}]  # fmt: skip
    made.put({"prompt": "a", "images": [red, blue]}, {"messages": [{"role": "user", "content": content}]})
    made.round(), made.round()
    kinds = [[type(part).__name__[:-4] for part in seen[0].parts] for seen in made.model.seen]
    assert kinds == [["Image", "Image", "Text"], ["Text", "Image", "Text", "Image"]]


def test_each_segment_of_a_video_is_a_part_of_its_own(loop, tmp_path):
    path = clip(tmp_path / "numbers.mp4", 40, rate=10)
    made = loop(A)
    made.put({"prompt": "a", "videos": [{"video_path": path, "segments": [[0, 1.5], [2]]}, str(path)]})
    assert made.round() == ["Hello there"]
    videos = made.model.seen[0][0].media
    assert [(video.start, video.end) for video in videos] == [(0, 1.5), (2, 2.001), (None, None)]
    frames = sample_frames(path, start=videos[1].start, end=videos[1].end, min_frames=8)
    assert [number_of(image) for image in frames.images] == [20] and frames.times == (2.0,)


def test_generate_kwargs_keep_the_originals_meaning(loop):
    got = []

    class Watching(ScriptedModel):
        def answer(self, processor, messages, settings, round_):
            got.append(settings)
            return (yield from super().answer(processor, messages, settings, round_))

    made = loop(model=Watching())
    for kwargs in (
        {"temperature": 0.7}, {"temperature": 0.7, "do_sample": True}, {"temperature": None, "do_sample": True},
        {"temperature": 0, "do_sample": True}, {"max_new_tokens": 7, "vision_chunked_length": 64, "seed": 3},
    ):  # fmt: skip
        made.put({"prompt": "a", "generate_kwargs": kwargs,
                  "media_kwargs": {"video_fps": 2, "video_maxlen": 8, "max_frames": 16, "patch_size": 16}})  # fmt: skip
        made.round()
    assert [settings.temperature for settings in got] == [0, 0.7, 1.0, 0, 0]
    assert got[-1].max_new_tokens == 7 and got[-1].seed == 3
    assert got[0].media.fps == 2 and got[0].media.max_frames == 16


def test_typed_events_carry_the_querys_id(loop):
    events = queue.Queue()
    made = loop(A, events=events)
    made.put({"prompt": "a", "id": 17, "promt": "typing mistake"}, {"prompt": 4, "id": "bad"}, {"prompt": "z"}, STOP)
    made.thread.join(5)
    got = []
    while not events.empty():
        got.append(events.get())
    assert {event.id for event in got if isinstance(event, RoundStarted)} >= {"17", "bad"}
    assert any("promt" in event.text for event in got if isinstance(event, Status) and event.notice)
    assert sum(isinstance(event, RoundEnded) for event in got) == sum(isinstance(event, RoundStarted) for event in got) == 3


def test_several_loops_on_one_model_are_several_sessions(loop):
    first = loop()
    second = loop(model=first.model)
    for made, word in ((first, "A"), (second, "B")):
        made.put({"prompt": word + "1"}, {"prompt": word + "2"})
    assert [first.round() for _ in range(2)] == [["You said: A1"], ["You said: A2"]]
    assert [second.round() for _ in range(2)] == [["You said: B1"], ["You said: B2"]]


def test_several_producers_on_one_queue_each_get_an_end(loop):
    made = loop()
    producers = [threading.Thread(target=made.put, args=[{"prompt": f"{n}-{m}"} for m in range(10)]) for n in range(4)]
    for producer in producers:
        producer.start()
    texts = [made.round()[0] for _ in range(40)]
    assert sorted(texts) == sorted(f"You said: {n}-{m}" for n in range(4) for m in range(10))


@pytest.mark.parametrize("query", [
    {"images": np.zeros((4, 4, 3), np.uint8)},
    {"messages": [{"role": "user", "content": [{"type": "image", "image": np.zeros((4, 4, 3), np.uint8)}]}]},
    {"prompt": "x", "videos": [{"video_path": "a.mp4", "segments": np.array([[0, 1], [1, 2]])}]},
    {"prompt": np.array(["a", "b"])}, {"prompt": "x", "stream": np.zeros(3)}, {"prompt": "x", "persist_session": np.zeros(3)},
    {"messages": [{"role": np.zeros(3), "content": "x"}]}, {"prompt": "x", "system_prompt": np.zeros(3)},
])  # fmt: skip
def test_arrays_have_no_truth_but_get_an_end(loop, query):
    """A NumPy picture ended the loop's thread, and its asker waited for ever."""
    made = loop()
    made.put(query, {"prompt": "still there?", "clear_history": True})
    made.round()
    assert made.round() == ["You said: still there?"]


def test_a_cancel_right_after_the_next_question_stops_that_one(loop):
    """It was spent on the round before, which had ended but was not yet shown."""
    made = loop(["a", 0.02] * 500, ["b", 0.02] * 500)
    made.put({"prompt": "a", "stream": True})
    assert [made.get(), made.get()] == [START, "a"]
    made.put(CANCEL, {"prompt": "b", "stream": True}, CANCEL)
    while made.get() != END:
        pass
    assert len(made.round()) < 100


def test_a_question_in_the_same_dict_as_a_stop_is_answered_with_an_error(loop):
    made = loop()
    made.put({"prompt": "x", **STOP})
    made.thread.join(5)
    assert made.round()[0].startswith("[ERROR] ")


KEYS = st.sampled_from([
    "prompt", "images", "videos", "messages", "append_messages_to_session", "media_kwargs", "generate_kwargs", "stream_output",
    "stream", "thinking_mode", "system_prompt_type", "system_prompt", "use_default_system_prompt", "persist_session",
    "persist_cancelled_turn", "reset_session", "clear_history", "cancel_current_generate", "stop_generation",
    "vision_chunked_length", "id", "other",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["role", "content", "type", "image", "video", "text", "temperature", "x"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5) | st.just(CANCEL) | VALUES, max_size=6))
def test_whatever_comes_every_round_ends_once_and_the_loop_lives(queries):
    made = Loop()
    made.put(*queries, {"prompt": "still there?", "stream": False, "clear_history": True})
    items = [made.get()]
    while items[-2:-1] != ["You said: still there?"]:
        items.append(made.get())
    made.stop()
    made.model.close()
    markers = [item for item in items if item in (START, END)]
    assert markers == [START, END] * (len(markers) // 2)
