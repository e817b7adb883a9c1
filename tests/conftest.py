"""Two parts: `pytest -m "not full"` is fast and needs no torch; `pytest` runs everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "full: needs torch, the real pocket, a browser or a server; takes longer")
