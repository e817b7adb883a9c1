"""The whole product as a person meets it: `python app.py`, a real browser, the real `pocket`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from drawings import receipt, sign
from test_page_browser import CLICK_AND_WAIT_FOR_FREE, STOP, Tab, _free_port, chromium  # noqa: F401

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def url():
    """The address of a page started by its own command; seconds until it answered are checked by the first test."""
    port = _free_port()
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, str(ROOT / "app.py"), "--port", str(port)], env=dict(os.environ))
    address = f"http://127.0.0.1:{port}"
    while time.monotonic() - began < 60:
        try:
            urllib.request.urlopen(address, timeout=5)
            break
        except OSError:
            time.sleep(0.1)
    print(f"page open after {time.monotonic() - began:.1f} s")
    yield address
    process.terminate()
    assert process.wait(10) is not None


def test_a_picture_is_asked_about_stopped_and_asked_again(url, chromium, tmp_path):  # noqa: F811
    receipt().save(tmp_path / "receipt.png")
    sign().save(tmp_path / "sign.png")
    tab = Tab(chromium, url)
    tab.page.set_default_timeout(120_000)  # the first question may wait for the model to load
    tab.page.set_input_files("#svl-box input[type=file]", tmp_path / "receipt.png")
    tab.page.wait_for_selector("#svl-box .thumbnail-image, #svl-box img")
    tab.ask("What is the total?")
    tab.wait_for_note("to first word")
    assert "13.87" in tab.answers.last.inner_text()

    tab.ask("Write a long story about a lighthouse and the sea.")
    tab.wait_until_busy()
    lengths = set()
    while len(lengths) < 4:
        if tab.answers.count() > 1:
            lengths.add(len(tab.answers.last.inner_text()))
        assert tab.page.locator(STOP).count(), "the story ended before it was seen to grow"
        time.sleep(0.05)
    assert tab.page.evaluate(CLICK_AND_WAIT_FOR_FREE) <= 0.3
    tab.wait_for_note("Stopped · ")

    tab.page.set_input_files("#svl-box input[type=file]", tmp_path / "sign.png")
    tab.page.wait_for_selector("#svl-box .thumbnail-image, #svl-box img")
    tab.ask("What does the sign say?")
    tab.wait_until_busy()
    assert tab.page.evaluate(CLICK_AND_WAIT_FOR_FREE) <= 0.3
    tab.wait_for_note("Stopped before an answer.")

    tab.ask("And the tax on the receipt?")
    tab.page.wait_for_function("document.querySelectorAll('#svl-chat .svl-facts').length == 3")
    assert "1.02" in tab.answers.last.inner_text()
    tab.page.click("#svl-new")
    tab.page.wait_for_selector(".svl-welcome")
    tab.context.close()
