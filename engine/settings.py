"""What can be set for one answer. Each value is checked once, here, and the message says the limit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real

from .errors import InputError

STRATEGIES = ("off", "fast", "balanced", "quality", "dynamic")


def _number(name: str, value: object, low: float, high: float, whole: bool = False) -> float | int:
    """`value` as a number in [low, high], or an InputError that names it. Booleans are not numbers here."""
    kind = "a whole number" if whole else "a number"
    number = value if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not low <= number <= high or (whole and number != int(number)):
        raise InputError(f"{name} is {value!r}; it must be {kind} from {low:g} to {high:g}.")
    return int(number) if whole else float(number)


def _optional(name: str, value: object, low: float, high: float) -> int | None:
    return None if value is None else int(_number(name, value, low, high, whole=True))


def _text(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} is {value!r}; it must be a text.")


@dataclass(frozen=True)
class MediaSettings:
    """How pictures and videos are shown to the model.

    Args:
        max_num: most tiles a picture is cut into, for models that tile (1 to 64).
        min_pixels, max_pixels: bounds for one picture or frame; None leaves it to the model.
        fps: video frames looked at for each second of video (above 0, at most 60).
        min_frames, max_frames: bounds for the number of frames (1 to 4096).

    Raises:
        InputError: a value is outside its limits; the text names value and limit.
    """

    max_num: int = 12
    min_pixels: int | None = None
    max_pixels: int | None = None
    fps: float = 1.0
    min_frames: int = 1
    max_frames: int = 32

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 - the dataclass is frozen
        put("max_num", _number("max_num", self.max_num, 1, 64, whole=True))
        put("min_pixels", _optional("min_pixels", self.min_pixels, 1, 1e9))
        put("max_pixels", _optional("max_pixels", self.max_pixels, 1, 1e9))
        put("fps", _number("fps", self.fps, 0.001, 60))
        put("min_frames", _number("min_frames", self.min_frames, 1, 4096, whole=True))
        put("max_frames", _number("max_frames", self.max_frames, 1, 4096, whole=True))
        for low, high in (("min_pixels", "max_pixels"), ("min_frames", "max_frames")):
            small, large = getattr(self, low), getattr(self, high)
            if small is not None and large is not None and small > large:
                raise InputError(f"{low} is {small}, above {high}, which is {large}; lower one or raise the other.")


@dataclass(frozen=True)
class GenerationSettings:
    """How an answer is generated.

    Args:
        max_new_tokens: longest answer, in tokens (1 to 32768).
        temperature: 0 is greedy, above 0 samples (0 to 10).
        top_p, top_k: sampling keeps the likeliest tokens up to this sum / this many (top_k 0: all).
        repetition_penalty: above 1 makes repeated tokens less likely, also when greedy (0.01 to 10).
        seed: same seed, same text when sampling; None draws a new one.
        stop: the answer ends before any of these texts.
        thinking: "no_thinking", "deep_thinking" or None for what the model does by itself.
        system_prompt, system_prompt_type: instructions before the conversation, or which built-in ones.
        strategy, min_chunk_size, max_chunk_size, lookahead_steps, task_hint: when text is released (seed 004); checked,
            but without effect until the chunk scheduler is there: text comes as it is generated.
        media: how pictures and videos are shown to the model.

    Raises:
        InputError: a value is outside its limits; the text names value and limit.
    """

    max_new_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 50
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    thinking: str | None = None
    system_prompt: str | None = None
    system_prompt_type: str | None = None
    strategy: str = "off"
    min_chunk_size: int = 5
    max_chunk_size: int = 50
    lookahead_steps: int = 8
    task_hint: str | None = None
    media: MediaSettings = field(default_factory=MediaSettings)

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731 - the dataclass is frozen
        put("max_new_tokens", _number("max_new_tokens", self.max_new_tokens, 1, 32768, whole=True))
        put("temperature", _number("temperature", self.temperature, 0, 10))
        put("top_p", _number("top_p", self.top_p, 0, 1))
        put("top_k", _number("top_k", self.top_k, 0, 1_000_000, whole=True))
        put("repetition_penalty", _number("repetition_penalty", self.repetition_penalty, 0.01, 10))
        put("seed", _optional("seed", self.seed, 0, 2**63 - 1))
        put("min_chunk_size", _number("min_chunk_size", self.min_chunk_size, 1, 1000, whole=True))
        put("max_chunk_size", _number("max_chunk_size", self.max_chunk_size, 1, 1000, whole=True))
        put("lookahead_steps", _number("lookahead_steps", self.lookahead_steps, 0, 64, whole=True))
        if self.min_chunk_size > self.max_chunk_size:
            raise InputError(
                f"min_chunk_size is {self.min_chunk_size}, above max_chunk_size, which is {self.max_chunk_size};"
                " lower one or raise the other."
            )
        stop = (self.stop,) if isinstance(self.stop, str) else self.stop
        if not isinstance(stop, (tuple, list)) or not all(isinstance(text, str) and text for text in stop):
            raise InputError(f"stop is {self.stop!r}; it must be a text or a list of texts, none of them empty.")
        put("stop", tuple(stop))
        for name in ("system_prompt", "system_prompt_type", "task_hint"):
            _text(name, getattr(self, name))
        if self.thinking not in (None, "no_thinking", "deep_thinking"):
            raise InputError(f"thinking is {self.thinking!r}; it must be no_thinking or deep_thinking.")
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy is {self.strategy!r}; it must be one of {', '.join(STRATEGIES)}.")
        if not isinstance(self.media, MediaSettings):
            raise InputError(f"media is {self.media!r}; it must be a MediaSettings.")
