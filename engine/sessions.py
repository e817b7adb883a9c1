"""The conversations of a server, each under an id that can't be guessed, and not more of them than the limit.

It knows nothing of pages or networks: whoever serves people keeps the id and asks for the session when it is needed.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from typing import Any

from .models.base import Model
from .session import Session


def new_session_id() -> str:
    """An id for a new conversation: 32 hexadecimal digits, 122 of its bits random."""
    return uuid.uuid4().hex


class Sessions:
    """Sessions of one model by id. Methods may be called from any thread.

    Args:
        model, processor: what each session talks with, as `load_model` returns them.
        limit: most sessions kept; above it the least recently used goes, and a round that it runs is stopped.
    """

    def __init__(self, model: Model, processor: Any, limit: int = 200) -> None:
        self._model = model
        self._processor = processor
        self._limit = limit
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str) -> Session:
        """The session under `session_id`, which is now the most recently used; a new one where there is none."""
        gone: list[Session] = []
        with self._lock:
            session = self._sessions.pop(session_id, None) or Session(self._model, self._processor)
            self._sessions[session_id] = session
            while len(self._sessions) > self._limit:
                gone.append(self._sessions.popitem(last=False)[1])
        for old in gone:
            old.stop()
        return session

    def drop(self, session_id: str) -> None:
        """Stop and forget a session; does nothing where there is none."""
        with self._lock:
            session = self._sessions.pop(session_id, None)
        if session is not None:
            session.stop()

    def __contains__(self, session_id: object) -> bool:
        with self._lock:
            return session_id in self._sessions

    def __len__(self) -> int:
        with self._lock:
            return len(self._sessions)
