"""The page without a browser: what a round's events look like, and what the command accepts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

import app
from app import read_flags
from engine.errors import InputError
from engine.models.scripted import ScriptedModel
from engine.rounds import Round, Stats
from engine.session import Session
from engine.transcript import UNANSWERED, Chat, Exchange, rows, stats_line

ROOT = Path(app.__file__).parent


def shown(exchange: Exchange) -> list[dict]:
    return [app.chatbot_message(row) for row in rows(exchange)]


def after(exchange: Exchange, round_: Round) -> list[tuple[str, str]]:
    """(role, text) of what is shown once all events of the round were read."""
    exchange.reply = round_.reply
    Chat(exchanges=[exchange]).read()
    return [(row["role"], row["content"][0].get("text") or row["content"][0]["path"]) for row in shown(exchange)]


def note(kind: str, text: str) -> tuple[str, str]:
    return "user" if kind == "notice" else "assistant", f'<p class="svl-note svl-{kind}">{text}</p>'


ASKED = ("user", '<pre class="svl-asked">Why?</pre>')


def test_while_nothing_has_come_the_page_says_what_happens():
    round_ = Round()
    exchange = Exchange("Why?")
    assert after(exchange, round_) == [ASKED, note("status", "Thinking")]
    round_.status("Reading picture 1 of 2")
    assert after(exchange, round_) == [ASKED, note("status", "Reading picture 1 of 2")]


def test_text_takes_the_place_of_the_status_byte_for_byte():
    """Gradio strips indentation and newlines from bare strings; a text block keeps them."""
    text = "\n    deep\n\tindented <b>word</b> &amp; $5\n```\n  code\n```\n  "
    round_ = Round()
    round_.status("Thinking")
    for character in text:
        round_.write(character)
    exchange = Exchange("Why?")
    assert after(exchange, round_) == [ASKED, ("assistant", text)]
    assert shown(exchange)[-1]["content"] == [{"type": "text", "text": text}]


def test_a_finished_answer_has_its_numbers_in_a_row_of_their_own():
    round_ = Round()
    round_.counts.images = 2
    round_.write("Because.")
    round_.end("finished")
    assert after(Exchange("Why?"), round_) == [
        ASKED, ("assistant", "Because."), note("facts", "0.0 s to first word · 2 pictures in the chat")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "mark"),
    [("stopped", "Stopped · 0.0 s to first word"), ("length", "Cut at the length limit · 0.0 s to first word")],
)
def test_a_cut_answer_stays_and_is_marked_outside_its_text(reason, mark):
    round_ = Round()
    round_.write("Becau")
    round_.end(reason)
    assert after(Exchange("Why?"), round_) == [ASKED, ("assistant", "Becau"), note("facts", mark)]


def test_stopped_before_any_text_the_question_stays():
    round_ = Round()
    round_.status("Reading picture 1 of 1")
    round_.reply.stop()
    assert after(Exchange("Why?"), round_) == [ASKED, note("unanswered", UNANSWERED["stopped"])]


def test_an_empty_answer_is_told():
    round_ = Round()
    round_.write("\n")
    round_.end("finished")
    assert after(Exchange("Why?"), round_)[-1] == note(
        "unanswered", "The model had nothing to say. Ask in other words."
    )


@pytest.mark.parametrize("partial", ["", "Becau"])
def test_a_failure_is_a_marked_sentence_and_never_an_answer(partial):
    round_ = Round()
    round_.write(partial)
    round_.end("failed", "x.png is <empty>.\nAdd another.")
    seen = after(Exchange("Why?"), round_)
    assert note("error", "x.png is &lt;empty&gt;. Add another.") in seen
    assert seen[:-1 - bool(partial)] == [ASKED, ("assistant", partial)][: 1 + bool(partial)]


def test_notices_stay_with_the_question_after_the_end():
    round_ = Round()
    round_.status("a.png was shrunk to fit.", notice=True)
    round_.write("Because.")
    round_.end("finished")
    assert after(Exchange("Why?"), round_)[:3] == [
        ASKED, note("notice", "a.png was shrunk to fit."), ("assistant", "Because.")
    ]  # fmt: skip


def test_thinking_is_folded_away_and_apart_from_the_answer():
    round_ = Round()
    round_.think("Hmm. ")
    exchange = Exchange("Why?")
    after(exchange, round_)
    assert shown(exchange)[1]["metadata"] == {"title": "Thinking", "status": "pending"}
    round_.write("Because.")
    after(exchange, round_)
    assert [row["content"][0]["text"] for row in shown(exchange)[1:]] == ["Hmm. ", "Because."]
    assert shown(exchange)[1]["metadata"]["status"] == "done"


def test_what_the_user_typed_is_shown_as_typed():
    seen = after(Exchange("  <image> &lt; </pre> **no**\n\n\tmore"), Round())
    assert seen[0][1] == '<pre class="svl-asked">  &lt;image&gt; &amp;lt; &lt;/pre&gt; **no**\n\n\tmore</pre>'


def test_files_come_first_and_one_that_is_gone_is_told(tmp_path):
    """Gradio raises on a path that its cache has lost, which would break the whole chat."""
    kept = tmp_path / "kept.png"
    kept.write_bytes(b"x")
    seen = after(Exchange("Why?", [str(kept), str(tmp_path / "gone.png")]), Round())
    assert seen[:3] == [("user", str(kept)), note("notice", "gone.png is not kept any more."), ASKED]


def test_a_question_in_between_ends_the_answer_before_it_and_never_mixes_with_it():
    model = ScriptedModel([["one ", *[0.01] * 500], ["two"]])
    session, chat = Session(model, None), Chat()
    chat.exchanges.append(Exchange("first", reply=session.ask("first")))
    while not chat.exchanges[0].answer:
        chat.read()
    chat.exchanges.append(Exchange("second", reply=session.ask("second")))
    chat.exchanges[1].reply.wait(5)
    chat.read()
    first, second = chat.exchanges
    assert (first.answer, first.ended.reason) == ("one ", "stopped")
    assert (second.answer, second.ended.reason) == ("two", "finished")
    assert not chat.running
    model.close()


def test_numbers_read_like_a_sentence():
    assert stats_line(Stats(0.83, 24.4, images=1)) == "0.8 s to first word · 24 tokens/s · 1 picture in the chat"
    assert stats_line(Stats(12.0, 3.25, images=2, frames=1)) == (
        "12.0 s to first word · 3.2 tokens/s · 2 pictures in the chat · 1 video frame in the chat"
    )
    assert stats_line(Stats()) == ""


def test_the_page_is_built_without_a_warning_and_publishes_no_event():
    pytest.importorskip("gradio")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        demo = app.create_app(ScriptedModel(), None)
        options = app.launch_options()
    assert [str(warning.message) for warning in caught if "radio" in warning.filename] == []
    assert demo.get_api_info()["named_endpoints"] == {}
    assert options["run_history"] is False and options["share"] is False and options["ssr_mode"] is False
    assert "http" not in "".join(options["theme"]._stylesheets), "the page must open without a network"


class Page:
    """The page's handlers, called as Gradio calls them, for one tab."""

    def __init__(self, model, tab: str = "tab", demo=None, **more) -> None:
        self.demo = demo or app.create_app(model, None, **more)
        self.fns = {block_fn.name: block_fn.fn for block_fn in self.demo.fns.values()}
        self.tab, self.chat, self.updates = tab, None, []

    async def send(self, text: str) -> None:
        given = await self.fns["send"]({"text": text, "files": []}, self.chat, SimpleNamespace(session_hash=self.tab))
        self.chat = next((value for value in given.values() if isinstance(value, Chat)), self.chat)

    async def stream(self) -> None:
        async for update in self.fns["stream"](self.chat):
            self.take(update)

    def take(self, update: dict) -> None:
        self.updates.append({component.elem_id: value for component, value in update.items()})

    def shown(self) -> str:
        return str(self.chat.rows())


def test_a_fast_model_moves_the_page_about_15_times_a_second():
    """Each update makes the server compare and the browser render the whole chat."""
    model = ScriptedModel([[step for _ in range(200) for step in ("a ", 0.003)]])
    page = Page(model)

    async def talk():
        await page.send("go")
        await page.stream()

    start = time.monotonic()
    asyncio.run(talk())
    seconds = time.monotonic() - start
    assert 3 <= len(page.updates) <= 15 * seconds + 2
    assert page.updates[-1]["svl-box"]["stop_btn"] is False and "a a a" in str(page.updates[-1]["svl-chat"])
    model.close()


@pytest.mark.parametrize("end", ["stop", "new_chat"])
def test_the_last_update_is_made_after_the_end(end):
    """Stop and New chat answer on another connection: an older update could come in behind and undo them."""
    model = ScriptedModel([["one ", *[0.01] * 500]])
    page = Page(model)

    async def talk():
        await page.send("go")
        async for update in page.fns["stream"](page.chat):
            page.take(update)
            if page.chat.running and page.chat.exchanges[0].answer:
                await page.fns[end](page.chat)  # while this update is still on its way
                page.updates.append("ended")

    asyncio.run(talk())
    last = page.updates[page.updates.index("ended") + 1 :][-1]
    assert last["svl-box"]["stop_btn"] is False
    assert "Stopped" in str(last["svl-chat"]) if end == "stop" else last["svl-chat"] == []
    model.close()


def test_one_reader_shows_both_answers_when_a_question_comes_in_between():
    model = ScriptedModel([["one ", *[0.01] * 500], ["two ", 0.05, "three"]])
    page = Page(model)

    async def talk():
        await page.send("first")
        streaming = asyncio.create_task(page.stream())
        while not page.chat.exchanges[0].answer:
            await asyncio.sleep(0.01)
        await page.send("second")
        before = len(page.updates)
        await page.stream()  # of the second question: leaves it to the first
        assert len(page.updates) == before + 1 and list(page.updates[-1]) == ["svl-hint"]
        await streaming

    asyncio.run(talk())
    assert "two three" in str(page.updates[-1]["svl-chat"]) and page.updates[-1]["svl-box"]["stop_btn"] is False
    model.close()


def test_a_chat_that_was_let_go_is_told_to_its_visitor():
    model = ScriptedModel()
    one = Page(model, "one", max_chats=1)
    two = Page(model, "two", demo=one.demo)

    async def talk():
        for page in (one, two, one):
            await page.send("hello")
            await page.stream()

    asyncio.run(talk())
    assert one.shown().count(app.FORGOTTEN) == 1 and app.FORGOTTEN not in two.shown()
    assert [len(messages) for messages in model.seen] == [1, 1, 1]
    model.close()


def test_an_error_of_the_page_is_one_sentence_and_the_traceback_goes_to_the_log(caplog, monkeypatch):
    page = Page(ScriptedModel())
    monkeypatch.setattr(app, "Exchange", lambda *_: 1 / 0)
    given = asyncio.run(page.fns["send"]({"text": "hi", "files": []}, None, SimpleNamespace(session_hash="tab")))
    assert [app.BROKEN in value for value in given.values()] == [True]
    assert "ZeroDivisionError" in caplog.text


def test_flags_beat_variables_and_variables_beat_defaults():
    plain = read_flags([], {})
    assert (plain.model, plain.host, plain.port, plain.auth) == ("pocket", None, 7860, None)
    variables = {
        "STREAMVL_MODEL": "big", "STREAMVL_HOST": "0.0.0.0", "STREAMVL_PORT": "80", "STREAMVL_AUTH": "a:b,c:d:e"
    }  # fmt: skip
    given = read_flags([], variables)
    assert (given.model, given.host, given.port) == ("big", "0.0.0.0", 80)
    assert given.auth == [("a", "b"), ("c", "d:e")]
    flags = "--model small --host ::1 --port 81 --auth x:y --auth z:w".split()
    given = read_flags(flags, variables)
    assert (given.model, given.host, given.port, given.auth) == ("small", "::1", 81, [("x", "y"), ("z", "w")])


@pytest.mark.parametrize(
    ("argv", "variables", "word"),
    [
        (["--port", "http"], {}, "'http'"),
        (["--port", "70000"], {}, "65535"),
        ([], {"STREAMVL_PORT": "0"}, "'0'"),
        (["--auth", "nobody"], {}, "user:password"),
        ([], {"STREAMVL_AUTH": ":secret"}, "user:password"),
        (["--prot", "80"], {}, "--prot"),
        (["--port"], {}, "--port"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(argv, variables, word):
    with pytest.raises(InputError, match=word):
        read_flags(argv, variables)


def test_a_wrong_flag_ends_the_command_with_one_sentence_and_code_2():
    """Before anything slow is imported, so that the sentence comes at once."""
    code = "import sys, app; code = app.main(['--port', '-1']); sys.exit(code if 'gradio' not in sys.modules else 9)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "The port is '-1'; it must be a whole number from 1 to 65535.\n"


def test_the_engine_does_not_know_gradio():
    code = "import engine, engine.sessions, sys; sys.exit('gradio' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
