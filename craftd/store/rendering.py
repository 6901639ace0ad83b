"""Thumbnails of images and Markdown of documents, where the libraries for them are installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from craftd.store import render

PATIENCE: Final = 30.0
"""Seconds, those included in which the process waits for its turn."""

_LIBRARIES: Final = {"thumbnail": "PIL", "docx": "mammoth", "xlsx": "openpyxl", "pptx": "pptx"}
_PROGRAM: Final = str(Path(render.__file__))


def can_render(what: str) -> bool:
    """what: `thumbnail`, or the extension of a document."""
    return what in _LIBRARIES and find_spec(_LIBRARIES[what]) is not None


def rendered(what: str, file: int) -> bytes | None:
    """What is made of an open *file*; None if nothing can be made of it. In a thread; takes a process and its time."""
    command = [sys.executable, "-I", _PROGRAM, what]
    try:
        done = subprocess.run(
            command, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout or None
