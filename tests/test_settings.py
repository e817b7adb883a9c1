"""Settings check themselves once, and the message names the value and the limit."""

from __future__ import annotations

import math

import pytest

from engine.errors import EngineError, InputError
from engine.settings import GenerationSettings, MediaSettings


def test_defaults_are_the_documented_ones():
    settings = GenerationSettings()
    assert (settings.max_new_tokens, settings.temperature, settings.top_p, settings.top_k) == (1024, 0.0, 1.0, 50)
    assert (settings.repetition_penalty, settings.seed, settings.stop, settings.strategy) == (1.0, None, (), "off")
    assert settings.media == MediaSettings(max_num=12, fps=1.0, min_frames=1, max_frames=32)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_new_tokens", 0), ("max_new_tokens", 1.5), ("max_new_tokens", "20"), ("max_new_tokens", True),
        ("temperature", -1), ("temperature", math.nan), ("temperature", math.inf), ("temperature", None),
        ("top_p", 1.01), ("top_p", -0.1), ("top_k", -1), ("repetition_penalty", 0), ("seed", -1), ("seed", 2**63),
        ("stop", ("a", "")), ("stop", 3), ("thinking", "maybe"), ("strategy", "quick"), ("system_prompt", 5),
        ("min_chunk_size", 60), ("lookahead_steps", 1000), ("media", {"fps": 1}),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_limit(name, value):
    with pytest.raises(InputError) as caught:
        GenerationSettings(**{name: value})
    sentence = str(caught.value)
    assert sentence.startswith(name) and sentence.endswith(".")
    assert isinstance(caught.value, EngineError)


@pytest.mark.parametrize(
    ("name", "value"), [("fps", 0), ("max_num", 0), ("max_frames", 0), ("min_pixels", -5), ("min_frames", 33)]
)
def test_a_wrong_media_value_is_named(name, value):
    with pytest.raises(InputError, match=name):
        MediaSettings(**{name: value})


def test_numbers_from_sliders_are_taken():
    """A slider sends 2 for a temperature and 64.0 for a count; both once broke other demos."""
    settings = GenerationSettings(temperature=2, max_new_tokens=64.0, seed=2**62 + 1, stop="END")
    assert settings.temperature == 2.0 and settings.max_new_tokens == 64 and isinstance(settings.max_new_tokens, int)
    assert settings.seed == 2**62 + 1 and settings.stop == ("END",)
