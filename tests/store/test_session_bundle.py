"""A large bundle is read, judged and built without being held."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from craftd.store import atomic, session_bundle, session_export
from craftd.store.json_stream import Bytes

MESSAGES = 6_000
FILE = bytes(range(256)) * 40_000
HELD = 4 << 20


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    header = {"id": "260101-big-one", "workspaceRootPath": "/gone/ws", "createdAt": 1}
    with (path := tmp_path / "bundle.json").open("w") as file:
        file.write(f'{{"version": 1, "session": {{"header": {json.dumps(header)}, "messages": [')
        for number in range(MESSAGES):
            message = {
                "id": f"m{number}",
                "content": "x" * 1000 + " /gone/ws/sessions/260101-big-one/a",
                "type": "user",
            }
            file.write((", " if number else "") + json.dumps(message))
        content = base64.b64encode(FILE).decode()
        file.write(f']}}, "files": [{{"relativePath": "data/a", "size": {len(FILE)}, "contentBase64": "{content}"}}]}}')
    return path


@pytest.fixture
def memory() -> Iterator[None]:
    """What is held at any time is less than HELD, of a bundle of five times as much."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HELD


def test_reading_building_and_exporting_hold_little_of_it(bundle: Path, tmp_path: Path, memory: None) -> None:
    size = bundle.stat().st_size
    assert size > 4 * HELD
    with bundle.open("rb") as file:
        contents, issues = session_bundle.read(Bytes(size, file.fileno()))
        assert issues == []
        [packed] = contents.sessions
        folder = tmp_path / "260101-big-one"
        arriving = packed.arriving(str(folder))
        assert (arriving.counters.count, arriving.counters.last_id) == (MESSAGES, f"m{MESSAGES - 1}")
        atomic.put_folder(packed.stage(folder, arriving.header), folder)
    written = 0

    def sink(data: bytes) -> None:
        nonlocal written
        written += len(data)

    with (folder / "session.jsonl").open("rb") as file:
        transcript = Bytes((folder / "session.jsonl").stat().st_size, file.fileno())
        session_export.write_bundle(sink, folder, transcript, arriving.header, None, lambda *_: None)
    assert written > 4 * HELD
    with (folder / "data/a").open("rb") as file:
        assert all(file.read(1 << 16) == FILE[at : at + (1 << 16)] for at in range(0, len(FILE), 1 << 16))
    with (folder / "session.jsonl").open("rb") as lines:
        assert sum(line.endswith(b' {{SESSION_PATH}}/a","type":"user"}\n') for line in lines) == MESSAGES
