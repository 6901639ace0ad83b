"""What commands print: columns and times for people, tabs and JSON for programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from io import TextIOWrapper
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def prepare() -> None:
    """Make standard output UTF-8 that prints anything: a lone surrogate becomes the escape that JSON has for it.

    Integers keep all their digits, and a stream that is closed (`>&-`) does not become the next file that is opened.
    """
    sys.set_int_max_str_digits(0)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def is_terminal() -> bool:
    return sys.stdout.isatty()


def say(text: str = "") -> None:
    """Print a line, at once, without what could steer a terminal: the text may come from anybody."""
    print(_CONTROL.sub("\ufffd", text), flush=True)


def complain(text: str) -> None:
    """Say on standard error what went wrong."""
    print(f"craftd: {_CONTROL.sub(chr(0xFFFD), text)}", file=sys.stderr)


def emit(value: Any, *, one_line: bool = False) -> None:
    """Print JSON: indented for people, on one line for programs; nothing in it steers a terminal either."""
    indent = 2 if is_terminal() and not one_line else None
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    print(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", written), flush=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns: aligned below *head* and cut to the window in a terminal, separated by tabs otherwise."""
    if not is_terminal():
        for row in rows:
            say("\t".join(" ".join(cell.split()) for cell in row))
        return
    lines = [list(head), *([" ".join(cell.split()) for cell in row] for row in rows)]
    if len(lines) == 1:
        return
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    window = shutil.get_terminal_size().columns
    for line in lines:
        padded = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        say(_cut("  ".join(padded).rstrip(), window))


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and what they are, one a line; those without a value are left out."""
    kept = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        say(f"{name:<{width}}  {value}")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def ago(at: object) -> str:
    """How long *at* (ms since 1970) is past, roughly; "" for what is no time."""
    if not isinstance(at, int | float):
        return ""
    try:
        seconds = time.time() - at / 1000
    except OverflowError:
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return "now"


def clock(at: object) -> str:
    """Local date and time of *at* (ms since 1970), the date only if it is not today's."""
    if not isinstance(at, int | float):
        return ""
    try:
        moment = datetime.fromtimestamp(at / 1000)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{moment:%H:%M:%S}" if moment.date() == datetime.now().date() else f"{moment:%Y-%m-%d %H:%M:%S}"


def _width(text: str) -> int:
    """Columns of a terminal that *text* takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _cut(text: str, columns: int) -> str:
    if _width(text) <= columns:
        return text
    kept = text[:columns]
    while _width(kept) > columns - 1:
        kept = kept[:-1]
    return kept + "…"
