"""The errors that a person is meant to read.

    EngineError
    ├── InputError          what was given can't be used: a file, a text, a setting
    ├── GenerationError     the model failed while it worked
    └── EngineUnreachable   the model isn't there: not fetched, not started, not on the network

The text of each is one plain sentence (or two) that names the file or setting and says what to do next. Anything
that is not an EngineError is a bug: it is logged with its traceback, and the round ends with a general sentence.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors whose text may be shown to a person as it stands."""


class InputError(EngineError):
    """Something the user gave can't be used; nothing is wrong with the engine."""


class GenerationError(EngineError):
    """The model failed while it prepared or generated an answer; the next question may work."""


class EngineUnreachable(EngineError):
    """The model could not be fetched, loaded or reached."""
