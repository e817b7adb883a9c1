"""StreamVL's engine: talk with vision-language models; the answer streams, and stop means stop."""

from .errors import EngineError, EngineUnreachable, GenerationError, InputError
from .models.loading import load_model
from .omni import OmniStreamer
from .session import Session
from .settings import GenerationSettings, MediaSettings

__all__ = [
    "EngineError",
    "EngineUnreachable",
    "GenerationError",
    "GenerationSettings",
    "InputError",
    "MediaSettings",
    "OmniStreamer",
    "Session",
    "load_model",
]
