"""Opening a transcript again, without parsing its lines, finds what parsing them finds; and notices when it may not."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.model.portable import dump_line
from craftd.store import sound as sound_module
from craftd.store.lines import BODY_DAMAGE, Scan
from craftd.store.sound import Sound, scan_sound
from craftd.store.transcript import Transcript
from tests.faults.transcripts import append, line, message, new_session, opened
from tests.store.test_tail import RECORDED, heads
from tests.strategies import message_records


def sound_of(whole: Transcript) -> Sound:
    return Sound(whole.body(), len(whole), whole.counters.header_fields())


def scanned(path: Path, sound: Sound) -> Scan | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        return scan_sound(fd, os.fstat(fd).st_size, str(path.parent), path.parent.name, sound)
    finally:
        os.close(fd)


def everything(transcript: Transcript) -> dict[str, Any]:
    table = transcript._table
    arrays = {
        name: list(getattr(table, name)) for name in ("offsets", "lengths", "digests", "ids", "own", "unreadable")
    }
    return {
        **arrays,
        "header": transcript.header,
        "counters": transcript.counters,
        "damage": transcript.damage,
        "body": transcript.body(),
        "unfolded": transcript.unfolded_bytes,
        "recent": transcript._recent,
        "ended": transcript._ended,
        "lines": transcript.read(0, len(transcript)),
    }


def is_sound(whole: Transcript) -> bool:
    return not any(damage.code in BODY_DAMAGE for damage in whole.damage)


def test_recorded_sessions_are_the_same_when_they_are_opened_again() -> None:
    again = 0
    for path in RECORDED:
        whole = opened(path)
        if is_sound(whole):
            found = Transcript.load(path, str(path.parent), sound_of(whole))
            assert everything(found) == everything(whole), path
            again += scanned(path, sound_of(whole)) is not None
    assert again > 15


odd = st.sampled_from(
    [
        b'{"id":"a","id":"b","content":"","type":"user"}', b'{"id":"a","content":"","type":"user", "id" : "b"}',
        b'{"id":"a","content":"","type":"user","\\u0069d":"b"}', b'{"id":"\\u0041","content":"","type":"user"}',
        b'{"id":"{{SESSION_PATH}}/x","content":"","type":"user"}', b'{"id":"q\\"q","content":"","type":"user"}',
        b'{"content":"","id":"late","type":"user"}', b'{"content":"none","type":"user"}', b'{"id":7,"type":"user"}',
        b'{"id":"deep","annotations":[{"id":"n"}],"type":"user"}', b"  ", b"", b' {"id":"blank","type":"user"} \r',
        b'{"id":"","type":"user"}', b'{"id":"}\\n","type":"user"}', "{\"id\":\"é\",\"type\":\"user\"}".encode(),
    ]
)  # fmt: skip


@settings(deadline=None)
@given(
    head=heads,
    records=st.lists(message_records, max_size=6, unique_by=lambda record: record["id"]),
    odd=st.lists(odd, max_size=4, unique=True),
    order=st.randoms(use_true_random=False),
    ended=st.booleans(),
    chunk=st.sampled_from([1, 100, 1 << 17]),
)
def test_whatever_is_sound_is_the_same_when_it_is_opened_again(
    head: bytes, records: list[Any], odd: list[bytes], order: Any, ended: bool, chunk: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sound_module, "CHUNK", chunk)
        path = Path(folder) / "s" / "session.jsonl"
        path.parent.mkdir()
        lines = [*(dump_line(record, str(path.parent)) for record in records), *odd]
        order.shuffle(lines)
        path.write_bytes(head + b"\n".join(lines) + (b"\n" if ended else b""))
        whole = opened(path)
        if is_sound(whole):
            found = Transcript.load(path, str(path.parent), sound_of(whole))
            assert everything(found) == everything(whole)


def test_what_was_known_of_another_body_is_not_believed(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    transcript = opened(path)
    append(transcript, {**message("m1"), "type": "user"}, message("m2"))
    old = sound_of(transcript)
    assert scanned(path, old) is not None
    assert scanned(path, evolve(old, lines=3)) is None
    append(transcript, message("m3"))
    assert scanned(path, old) is None
    path.write_bytes(path.read_bytes().replace(line(message("m3")) + b"\n", b"").replace(b"of m1", b"OF m1"))
    path.write_bytes(path.read_bytes().replace(b'"text"', b'"TEXT"'))
    assert scanned(path, old) is None
    assert everything(Transcript.load(path, str(path.parent), old)) == everything(opened(path))


def test_lines_of_an_agent_are_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_session(tmp_path)
    transcript = opened(path)
    append(transcript, {**message("u"), "type": "user"}, *(message(f"m{number}") for number in range(500)))
    sound, parsed = sound_of(transcript), []
    parse = sound_module.parse_line
    monkeypatch.setattr(sound_module, "parse_line", lambda *given: parsed.append(given) or parse(*given))
    found = scanned(path, sound)
    assert found is not None
    assert len(found.table) == 501
    assert len(parsed) == 1
