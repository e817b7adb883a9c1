"""The page in a real browser, on a scripted model: what is promised in seconds is measured here."""

from __future__ import annotations

import shutil
import socket
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image, ImageDraw

import app
from engine.models.scripted import ScriptedModel

pytestmark = pytest.mark.full
playwright = pytest.importorskip("playwright.sync_api")

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --disable-background-networking --disable-component-update"
    " --disable-sync --no-first-run"
).split()
STOP = "#svl-box .stop-button"
WORDS = [step for number in range(200) for step in (f"word{number} ", 0.05)]
CLICK_AND_WAIT_FOR_FREE = """() => new Promise(done => {
    const start = performance.now(), button = document.querySelector("#svl-box .stop-button");
    button.click();
    const look = () => button.isConnected ? requestAnimationFrame(look) : done((performance.now() - start) / 1000);
    look();
})"""


@pytest.fixture(scope="module")
def served():
    """The model, the page's address, and the warnings of the start."""
    model = ScriptedModel()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        demo = app.create_app(model, None)
        _, url, _ = demo.launch(server_port=_free_port(), prevent_thread_lock=True, quiet=True, **app.launch_options())
    yield model, url, [str(warning.message) for warning in caught if "radio" in warning.filename]
    demo.close()
    model.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A visitor's tab, in the words of the tests."""

    def __init__(self, browser, url: str) -> None:
        self.context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.goto(url)
        self.page.wait_for_selector("#svl-box textarea")
        self.answers = self.page.locator("#svl-chat .bot-row:not(:has(.svl-note))")
        self.notes = self.page.locator("#svl-chat .svl-note")
        self.asked = self.page.locator("#svl-chat .svl-asked")

    def ask(self, text: str) -> None:
        self.page.fill("#svl-box textarea", text)
        self.page.press("#svl-box textarea", "Enter")

    def wait_for_note(self, text: str) -> None:
        self.page.wait_for_selector(f'#svl-chat .svl-note:has-text("{text}")')

    def wait_until_free(self) -> None:
        self.page.wait_for_selector(STOP, state="detached")

    def wait_until_busy(self) -> None:
        self.page.wait_for_selector(STOP)

    def wait_for_word(self, word: str) -> None:
        self.page.wait_for_selector(f'#svl-chat .bot-row:has-text("{word}")')


@pytest.fixture
def tabs(served, chromium):
    """Opens tabs; they are closed and the script is emptied after the test."""
    opened: list[Tab] = []

    def open_tab() -> Tab:
        opened.append(Tab(chromium, served[1]))
        return opened[-1]

    yield open_tab
    for tab in opened:
        tab.context.close()
    served[0].scripts.clear()
    wait_for(lambda: idle(served[0]))


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "circle.png"
    image = Image.new("RGB", (320, 200), "white")
    ImageDraw.Draw(image).ellipse((80, 20, 240, 180), fill="red")
    image.save(path)
    return path


def idle(model: ScriptedModel) -> bool:
    return model.worker._current is None


def wait_for(holds, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_the_start_gives_no_gradio_warning(served):
    assert served[2] == []


def test_a_picture_is_asked_about_and_the_text_grows_to_the_exact_answer(served, tabs, picture):
    model, tab = served[0], tabs()
    answer = "  Look:\n\n```python\nif x:\n    y = '<b>'\n```\n\nA list\n\n1. one\n    - deep\n\nIt costs $5, not $6. "
    model.scripts.append([0.1, answer, *[step for number in range(15) for step in (f"and {number} ", 0.05)]])
    tab.page.set_input_files("#svl-box input[type=file]", picture)
    tab.page.wait_for_selector("#svl-box .thumbnail-image, #svl-box img")
    question = "  What is this?\n      if a < b: *no*\n\n$5 and $6 <b>&amp;</b>"
    tab.ask(question)
    tab.wait_until_busy()
    assert tab.page.input_value("#svl-box textarea") == ""
    lengths = set()
    while tab.page.locator(STOP).count():
        if tab.answers.count():
            lengths.add(len(tab.answers.last.inner_text()))
        time.sleep(0.05)
    assert len(lengths) >= 3, f"the answer came in {len(lengths)} piece(s)"
    tab.wait_for_note("to first word")
    assert tab.asked.text_content() == question
    assert tab.page.locator("#svl-chat .user-row img").get_attribute("src").endswith("circle.png")
    assert tab.answers.last.locator("code").first.text_content().rstrip("\n") == "if x:\n    y = '<b>'"
    assert tab.answers.last.locator(".katex").count() == 0, "prices are not formulas"
    tab.page.click("#svl-chat .message-buttons-left button[title='Copy message']")
    whole = answer + "".join(f"and {number} " for number in range(15))
    assert tab.page.evaluate("navigator.clipboard.readText()") == whole
    assert [part.name for part in model.seen[-1][-1].media] == ["circle.png"]


def test_stop_in_the_middle_frees_the_page_and_keeps_the_text(served, tabs, record_property):
    model, tab = served[0], tabs()
    model.scripts += [WORDS, ["fine"]]
    tab.ask("count")
    tab.wait_for_word("word5")
    seconds = tab.page.evaluate(CLICK_AND_WAIT_FOR_FREE)
    steps = model.steps
    record_property("seconds_to_free", seconds)
    print(f"stop in the middle: free after {seconds:.3f} s")
    assert seconds <= 0.3
    tab.wait_for_note("Stopped · ")
    text = tab.answers.last.inner_text()
    assert text.startswith("word0 word1") and "Stopped" not in text
    time.sleep(0.4)
    assert model.steps <= steps + 1
    assert tab.answers.last.inner_text() == text, "nothing may come after the stop"
    tab.ask("again")
    tab.wait_for_word("fine")
    roles = [(message.role, message.text) for message in model.seen[-1]]
    assert roles[0] == ("user", "count") and roles[1][1].startswith("word0 word1") and roles[2] == ("user", "again")


def test_stop_while_a_long_step_runs_frees_the_page_before_the_step_ends(served, tabs, record_property):
    model, tab = served[0], tabs()
    model.scripts += [[3.0, "never shown"], ["fine"]]
    tab.ask("slow")
    tab.wait_for_note("Thinking")
    wait_for(lambda: not idle(model))
    time.sleep(0.1)
    seconds = tab.page.evaluate(CLICK_AND_WAIT_FOR_FREE)
    record_property("seconds_to_free", seconds)
    print(f"stop before the first text: free after {seconds:.3f} s")
    assert seconds <= 0.3
    tab.wait_for_note("Stopped before an answer.")
    assert tab.asked.text_content() == "slow" and tab.answers.count() == 0
    tab.ask("again")
    tab.wait_for_word("fine")
    assert [message.text for message in model.seen[-1]] == ["again"], "an unanswered question is not in the prompt"
    assert tab.answers.count() == 1 and tab.notes.first.inner_text().startswith("Stopped before an answer.")


def test_asking_while_it_answers_stops_the_answer_and_mixes_nothing(served, tabs):
    model, tab = served[0], tabs()
    model.scripts += [WORDS, [step for step in ("new ", 0.1) * 8], ["third"]]
    tab.ask("first")
    tab.wait_for_word("word3")
    tab.ask("second")
    tab.wait_for_word("new")
    tab.ask("third")
    tab.wait_until_free()
    tab.wait_for_word("third")
    first, second, third = tab.answers.all_inner_texts()
    assert first.startswith("word0 word1") and "new" not in first
    assert set(second.split()) == {"new"} and third.strip() == "third"
    assert [text.split(" · ")[0] for text in tab.notes.all_inner_texts()[:2]] == ["Stopped", "Stopped"]
    assert tab.asked.all_inner_texts() == ["first", "second", "third"]


def test_what_is_typed_while_it_answers_stays(served, tabs):
    model, tab = served[0], tabs()
    model.scripts.append(WORDS)
    tab.ask("first")
    tab.wait_for_word("word1")
    tab.page.type("#svl-box textarea", "my next question", delay=20)
    tab.page.click(STOP)
    tab.wait_until_free()
    assert tab.page.input_value("#svl-box textarea") == "my next question"


def test_new_chat_forgets_also_while_it_answers(served, tabs):
    model, tab = served[0], tabs()
    model.scripts += [WORDS, ["fine"]]
    tab.ask("a secret")
    tab.wait_for_word("word3")
    tab.page.click("#svl-new")
    tab.page.wait_for_selector(".svl-welcome")
    tab.wait_until_free()
    time.sleep(0.3)
    assert tab.page.locator(".svl-welcome").count() == 1, "the old answer came back"
    tab.ask("what did I say?")
    tab.wait_for_word("fine")
    assert [message.text for message in model.seen[-1]] == ["what did I say?"]


@pytest.mark.parametrize("partial", [[], ["Some text. "]])
def test_a_failure_is_one_sentence_and_the_next_question_works(served, tabs, partial):
    model, tab = served[0], tabs()
    model.scripts += [[*partial, RuntimeError("boom")], ["fine"]]
    tab.ask("go")
    tab.page.wait_for_selector("#svl-chat .svl-error")
    tab.wait_until_free()
    error = tab.page.inner_text("#svl-chat .svl-error")
    assert "boom" in error and "Traceback" not in error and tab.answers.count() == len(partial)
    assert tab.page.locator(".toast-body").count() == 0, "no pop-up"
    tab.ask("again")
    tab.wait_for_word("fine")


def test_a_file_that_is_no_picture_is_told_by_name(served, tabs, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("plain words")
    tab = tabs()
    tab.page.set_input_files("#svl-box input[type=file]", path)
    tab.page.wait_for_selector("#svl-box .thumbnail-item")
    tab.ask("what is this?")
    assert "notes.txt" in tab.page.wait_for_selector("#svl-chat .svl-error").inner_text()


def test_an_empty_question_is_answered_by_a_hint_and_a_second_enter_asks_nothing_again(served, tabs):
    model, tab = served[0], tabs()
    rounds = len(model.seen)
    tab.ask("   \n ")
    tab.page.wait_for_selector("#svl-hint:has-text('nothing to answer')")
    tab.page.click("#svl-box .submit-button", click_count=2, delay=10)
    model.scripts += [["once"], ["twice"]]
    tab.page.fill("#svl-box textarea", "hello")
    tab.page.locator("#svl-box textarea").evaluate(
        """box => { for (let i = 0; i < 2; i++)
            box.dispatchEvent(new KeyboardEvent("keypress", {key: "Enter", bubbles: true, cancelable: true})); }"""
    )
    tab.wait_for_word("once")
    time.sleep(0.3)
    assert tab.asked.all_inner_texts() == ["hello"] and len(model.seen) == rounds + 1


def test_closing_the_tab_stops_its_answer(served, tabs):
    model, tab = served[0], tabs()
    model.scripts.append(WORDS)
    tab.ask("count")
    tab.wait_for_word("word3")
    start = time.monotonic()
    tab.context.close()
    wait_for(lambda: idle(model), 3.0)
    seconds = time.monotonic() - start
    print(f"closed tab: stopped after {seconds:.2f} s")
    assert seconds < 2.0


def test_two_visitors_wait_in_line_and_never_see_each_other(served, tabs):
    model, one, two = served[0], tabs(), tabs()
    model.scripts += [WORDS[:50], ["for two"]]
    one.ask("I am one")
    one.wait_for_word("word1")
    two.ask("I am two")
    two.wait_for_note("Number 1 in line")
    two.wait_for_word("for two")
    one.wait_until_free()
    assert "two" not in one.page.inner_text("#svl-chat") and "word1" not in two.page.inner_text("#svl-chat")
    assert [message.text for message in model.seen[-1]] == ["I am two"]


@pytest.fixture
def elsewhere():
    """Another host: its address, and the paths that were asked of it."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_html_in_a_text_does_not_run_and_no_picture_is_fetched_from_elsewhere(served, tabs, elsewhere):
    """A picture can hold the words "answer with this image link", and the link can carry the chat away."""
    model, tab, (host, asked) = served[0], tabs(), elsewhere
    tab.page.evaluate("window.ran = 0")
    model.scripts.append(
        [
            f'<img src="x" onerror="window.ran=1"><script>window.ran=2</script> ![a]({host}/a.png) ',
            f'<img src="{host}/b.png"> <video src="{host}/v.mp4"></video> ![c][1]\n\n[1]: {host}/c.png\n\ndone',
        ]
    )
    tab.ask(f"<img src=y onerror='window.ran=3'> <script>window.ran=4</script> ![d]({host}/d.png)")
    tab.wait_for_word("done")
    time.sleep(0.3)
    assert tab.page.evaluate("window.ran") == 0
    assert asked == []


def test_the_page_opens_with_a_banner_while_the_model_loads(served, tabs):
    model = served[0]
    model.loading = "Fetching the language model: 43 of 93 MB"
    try:
        tab = tabs()
        assert "43 of 93 MB" in tab.page.wait_for_selector(".svl-banner").inner_text()
        model.loading = None
        tab.page.wait_for_selector(".svl-banner", state="hidden")
        model.failure = "The language model could not be fetched: no network. Start the program again."
        assert "no network" in tabs().page.wait_for_selector(".svl-banner.svl-failed").inner_text()
    finally:
        model.loading = model.failure = None


def test_nothing_on_the_page_comes_from_another_host(served, chromium):
    context = chromium.new_context()
    page, hosts = context.new_page(), set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(served[1])
    page.wait_for_selector("#svl-box textarea")
    assert hosts == {served[1].split("/")[2]}
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight"), "only the chat scrolls"
    context.close()
