"""Small transcripts for the fault suites, and what must be true of one afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from craftd.model.portable import dump_line
from craftd.model.records import Record
from craftd.store.transcript import Transcript


def message(identity: str, content: str = "text", **more: Any) -> Record:
    return {"id": identity, "content": content, "timestamp": 1, **more, "type": "assistant"}


def line(record: Record) -> bytes:
    return dump_line(record, "")


def new_session(root: Path, *identities: str, name: str = "260301-calm-cedar") -> Path:
    """A session folder with a message for each id; path of its session.jsonl."""
    folder = root / name
    folder.mkdir(parents=True)
    header = {"id": name, "createdAt": 1, "name": "Old", "messageCount": len(identities)}
    path = folder / "session.jsonl"
    path.write_bytes(b"".join(line(record) + b"\n" for record in (header, *map(message, identities))))
    return path


def opened(path: Path) -> Transcript:
    return Transcript.load(path, str(path.parent))


def append(transcript: Transcript, *records: Record) -> None:
    transcript.append([dump_line(record, transcript.directory) for record in records], records)


def contents(transcript: Transcript) -> dict[str, Any]:
    """What the file says: content by id; line 1's name under ""."""
    found: dict[str, Any] = {"": None if transcript.header is None else transcript.header.get("name")}
    for segment in transcript.read(0, len(transcript)):
        if segment.record is not None:
            found.setdefault(segment.record["id"], segment.record["content"])
    return found


def assert_equal_to_the_file(transcript: Transcript) -> None:
    """Everything an open transcript believes is what a fresh look at the file finds."""
    fresh = Transcript.load(transcript.path, transcript.directory)
    assert transcript.check()
    assert (transcript.header, transcript.counters) == (fresh.header, fresh.counters)
    assert transcript.body() == fresh.body()
    assert transcript.damage == fresh.damage
    assert transcript.read(0, len(transcript)) == fresh.read(0, len(fresh))
