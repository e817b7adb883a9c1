"""A query dict of the queue protocol becomes messages and settings. The dict is read, never written to.

Keys, other names and defaults are MOSS-VL's. As there, a key of the query that isn't known has no effect; `strangers`
names such keys, so that a typing mistake can be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .errors import InputError
from .media.images import source_name
from .messages import ImagePart, Message, Part, TextPart, VideoPart
from .settings import GenerationSettings, MediaSettings
from .system_prompts import system_prompt_type, system_text, thinking_mode

CONTENT = ("prompt", "images", "videos", "messages")
CANCEL = ("cancel_current_generate", "stop_generation")
RESET = ("reset_session", "clear_history")
STOP = "stop_offline_generate"
OTHERS = (
    "append_messages_to_session", "media_kwargs", "generate_kwargs", "stream_output", "stream", "thinking_mode",
    "system_prompt_type", "system_prompt", "use_default_system_prompt", "persist_session", "persist_cancelled_turn",
    "vision_chunked_length", "id",
)  # fmt: skip
KNOWN = frozenset((*CONTENT, *CANCEL, *RESET, STOP, *OTHERS))

MOMENT = 0.001
"""Seconds of video that [moment] stands for: one frame."""

_MEDIA = {"min_pixels": "min_pixels", "max_pixels": "max_pixels", "video_fps": "fps", "video_minlen": "min_frames",
          "min_frames": "min_frames", "video_maxlen": "max_frames", "max_frames": "max_frames"}  # fmt: skip
_MEDIA_UNUSED = {"multi_image_max_pixels", "video_max_pixels", "patch_size", "temporal_patch_size", "merge_size",
                 "image_mean", "image_std", "num_extract_threads"}  # fmt: skip
_GENERATE = {field.name for field in fields(GenerationSettings)} - {"media", "system_prompt", "system_prompt_type"}


@dataclass(frozen=True)
class Query:
    """What one dict asks for; `messages` are this turn's, and `replaces` says that they stand without the history."""

    messages: tuple[Message, ...]
    replaces: bool
    settings: GenerationSettings
    stream: bool
    persist: bool
    persist_cancelled: bool


def is_set(value: Any) -> bool:
    """Whether a value counts as given; NumPy arrays, which have no truth of their own, do."""
    try:
        return bool(value)
    except Exception:
        return True


def wants(query: Mapping, keys: tuple[str, ...]) -> bool:
    """True when one of the control `keys` is set."""
    return any(is_set(query.get(key)) for key in keys)


def asks(query: Mapping) -> bool:
    """True when the dict is a question and not only a control: it has content, or no control at all."""
    return any(is_set(query.get(key)) for key in CONTENT) or not wants(query, (*CANCEL, *RESET, STOP))


def strangers(query: Mapping) -> list[str]:
    """The keys of the query that nothing reads."""
    return [str(key) for key in query if key not in KNOWN]


def read_query(query: Mapping, history: tuple[Message, ...]) -> Query:
    """Read a query; `history` is only looked at to choose the system text.

    Raises:
        InputError: a wrong value, or an unknown key of `generate_kwargs` or `media_kwargs`; the text names it.
    """
    messages, given = _messages(query)
    replaces = given and not is_set(query.get("append_messages_to_session"))
    thinking = thinking_mode(query.get("thinking_mode"))
    text = _system(query, thinking, messages)
    past = () if replaces else history
    if text and not past and not any(message.role == "system" for message in messages):
        messages = (Message("system", (TextPart(text),)), *messages)
    return Query(
        messages=messages,
        replaces=replaces,
        settings=_settings(query, thinking),
        stream=is_set(query["stream_output"] if "stream_output" in query else query.get("stream")),
        persist=is_set(query.get("persist_session", True)),
        persist_cancelled=is_set(query.get("persist_cancelled_turn", False)),
    )


def _system(query: Mapping, thinking: str | None, messages: tuple[Message, ...]) -> str:
    kind = system_prompt_type(query.get("system_prompt_type"))
    text = query.get("system_prompt")
    if text is not None and not isinstance(text, str):
        raise InputError(f"system_prompt is {text!r}; it must be a text.")
    if text:
        return text
    if thinking or kind or query.get("use_default_system_prompt"):
        return system_text(thinking, "video" if kind is None and query.get("videos") else kind, messages)
    return ""


def _messages(query: Mapping) -> tuple[tuple[Message, ...], bool]:
    """This turn's messages, and whether they came as `messages`."""
    given = query.get("messages")
    if is_set(given):
        if not isinstance(given, (list, tuple)):
            raise InputError(f"messages is a {type(given).__name__}; it must be a list of role and content.")
        messages = [_message(entry) for entry in given if isinstance(entry, Mapping)]
        while messages and messages[-1].role == "assistant":  # there is nothing to answer after an answer
            messages.pop()
        if messages:
            return tuple(messages), True
    prompt = query.get("prompt", "")
    if prompt is None:
        prompt = ""
    if not isinstance(prompt, str):
        raise InputError(f"prompt is a {type(prompt).__name__}; it must be a text.")
    parts: list[Part] = [_image(image) for image in _list("images", query.get("images"))]
    for video in _list("videos", query.get("videos")):
        parts += _video(video)
    if prompt.strip():
        parts.append(TextPart(prompt))
    if not parts:
        raise InputError("The query asks nothing. Give it a prompt, images, videos or messages.")
    return (Message("user", tuple(parts)),), False


def _list(name: str, value: Any) -> list:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (int, float)):
        raise InputError(f"{name} is {value!r}; it must be a list of files.")
    return [value]


def _message(entry: Mapping) -> Message:
    content = entry.get("content", "")
    parts: list[Part] = []
    for item in content if isinstance(content, (list, tuple)) else [content]:
        parts += _item(item)
    return Message(entry.get("role"), tuple(parts))


def _item(item: Any) -> list[Part]:
    if item is None:
        return []
    if isinstance(item, str):
        return [TextPart(item)] if item else []
    if not isinstance(item, Mapping):
        raise InputError(f"A message has a {type(item).__name__} in its content; it must be a text or a dict with a type.")
    kind, parts = item.get("type"), []
    if kind in ("image", "image_url") or "image" in item:
        value = item.get("image_url") if item.get("image") is None else item["image"]
        parts.append(_image(value.get("url") if isinstance(value, Mapping) else value))
    elif kind == "video" or "video" in item:
        parts += _video(item.get("video"))
    elif kind not in (None, "text"):
        raise InputError(f"A message has an item of type {kind!r}; known are text, image and video.")
    text = item.get("text")
    if text is not None and not isinstance(text, str):
        raise InputError(f"A message has {text!r} as text; it must be a text.")
    return parts + ([TextPart(text)] if text else [])


def _image(value: Any) -> ImagePart:
    if value is None:
        raise InputError("An image of the query is missing its file. Give a path, bytes or a PIL image.")
    return ImagePart(value, source_name(value))


def _video(value: Any) -> list[VideoPart]:
    """One part for a file, or one for each of its `segments`: [start, end] or [moment], in seconds."""
    if not isinstance(value, Mapping):
        if value is None:
            raise InputError("A video of the query is missing its file. Give a path.")
        return [VideoPart(value, source_name(value))]
    path, segments = value.get("video_path"), value.get("segments")
    if path is None:
        raise InputError("A video of the query has no video_path. Give the path of its file.")
    if not is_set(segments):
        return [VideoPart(path, source_name(path))]
    parts = []
    for segment in segments if isinstance(segments, (list, tuple)) else [segments]:
        times = segment if isinstance(segment, (list, tuple)) else [segment]
        if len(times) not in (1, 2) or not all(isinstance(t, (int, float)) and 0 <= t < 1e9 for t in times):
            raise InputError(f"A segment of the video is {segment!r}; it must be [start, end] or [moment] in seconds.")
        if len(times) == 2 and times[0] >= times[1]:
            raise InputError(f"A segment of the video is {segment!r}; its end must lie after its start.")
        end = times[1] if len(times) == 2 else times[0] + MOMENT
        parts.append(VideoPart(path, source_name(path), start=float(times[0]), end=float(end)))
    return parts


def _settings(query: Mapping, thinking: str | None) -> GenerationSettings:
    given = dict(_mapping("generate_kwargs", query.get("generate_kwargs")))
    given.pop("vision_chunked_length", None)  # media are encoded one at a time here, which takes the least memory
    sample = given.pop("do_sample", False)
    if given.get("temperature", 0) is None:
        given["temperature"] = 1.0
    temperature = given.pop("temperature", 1.0)
    if not sample or (isinstance(temperature, (int, float)) and temperature <= 0):
        temperature = 0.0 if isinstance(temperature, (int, float)) else temperature
    unknown = [key for key in given if key not in _GENERATE]
    if unknown:
        raise InputError(f"generate_kwargs has {unknown[0]!r}, which is not known; see {', '.join(sorted(_GENERATE))}.")
    return GenerationSettings(
        temperature=temperature, media=_media(query), **{"thinking": thinking, **given}
    )


def _media(query: Mapping) -> MediaSettings:
    given = _mapping("media_kwargs", query.get("media_kwargs"))
    unknown = [key for key in given if key not in _MEDIA and key not in _MEDIA_UNUSED]
    if unknown:
        raise InputError(f"media_kwargs has {unknown[0]!r}, which is not known; see {', '.join(sorted(_MEDIA))}.")
    # _MEDIA lists each other name before the name itself, which wins.
    return MediaSettings(**{name: given[key] for key, name in _MEDIA.items() if given.get(key) is not None})


def _mapping(name: str, value: Any) -> Mapping:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} is {value!r}; it must be a dict.")
    return value
