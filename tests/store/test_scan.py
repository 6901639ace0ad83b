"""Looking through transcripts from the end, and with ripgrep."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from craftd.store import scan
from craftd.store.scan import Stop, Stopped


def line(number: int, text: str = "") -> bytes:
    return json.dumps({"id": f"m{number}", "content": text}).encode()


def ids(path: Path, word: bytes | None = None) -> list[object]:
    def places(block: bytes) -> Iterator[int]:
        assert word is not None
        return (found.start() for found in re.finditer(word, block))

    found = scan.records(path, str(path.parent), None if word is None else places, Stop())
    return [record["id"] for record in found]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n \n"])
def test_the_last_line_comes_first_however_long_lines_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, end: bytes
) -> None:
    monkeypatch.setattr(scan, "CHUNK", chunk)
    path = tmp_path / "session.jsonl"
    lines = [line(0, "lamp"), line(1, "x" * 200), b"", line(2, "lamp " * 30), line(3)]
    path.write_bytes(b"\n".join(lines) + end)
    assert ids(path) == ["m3", "m2", "m1", "m0"]
    assert ids(path, b"lamp") == ["m2", "m0"]


def test_what_is_damaged_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(line(1) + line(2) + b"\n\0\0\0" + line(3) + b'\n{"id": "torn')
    assert ids(path) == ["m3", "m2", "m1"]
    path.write_bytes(b"")
    assert ids(path) == []


def test_a_search_that_is_stopped_reads_no_further(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(line(1) + b"\n" + line(2))
    stop = Stop()
    records = scan.records(path, str(tmp_path), None, stop)
    assert next(records)["id"] == "m2"
    stop.now()
    with pytest.raises(Stopped):
        next(records)


def test_a_program_ends_with_the_search_or_with_its_time(tmp_path: Path) -> None:
    stop = Stop()
    endless = [sys.executable, "-c", "import time; print(flush=True); time.sleep(1000)"]
    with pytest.raises(TimeoutError):
        stop.run(endless, tmp_path, 0.05)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            stop.run(endless, tmp_path, 1000)
        except Stopped as stopped:
            ended.append(stopped)

    thread = threading.Thread(target=run)
    thread.start()
    stop.now()
    thread.join(30)
    assert len(ended) == 1
    with pytest.raises(Stopped):
        stop.run(endless, tmp_path, 1000)


@pytest.mark.skipif(scan.ripgrep() is None, reason="no ripgrep here")
def test_ripgrep_names_files_and_says_when_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = scan.ripgrep()
    assert program is not None
    (tmp_path / ".ignore").write_text("*\n")
    config = tmp_path / "config"
    config.write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    for name, text in (("a", b"\0\n{Lamp}"), ("b", b"light"), ("-c", b"\xff\xfeLamp")):
        (tmp_path / name).write_bytes(text)
    assert scan.files_with(program, "[lL]amp", tmp_path, ["a", "b", "-c"], Stop(), 30) == {"a", "-c"}
    assert scan.files_with(program, "nothing", tmp_path, ["a", "b"], Stop(), 30) == set()
    assert scan.files_with(program, "[lL]amp", tmp_path, ["a", "gone"], Stop(), 30) is None
    assert scan.files_with(program, "(", tmp_path, ["a"], Stop(), 30) is None
    assert scan.files_with(str(tmp_path / "gone"), "a", tmp_path, ["a"], Stop(), 30) is None


@pytest.mark.parametrize("said", [None, "grep 3.1", "ripgrep 13.0.0"])
def test_what_is_not_ripgrep_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if said is not None:
        program = tmp_path / "rg"
        program.write_text(f"#!/bin/sh\necho {said}\n")
        program.chmod(0o755)
    scan.ripgrep.cache_clear()
    try:
        assert scan.ripgrep() == (str(tmp_path / "rg") if said and said.startswith("ripgrep") else None)
    finally:
        scan.ripgrep.cache_clear()
