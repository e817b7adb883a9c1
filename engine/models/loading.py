"""`load_model`: a name becomes a model and its processor, now or in the background."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

from ..errors import EngineError, EngineUnreachable, InputError
from ..messages import Message
from ..rounds import Reason, Round
from ..settings import GenerationSettings
from .base import Model

log = logging.getLogger(__name__)

DTYPES = ("float32", "bfloat16", "float16")


def load_model(
    name: str,
    *,
    dtype: Any = None,
    quantization: str | None = None,
    device_map: Any = None,
    attn_implementation: str | None = None,
    max_memory: dict | None = None,
    trust_remote_code: bool = False,
    draft_model: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Model, Any]:
    """Load a model by name and return it with its processor.

    Args:
        name: "pocket", the embedded model. Hub ids, local folders and servers are not there yet.
        dtype: "float32", "bfloat16", "float16" or the torch dtype; None takes bfloat16 where the machine is fast in
            it and float32 elsewhere.
        progress: called with a sentence while a long step goes on.

    The other settings are for models that are not there yet; for `pocket` they must be left out.

    Raises:
        InputError: the name is not known, or a setting doesn't fit the model.
        EngineUnreachable: the model can't be fetched or loaded.
    """
    settings = {
        "dtype": dtype,
        "quantization": quantization,
        "device_map": device_map,
        "attn_implementation": attn_implementation,
        "max_memory": max_memory,
        "trust_remote_code": trust_remote_code,
        "draft_model": draft_model,
    }
    _check(name, settings)
    from .pocket.model import load_pocket

    return load_pocket(_dtype_name(dtype), progress or (lambda sentence: None))


def _check(name: str, settings: dict[str, Any]) -> None:
    """Refuse what can be refused without loading anything."""
    if name != "pocket":
        raise InputError(f"The model {name!r} is not known. This version runs only pocket; use --model pocket.")
    for setting, value in settings.items():
        if setting == "dtype":
            if value is not None and _dtype_name(value) not in DTYPES:
                raise InputError(f"dtype is {value!r}; it must be one of {', '.join(DTYPES)}.")
        elif value:
            raise InputError(f"{setting} is {value!r}, but pocket is small and has no such setting. Leave it out.")


def _dtype_name(dtype: Any) -> str | None:
    return None if dtype is None else str(dtype).removeprefix("torch.")


class LoadingModel(Model):
    """A model that is still being loaded; its rounds wait, saying what is going on.

    Args: as `load_model`, and
        start: False puts the loading off until `start` is called.

    Raises:
        InputError: at once, for a name or a setting that can't be right.

    Attributes:
        loading: a sentence about the progress, or None once the model is ready or has failed.
        failure: why the model could not be loaded, or None.
    """

    def __init__(self, name: str, *, start: bool = True, **settings: Any) -> None:
        _check(name, settings)
        self.name = name
        self.loading = f"Loading {name}"
        self._loaded: tuple[Model, Any] | None = None
        self._over = threading.Event()
        self._loader = threading.Thread(target=self._load, args=(name, settings), name=f"{name} loader", daemon=True)
        if start:
            self.start()

    def start(self) -> None:
        """Begin to load; to be called once, where the constructor was told not to."""
        self._loader.start()

    def answer(
        self, processor: Any, messages: Sequence[Message], settings: GenerationSettings, round_: Round
    ) -> Generator[None, None, Reason]:
        told = None
        while not self._over.wait(0.05):
            if self.loading != told:
                told = self.loading
                round_.status(told)
            yield
        if self._loaded is None:
            raise EngineUnreachable(self.failure)
        model, processor = self._loaded
        return (yield from model.answer(processor, messages, settings, round_))

    def wait(self) -> tuple[Model, Any]:
        """Wait for the end of loading; returns the model and its processor.

        Raises:
            EngineUnreachable: it could not be loaded.
        """
        self._over.wait()
        if self._loaded is None:
            raise EngineUnreachable(self.failure)
        return self._loaded

    def close(self) -> None:
        super().close()
        if self._loaded is not None:
            self._loaded[0].close()

    def _load(self, name: str, settings: dict) -> None:
        def progress(sentence: str) -> None:
            self.loading = sentence

        # Importing torch and transformers makes millions of objects that stay; going through them again and again
        # takes a third of the time until the model is ready.
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._loaded = load_model(name, **settings, progress=progress)
            self.about = self._loaded[0].about
        except EngineError as error:
            self.failure = str(error)
        except BaseException as error:
            log.error("loading %s failed", name, exc_info=True)
            self.failure = (
                f"The model {name} could not be loaded ({type(error).__name__}: {str(error)[:200]})."
                " Start the program again; the details are in the log."
            )
        finally:
            if collecting:
                gc.enable()
            self.loading = None
            self._over.set()
