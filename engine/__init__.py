"""StreamVL's engine: talk with vision-language models; the answer streams, and stop means stop."""

from .errors import EngineError, EngineUnreachable, GenerationError, InputError
from .models.loading import load_model
from .session import Session
from .settings import GenerationSettings, MediaSettings

__all__ = [
    "EngineError",
    "EngineUnreachable",
    "GenerationError",
    "GenerationSettings",
    "InputError",
    "MediaSettings",
    "Session",
    "load_model",
]
