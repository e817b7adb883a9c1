"""Built-in system texts of the queue protocol, and the rule that chooses one. Source of the rule: MOSS-VL."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import InputError
from .messages import Message, VideoPart

_PICTURES = "You are a helpful assistant for pictures and text. Look closely and answer what is asked, in plain words."
_VIDEO = (
    "You are a helpful assistant for videos. Follow what happens from frame to frame, mind the times, and answer what"
    " is asked, in plain words."
)
_THINK = (
    " First think it through step by step between <thinking> and </thinking>; then give the reply between <answer> and"
    " </answer>."
)
TEXTS = {
    ("no_thinking", "text_image"): _PICTURES,
    ("no_thinking", "video"): _VIDEO,
    ("deep_thinking", "text_image"): _PICTURES + _THINK,
    ("deep_thinking", "video"): _VIDEO + _THINK,
}
THINKING = {
    **dict.fromkeys(("no_thinking", "default", "standard"), "no_thinking"),
    **dict.fromkeys(("deep_thinking", "thinking", "reasoning"), "deep_thinking"),
}
TYPES = {**dict.fromkeys(("text_image", "image_text", "text-image", "image-text", "text", "image"), "text_image"),
         "video": "video"}  # fmt: skip


def thinking_mode(value: object) -> str | None:
    """A `thinking_mode` or one of its other names, as "no_thinking" or "deep_thinking"; None stays None.

    Raises:
        InputError: another value.
    """
    return _known("thinking_mode", value, THINKING, lambda text: text)


def system_prompt_type(value: object) -> str | None:
    """A `system_prompt_type` or one of its other names, as "text_image" or "video"; None stays None.

    Raises:
        InputError: another value.
    """
    return _known("system_prompt_type", value, TYPES, lambda text: "_".join(text.replace("/", " ").replace("_", " ").split()))


def system_text(thinking: str | None, kind: str | None, messages: Sequence[Message]) -> str:
    """The built-in text for a thinking mode and a type; without a type, whether `messages` hold a video decides."""
    if kind is None:
        video = any(isinstance(part, VideoPart) for message in messages for part in message.parts)
        kind = "video" if video else "text_image"
    return TEXTS[thinking or "no_thinking", kind]


def _known(name: str, value: object, names: dict[str, str], plain) -> str | None:
    if value is None:
        return None
    found = names.get(plain(value.strip().lower())) if isinstance(value, str) else None
    if found is None:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(names)}.")
    return found
