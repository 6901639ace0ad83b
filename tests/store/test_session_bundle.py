"""A large bundle is read, judged and built without being held."""

from __future__ import annotations

import base64
import json
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from craftd.store import atomic, session_bundle, session_export
from craftd.store.json_stream import Bytes

FILE = bytes(range(256)) * 40_000
HELD = 6 << 20


@pytest.fixture(params=[(6_000, 1_000), (60, 200_000)], ids=["many messages", "long messages"])
def shape(request: pytest.FixtureRequest) -> tuple[int, int]:
    """How many messages, and how long they are."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def bundle(tmp_path: Path, shape: tuple[int, int]) -> Path:
    header = {"id": "260101-big-one", "workspaceRootPath": "/gone/ws", "createdAt": 1}
    with (path := tmp_path / "bundle.json").open("w") as file:
        file.write(f'{{"version": 1, "session": {{"header": {json.dumps(header)}, "messages": [')
        for number in range(shape[0]):
            message = {
                "id": f"m{number}",
                "content": "x" * shape[1] + " /gone/ws/sessions/260101-big-one/a",
                "type": "user",
            }
            file.write((", " if number else "") + json.dumps(message))
        content = base64.b64encode(FILE).decode()
        file.write(f']}}, "files": [{{"relativePath": "data/a", "size": {len(FILE)}, "contentBase64": "{content}"}}]}}')
    return path


@pytest.fixture
def memory() -> Iterator[None]:
    """What is held at any time is less than HELD, of a bundle of three times as much."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < HELD


def test_reading_building_and_exporting_hold_little_of_it(
    bundle: Path, shape: tuple[int, int], tmp_path: Path, memory: None
) -> None:
    size = bundle.stat().st_size
    assert size > 3 * HELD
    with bundle.open("rb") as file:
        contents, issues = session_bundle.read(Bytes(size, file.fileno()))
        assert issues == []
        [packed] = contents.sessions
        folder = tmp_path / "260101-big-one"
        arriving = packed.arriving(str(folder))
        assert (arriving.counters.count, arriving.counters.last_id) == (shape[0], f"m{shape[0] - 1}")
        atomic.put_folder(packed.stage(folder, arriving.header), folder)
    written = 0

    def sink(data: bytes) -> None:
        nonlocal written
        written += len(data)

    with (folder / "session.jsonl").open("rb") as file:
        transcript = Bytes((folder / "session.jsonl").stat().st_size, file.fileno())
        session_export.write_bundle(sink, folder, transcript, arriving.header, None, lambda *_: None)
    assert written > 3 * HELD
    with (folder / "data/a").open("rb") as file:
        assert all(file.read(1 << 16) == FILE[at : at + (1 << 16)] for at in range(0, len(FILE), 1 << 16))
    with (folder / "session.jsonl").open("rb") as lines:
        assert sum(line.endswith(b' {{SESSION_PATH}}/a","type":"user"}\n') for line in lines) == shape[0]


def test_no_bundle_holds_more_sessions_or_files_than_it_may(tmp_path: Path) -> None:
    most = session_bundle.MOST_SESSIONS
    path = tmp_path / "many.json"
    path.write_text('{"version": 1, "resources": {"sessions": [' + ",".join(["{}"] * (most + 5)) + "]}}")
    with path.open("rb") as file:
        _, issues = session_bundle.read(Bytes(path.stat().st_size, file.fileno()))
    assert "too-many-sessions" in [issue.code for issue in issues]


def test_a_folder_that_is_swapped_for_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ws" / "sessions" / "260101-a-b"
    (folder / "data" / "sub").mkdir(parents=True)
    (folder / "data" / "sub" / "key.txt").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key.txt").write_text("theirs")
    (folder / "session.jsonl").write_text('{"id":"260101-a-b"}\n')
    listed = session_export._walk

    def swapped(where: Path, above: str) -> Iterator[str]:
        found = list(listed(where, above))
        if not above:
            shutil.rmtree(folder / "data" / "sub")
            (folder / "data" / "sub").symlink_to(tmp_path / "outside")
        return iter(found)

    monkeypatch.setattr(session_export, "_walk", swapped)
    written: list[bytes] = []
    warned: list[str] = []
    with (folder / "session.jsonl").open("rb") as file:
        transcript = Bytes((folder / "session.jsonl").stat().st_size, file.fileno())
        session_export.write_bundle(
            written.append, folder, transcript, b"{}", None, lambda path, *_: warned.append(path)
        )
    assert warned == ["data/sub/key.txt"]
    assert json.loads(b"".join(written))["files"] == []
