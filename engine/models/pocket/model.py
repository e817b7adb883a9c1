"""Puts `pocket` together: eyes that write notes, and SmolLM2-135M-Instruct that answers from them."""

from __future__ import annotations

import logging
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from ...errors import EngineUnreachable, InputError
from ...media import open_image
from ...media.videos import sample_steps
from ...messages import MediaPart, Message, TextPart, VideoPart
from ...prompt import Piece, Prompt, PromptBuilder, Turn
from ...rounds import Round
from ...settings import GenerationSettings, MediaSettings
from ..local import LocalModel
from .fetch import fetch_pocket
from .looking import Eyes
from .prompting import SYSTEM, Seen, picture_text, suffix
from .quiet import quiet_transformers
from .watching import watch

log = logging.getLogger(__name__)

ABOUT = (
    "Reads text, names about 1,000 kinds of things, sees colours, follows short videos; answers in English."
    " For real understanding choose a larger model."
)
CONTEXT = 8192
NOTES_KEPT = 500
"""Pictures whose notes are kept; a note is a few hundred bytes."""
FEWEST_FRAMES = 8
"""Of a short video at least this many frames are looked at, where the settings allow it: two show no movement."""
GONE = "(A picture that can't be opened any more.)"


def load_pocket(dtype: str | None, progress: Callable[[str], None]) -> tuple[LocalModel, PocketProcessor]:
    """Fetch what is missing, load both halves, and return model and processor.

    Args:
        dtype: "float32", "bfloat16" or "float16"; None chooses by the machine.

    Raises:
        EngineUnreachable: the weights can't be fetched, or a package is missing.
    """
    folder = fetch_pocket(progress)
    progress("Loading the language model")
    # Read when torch is imported first. OpenMP's threads wait for each other by spinning; with a browser on the same
    # two cores that took decoding from 22 to 3 tokens/s. Spinning less: 9 beside other work, 20 alone.
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
    try:
        import torch
        from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

        device = "cuda" if torch.cuda.is_available() else "cpu"
        kind = getattr(torch, dtype or _fast_dtype(device))
        with quiet_transformers():
            try:
                network = LlamaForCausalLM.from_pretrained(folder, dtype=kind)
            except Exception:
                log.warning("what is kept in %s can't be loaded; it is fetched again", folder, exc_info=True)
                shutil.rmtree(folder, ignore_errors=True)
                folder = fetch_pocket(progress)
                network = LlamaForCausalLM.from_pretrained(folder, dtype=kind)
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        network = network.to(device).eval()
        progress("Loading the eyes")
        eyes = Eyes()
    except ImportError as error:
        raise EngineUnreachable(
            f"pocket needs a package that is missing ({error.name}). Run `pip install -r requirements.txt`."
        ) from error
    end_ids = [tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")]
    return LocalModel("pocket", ABOUT, network, end_ids), PocketProcessor(tokenizer, eyes)


def _fast_dtype(device: str) -> str:
    """bfloat16 on GPUs and on CPUs that multiply in it; elsewhere it would be slower than float32."""
    import torch

    if device != "cpu":
        return "bfloat16"
    able = getattr(torch.cpu, "get_capabilities", dict)()  # torch 2.10 and up
    older = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return "bfloat16" if able.get("avx512_bf16") or able.get("amx_bf16") or (not able and older()) else "float32"


class PocketProcessor:
    """Messages become a prompt: each picture is looked at once and stands as notes at its place.

    Args:
        tokenizer: SmolLM2's, with its chat template.
        eyes: what looks at pictures.
        context: tokens that prompt and answer may have together.
    """

    def __init__(self, tokenizer: Any, eyes: Eyes, context: int = CONTEXT) -> None:
        self.tokenizer = tokenizer.backend_tokenizer
        self.context = context
        self._eyes = eyes
        self._notes: OrderedDict[str, Seen] = OrderedDict()

        def template(turns: list[dict], open_answer: bool) -> str:
            return tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=not open_answer, continue_final_message=open_answer
            )

        self._builder = PromptBuilder(self.tokenizer, template, context)

    def prompt(
        self, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Prompt]:
        """Look at pictures that are new, a step at a time, and render the conversation.

        Raises:
            InputError: a picture of the question can't be opened, or the question is too long.
        """
        media = settings.media
        notes = yield from self._look(messages, media, round_)
        asked = [message.text for message in messages if message.role == "system"]
        turns = [Turn("system", (Piece("\n".join([SYSTEM, *asked])),))]
        seen: list[Seen] = []
        questions: list[str] = []
        for message in messages:
            if message.role == "user":
                turns.append(self._question(message, notes, seen, questions, media))
            elif message.role == "assistant":
                turns.append(Turn("assistant", (Piece(message.text),)))
        return self._builder.build(turns, settings.max_new_tokens)

    def _question(
        self, message: Message, notes: dict[str, Seen], seen: list[Seen], questions: list[str], media: MediaSettings
    ) -> Turn:
        """One question: notes at the pictures' places, the words, and what the words select from the notes."""
        texts = []
        total = len(seen) + len(message.media)  # not those of later questions: this text must stay as it is
        for part in message.parts:
            if isinstance(part, TextPart):
                texts.append(part.text)
            elif _key(part, media) not in notes:
                texts.append(GONE)
            else:
                seen.append(notes[_key(part, media)])
                texts.append(picture_text(seen[-1], len(seen), total))
        texts.append(suffix(message.text, seen, questions, new=len(message.media)))
        questions.append(message.text)
        return Turn("user", (Piece("\n\n".join(text for text in texts if text)),))

    def _look(
        self, messages: Sequence[Message], media: MediaSettings, round_: Round
    ) -> Generator[None, None, dict[str, Seen]]:
        """Notes by `_key` for every picture and video of the conversation."""
        last = max(place for place, message in enumerate(messages) if message.role == "user")
        notes: dict[str, Seen] = {}
        for place, message in enumerate(messages):
            for number, part in enumerate(message.media, start=1):
                key = _key(part, media)
                if key in self._notes:
                    self._notes.move_to_end(key)
                else:
                    count = f" {number} of {len(message.media)}"
                    title = f"Watching video{count}" if isinstance(part, VideoPart) else f"Reading picture{count}"
                    try:
                        self._notes[key] = yield from self._look_at(part, title, media, round_)
                    except InputError as error:
                        if place == last:
                            raise
                        round_.status(f"{error} The answer does without it.", notice=True)
                        continue
                    while len(self._notes) > NOTES_KEPT:
                        self._notes.popitem(last=False)
                notes[key] = self._notes[key]
                if isinstance(part, VideoPart):
                    round_.counts.frames += notes[key].frames
                else:
                    round_.counts.images += 1
                if place == last:
                    for notice in notes[key].notices:
                        round_.status(notice, notice=True)
        return notes

    def _look_at(
        self, part: MediaPart, title: str, media: MediaSettings, round_: Round
    ) -> Generator[None, None, Seen]:
        round_.status(title)
        yield
        if isinstance(part, VideoPart):
            frames = yield from sample_steps(
                part.source, media.fps, media.max_frames, part.start, part.end,
                min_frames=max(media.min_frames, min(FEWEST_FRAMES, media.max_frames)), name=part.name,
            )  # fmt: skip
            steps = watch(self._eyes, frames)
        else:
            steps = self._eyes.look(open_image(part.source, part.name))
        while True:
            try:
                doing = next(steps)
            except StopIteration as done:
                seen = done.value
                break
            round_.status(f"{title}: {doing}")
            yield
        if isinstance(part, VideoPart):
            return replace(seen, notices=frames.notices, frames=len(frames.images))
        return seen


def _key(part: MediaPart, media: MediaSettings) -> str:
    """What the notes of a part depend on: its content and, for a video, which frames are looked at."""
    if isinstance(part, VideoPart):
        return f"{part.digest} {part.start} {part.end} {media.fps} {media.min_frames} {media.max_frames}"
    return part.digest
