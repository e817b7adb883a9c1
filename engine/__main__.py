"""The command line: `python -m engine ask "What is this?" picture.jpg`, `python -m engine fetch pocket`."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from dataclasses import asdict

from .errors import EngineError
from .models.loading import LoadingModel
from .rounds import Reply, RoundEnded, Status, Text
from .session import Session
from .settings import GenerationSettings

STOPPED_BY_KEY = 130  # what shells report for Ctrl-C


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 with a sentence on stderr, or 130 after Ctrl-C."""
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    logging.getLogger("engine").setLevel(logging.WARNING)
    args = _parser().parse_args(argv)
    try:
        return args.run(args)
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return STOPPED_BY_KEY
    except BrokenPipeError:  # the reader of a pipe, `head` say, has gone
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"The answer can't be written ({error.strerror}). Free some space or write it elsewhere.", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description="StreamVL without a browser.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    ask = commands.add_parser("ask", help="ask one question, about files if you like; the answer streams")
    ask.add_argument("question", help="what to ask; may be empty when there is a file")
    ask.add_argument("files", nargs="*", help="pictures")
    ask.add_argument("--model", default="pocket", help="which model answers (default: pocket)")
    ask.add_argument("--dtype", help="float32 or bfloat16 (default: what the machine is fast in)")
    ask.add_argument("--json", action="store_true", help="print each event as a line of JSON")
    ask.add_argument("--max-new-tokens", type=int, default=1024, metavar="N", help="longest answer (default: 1024)")
    ask.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0 (default) is greedy")
    ask.add_argument("--seed", type=int, metavar="N", help="same seed, same text, when the temperature is above 0")
    ask.add_argument("--system-prompt", metavar="TEXT", help="instructions before the question")
    ask.set_defaults(run=_ask)
    fetch = commands.add_parser("fetch", help="fetch a model ahead of time, so that the first start works offline")
    fetch.add_argument("model", choices=["pocket"])
    fetch.set_defaults(run=_fetch)
    return parser


def _ask(args: argparse.Namespace) -> int:
    settings = GenerationSettings(
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        seed=args.seed,
        system_prompt=args.system_prompt,
    )
    model = LoadingModel(args.model, dtype=args.dtype)
    reply = Session(model, None).ask(args.question, args.files, settings)
    try:
        show = _print_json if args.json else _print_text
        while True:
            try:
                show(reply)
                break
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough; the rest is quick
                reply.stop()  # the end is still in the queue: read on to it
    finally:
        model.close()
    ended = reply.ended
    if ended.reason == "failed":
        print(ended.error, file=sys.stderr)
        return 1
    return STOPPED_BY_KEY if ended.reason == "stopped" else 0


def _print_json(reply: Reply) -> None:
    for event in reply:
        print(json.dumps({"event": type(event).__name__, **asdict(event)}, ensure_ascii=False), flush=True)


def _print_text(reply: Reply) -> None:
    """The answer on stdout; progress on stderr, on a line that is wiped, and only where a person can see it."""
    watched = sys.stderr.isatty()
    wipe = "\r\033[K" if watched else ""
    for event in reply:
        if isinstance(event, Status) and event.notice:
            print(f"{wipe}{event.text}", file=sys.stderr, flush=True)
        elif isinstance(event, Status) and watched:
            print(f"{wipe}{event.text}…", end="", file=sys.stderr, flush=True)
        elif isinstance(event, Text):
            print(wipe, end="", file=sys.stderr, flush=True)
            print(event.text, end="", flush=True)
        elif isinstance(event, RoundEnded):
            print(wipe, end="", file=sys.stderr, flush=True)
            if event.text:
                print(flush=True)
            if event.reason in ("stopped", "length"):
                why = "Stopped." if event.reason == "stopped" else "Cut at the length limit; see --max-new-tokens."
                print(why, file=sys.stderr)


def _fetch(args: argparse.Namespace) -> int:
    from .models.pocket.fetch import fetch_pocket

    told = None

    def progress(sentence: str) -> None:
        nonlocal told
        if sentence != told:
            told = sentence
            print(sentence, file=sys.stderr, flush=True)

    print(fetch_pocket(progress))
    return 0


if __name__ == "__main__":
    sys.exit(main())
