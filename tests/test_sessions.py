"""The store of conversations: one for each id, bounded, and nothing goes on in one that was let go."""

from __future__ import annotations

import threading

import pytest

from engine.models.scripted import ScriptedModel
from engine.sessions import Sessions, new_session_id

SLOW = ["Once ", *[0.02] * 500]


@pytest.fixture
def model():
    model = ScriptedModel()
    yield model
    model.close()


def test_an_id_keeps_its_own_conversation(model):
    sessions = Sessions(model, None)
    one, two = new_session_id(), new_session_id()
    sessions.get(one).ask("first").wait(5)
    sessions.get(two).ask("second").wait(5)
    assert [message.text for message in sessions.get(one).messages] == ["first", "You said: first"]
    assert [message.text for message in sessions.get(two).messages] == ["second", "You said: second"]


def test_ids_are_long_and_never_the_same():
    ids = {new_session_id() for _ in range(1000)}
    assert len(ids) == 1000 and all(len(session_id) == 32 for session_id in ids)


def test_above_the_limit_the_least_recently_used_goes(model):
    sessions = Sessions(model, None, limit=2)
    first = sessions.get("first")
    sessions.get("second")
    assert sessions.get("first") is first  # used again, so now "second" is the oldest
    sessions.get("third")
    assert len(sessions) == 2
    assert "first" in sessions and "third" in sessions and "second" not in sessions


@pytest.mark.parametrize("how", ["crowded out", "dropped"])
def test_a_session_let_go_generates_no_further(model, how):
    """A closed tab or a busy day must not leave the one worker busy for nobody."""
    model.scripts.append(SLOW)
    sessions = Sessions(model, None, limit=1)
    reply = sessions.get("old").ask("go on")
    assert reply.wait(0.05) is None
    sessions.get("new") if how == "crowded out" else sessions.drop("old")
    assert reply.ended.reason == "stopped"
    assert "old" not in sessions


def test_dropping_what_is_not_there_does_nothing(model):
    Sessions(model, None).drop("never seen")


def test_many_threads_asking_for_one_id_get_one_session(model):
    sessions, got = Sessions(model, None), []
    threads = [threading.Thread(target=lambda: got.append(sessions.get("same"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 20 and len({id(session) for session in got}) == 1
