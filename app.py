"""StreamVL's page: what a visitor sees and can click, and the command that serves it.

`create_app` wires the parts of the page to the engine's sessions; `main` reads the flags and serves. Which rows a chat
has is said by `engine/transcript.py`; nothing here knows how a model works.
"""

# No `from __future__ import annotations`: Gradio reads the real types of the handlers, and it is imported late.
import argparse
import asyncio
import html
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import InputError
from engine.models.base import Model
from engine.session import NOTHING
from engine.sessions import Sessions
from engine.transcript import Chat, Exchange, Row

log = logging.getLogger("streamvl.page")

ASSETS = Path(__file__).resolve().parent / "assets"
UPDATE_SECONDS = 1 / 15
"""Shortest time between two updates of the page."""
HEARTBEAT_SECONDS = 0.5
"""Longest time between two updates: each one is where a closed tab is noticed."""

KEYS = "Enter sends, Shift+Enter starts a new line."
FORGOTTEN = "Many people are talking here, so the model had to let go of the messages above. It sees only what follows."
BROKEN = "Something went wrong on this page. Ask again; the details are in the log."
BACK_TO_BOX = """(...values) => {
    if (matchMedia("(pointer: fine)").matches) document.querySelector("#svl-box textarea").focus();
    return values;
}"""  # the keyboard goes on where one types; not on phones, where the keyboard would jump up
WELCOME = """<div class="svl-welcome">
<h2>Ask about a picture or a video</h2>
<p>Add your files to the box below, then ask in your own words.</p>
<ul>
<li><b>Read</b><span>“What is the total on this receipt?”</span></li>
<li><b>Look</b><span>“What animal is this?”</span></li>
<li><b>Follow up</b><span>Earlier pictures stay in the chat.</span></li>
</ul></div>"""


# --- the page ---------------------------------------------------------------------------------------------------------


def create_app(model: Model, processor: Any, *, max_chats: int = 200) -> Any:
    """Build the page for a model that is loaded or still loading; returns the `gr.Blocks`.

    Launch it with `launch_options()`, where Gradio wants the theme and the style sheet.

    Args:
        max_chats: conversations kept at once; the least recently used goes first, and its visitor is told.
    """
    import gradio as gr

    sessions = Sessions(model, processor, limit=max_chats)
    tabs: dict[str, str] = {}  # Gradio's name of a tab -> session id, to let go of what a closed tab held

    def page(chat: Chat) -> dict[Any, Any]:
        return {chatbot: [chatbot_message(row) for row in chat.rows()], box: gr.update(stop_btn=chat.running)}

    async def send(asked: dict | None, chat: Chat | None, request: gr.Request):
        text, files = (asked or {}).get("text") or "", (asked or {}).get("files") or []
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair can't be sent back to the page
        if not text.strip() and not files:
            return {hint: _hint(NOTHING)}
        try:
            chat = chat or Chat()
            session = sessions.get(chat.session_id)
            forgotten = any(exchange.answer for exchange in chat.exchanges) and not session.messages
            for tab in [tab for tab, session_id in tabs.items() if session_id not in sessions]:
                del tabs[tab]
            tabs[request.session_hash] = chat.session_id
            exchange = Exchange(text, tuple(files), session.ask(text, files))
            exchange.notices += [FORGOTTEN] * forgotten
            chat.exchanges.append(exchange)
            chat.read()
            return page(chat) | {box: gr.update(value=None, stop_btn=True), state: chat, hint: _hint(KEYS)}
        except Exception:
            log.exception("sending failed")
            return {hint: _hint(BROKEN)}

    async def stream(chat: Chat | None):
        if chat is None or chat.streaming:  # the reader of the visitor's earlier question goes on with this one
            yield {hint: gr.skip()}  # Gradio empties the outputs of a generator that yields nothing
            return
        chat.streaming, last = True, 0.0
        try:
            while True:
                news, running = chat.read(), chat.running
                if news or not running or time.monotonic() - last > HEARTBEAT_SECONDS:
                    last = time.monotonic()
                    yield page(chat)
                # The last update is one that was made after the end: nothing older can come in behind it.
                if not running and not chat.running:
                    break
                await asyncio.sleep(UPDATE_SECONDS)
        except Exception:
            log.exception("showing an answer failed")
            chat.stop()
            yield {box: gr.update(stop_btn=False), hint: _hint(BROKEN)}
        finally:
            chat.streaming = False
            chat.stop()  # does nothing but when the tab was closed

    async def stop(chat: Chat | None):
        if chat is None:
            return {box: gr.update(stop_btn=False)}
        chat.stop()
        return page(chat)

    async def new_chat(chat: Chat | None):
        if chat is not None:
            sessions.get(chat.session_id).reset()
            chat.exchanges.clear()
        return {chatbot: [], box: gr.update(value=None, stop_btn=False), hint: _hint(KEYS)}

    async def watch():
        waiting = model.loading is not None  # looked at first: a failure is there before the loading ends
        text = banner()
        return header(), gr.update(value=text, visible=bool(text)), gr.Timer(active=waiting)

    def closed(request: gr.Request):
        session_id = tabs.pop(request.session_hash, None)
        if session_id is not None:
            sessions.drop(session_id)

    def header() -> str:
        about = f"<p>{html.escape(model.about)}</p>" if model.about else ""
        return f"<h1>StreamVL <small>{html.escape(model.name)}</small></h1>{about}"

    def banner() -> str:
        progress = model.loading
        if model.failure:
            return f'<p class="svl-banner svl-failed" role="alert">{html.escape(model.failure)}</p>'
        more = "You can ask already; the answer comes when it is ready."
        return f'<p class="svl-banner">{html.escape(progress)}. {more}</p>' if progress else ""

    with gr.Blocks(
        title="StreamVL", fill_height=True, fill_width=True, analytics_enabled=False, delete_cache=(3600, 86400)
    ) as demo:
        state = gr.State()
        timer = gr.Timer(1.0)
        with gr.Row(elem_id="svl-top"):
            head = gr.HTML(header(), elem_id="svl-head")
            new = gr.Button("New chat", elem_id="svl-new", size="sm", scale=0, min_width=96)
        loading = gr.HTML(banner(), visible=bool(banner()), elem_id="svl-loading")
        chatbot = gr.Chatbot(
            elem_id="svl-chat",
            label="Chat",
            show_label=False,
            container=False,
            scale=1,
            height="100%",
            placeholder=WELCOME,
            buttons=["copy"],
            group_consecutive_messages=False,
            allow_file_downloads=False,
            # No single `$`: prices would become formulas.
            latex_delimiters=[
                {"left": "$$", "right": "$$", "display": True},
                {"left": "\\[", "right": "\\]", "display": True},
                {"left": "\\(", "right": "\\)", "display": False},
            ],
        )
        box = gr.MultimodalTextbox(
            elem_id="svl-box",
            label="Your question",
            show_label=False,
            container=False,
            placeholder="Ask, or add a picture or video",
            file_count="multiple",
            max_lines=8,
            max_plain_text_length=1_000_000,
            autofocus=True,
        )
        hint = gr.HTML(_hint(KEYS), elem_id="svl-hint")

        quiet = {"show_progress": "hidden", "api_visibility": "private"}
        everything = [chatbot, box, state, hint]
        box.submit(send, [box, state], everything, queue=False, **quiet).then(
            stream, state, everything, concurrency_limit=None, trigger_mode="multiple", **quiet
        )
        box.stop(stop, state, everything, queue=False, js=BACK_TO_BOX, **quiet)
        new.click(new_chat, state, everything, queue=False, js=BACK_TO_BOX, **quiet)
        gr.on([demo.load, timer.tick], watch, None, [head, loading, timer], queue=False, **quiet)
        demo.unload(closed)
    return demo.queue(default_concurrency_limit=None, max_size=1000)


def chatbot_message(row: Row) -> dict[str, Any]:
    """A row as a message of `gr.Chatbot`."""
    if row.kind == "file" and os.path.exists(row.text):
        return {"role": row.role, "content": [{"path": row.text, "alt_text": os.path.basename(row.text)}]}
    if row.kind == "file":  # the cache is emptied after a day; Gradio fails on a path that is gone
        row = Row(row.role, "notice", f"{os.path.basename(row.text)} is not kept any more.")
    text = row.text
    if row.kind == "text" and row.role == "user":
        text = f'<pre class="svl-asked">{html.escape(text, quote=False)}</pre>'
    elif row.kind not in ("text", "thinking", "thought"):
        text = f'<p class="svl-note svl-{row.kind}">{html.escape(" ".join(text.split()), quote=False)}</p>'
    # A text block: Gradio strips indentation and newlines from bare strings.
    message = {"role": row.role, "content": [{"type": "text", "text": text}]}
    if row.kind in ("thinking", "thought"):
        message["metadata"] = {"title": "Thinking", "status": "pending" if row.kind == "thinking" else "done"}
    return message


def _hint(text: str) -> str:
    return f'<p role="status">{html.escape(text)}</p>'


class OwnMediaOnly:
    """Has the browser load pictures, sound and video from this server only, whatever an answer's text links to."""

    RULE = b"img-src 'self' data: blob:; media-src 'self' data: blob:; object-src 'none'"

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_rule(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", self.RULE)]
            await send(message)

        await self.app(scope, receive, send_with_rule)


def launch_options() -> dict[str, Any]:
    """What `create_app(...).launch` takes so that the page looks and behaves as meant."""
    import gradio as gr
    from starlette.middleware import Middleware

    theme = gr.themes.Base(
        primary_hue="teal",
        neutral_hue="slate",
        radius_size="lg",
        font=["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"],  # no font is fetched
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    ).set(
        body_text_color="*neutral_800",
        body_text_color_dark="*neutral_100",
        body_text_color_subdued="*neutral_500",
        body_text_color_subdued_dark="*neutral_400",
        input_placeholder_color="*neutral_500",
        input_placeholder_color_dark="*neutral_400",
    )
    return {
        "theme": theme,
        "css_paths": ASSETS / "style.css",
        "footer_links": [],
        "max_file_size": "500mb",
        "max_threads": 500,  # how many visitors may wait for an answer at once; the engine has its own line
        "run_history": False,
        "share": False,
        "ssr_mode": False,
        "pwa": False,
        "app_kwargs": {"middleware": [Middleware(OwnMediaOnly)]},
    }


# --- the command ------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        raise InputError(f"{message[:1].upper()}{message[1:]}. See python app.py --help.")


def read_flags(argv: Sequence[str] | None, environ: Mapping[str, str]) -> argparse.Namespace:
    """The settings of the command: `model`, `host` (None: Gradio decides), `port`, `auth` (pairs, or None).

    Each comes from its flag, else from its variable.

    Raises:
        InputError: a flag is not known or a value can't be used.
    """
    parser = _Parser(prog="app.py", description="Serve StreamVL's page.", allow_abbrev=False)
    parser.add_argument("--model", help="what answers (STREAMVL_MODEL; pocket)")
    parser.add_argument("--host", help="address to listen on (STREAMVL_HOST; else GRADIO_SERVER_NAME or 127.0.0.1)")
    parser.add_argument("--port", help="port to listen on (STREAMVL_PORT; 7860)")
    parser.add_argument(
        "--auth", action="append", metavar="USER:PASSWORD", help="who may come in; may be repeated (STREAMVL_AUTH)"
    )
    flags = parser.parse_args(argv)
    flags.model = flags.model or environ.get("STREAMVL_MODEL") or "pocket"
    flags.host = flags.host or environ.get("STREAMVL_HOST") or None
    port = flags.port or environ.get("STREAMVL_PORT") or "7860"
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise InputError(f"The port is {port!r}; it must be a whole number from 1 to 65535.")
    flags.port = int(port)
    pairs = [pair for given in flags.auth or [environ.get("STREAMVL_AUTH", "")] for pair in given.split(",") if pair]
    flags.auth = [tuple(pair.split(":", 1)) for pair in pairs] or None
    if not all(len(pair) == 2 and all(pair) for pair in flags.auth or []):
        raise InputError("A login lacks its user or its password; give --auth user:password, with commas between.")
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the page until Ctrl-C; returns the exit code."""
    from engine.models.loading import LoadingModel

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        flags = read_flags(argv, os.environ)
        model = LoadingModel(flags.model, start=False)
        options = launch_options()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        page = create_app(model, None)
        address = {"server_name": flags.host, "server_port": flags.port}
        _, url, _ = page.launch(**address, auth=flags.auth, prevent_thread_lock=True, quiet=True, **options)
        print(f"StreamVL is on {url}", flush=True)
        model.start()  # not before: beside it, seconds of importing Gradio would go by twice as slowly
        page.block_thread()
    except OSError:
        print(f"Port {flags.port} can't be opened; choose another --port, or another --host.", file=sys.stderr)
        return 2
    finally:
        model.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
