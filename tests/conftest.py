"""Two parts: `pytest -m "not full"` is fast and needs no torch; `pytest` runs everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: needs torch, the real pocket, a browser or a server; takes longer")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files that are full from end to end unread by the fast part: reading them would import torch."""
    if config.option.markexpr == "not full" and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.full\n" in collection_path.read_text(encoding="utf-8") or None
    return None
