"""What is found wrong with a transcript; the file written after the plan is sound and loses nothing readable."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import sessions
from craftd.model.records import Record
from craftd.store import repair
from craftd.store.transcript import Transcript
from craftd.workspace.draft import Draft
from tests.faults.transcripts import assert_equal_to_the_file, line, message, new_session, opened
from tests.model import golden

FIELD = Path(__file__).parents[1] / "field_bugs"
DAMAGED = sorted(folder for folder in golden.FOLDERS.iterdir() if "2604" < folder.name < "260499")
HURT = sorted(path.parent for name in ("O02", "O03", "O04") for path in (FIELD / name).rglob("session.jsonl"))


def mend(transcript: Transcript, known: Record | None = None) -> repair.Plan:
    """As a commit does it."""
    plan = repair.plan(transcript, known)
    if plan.mends:
        assert plan.header is not None
        draft = Draft(transcript, transcript.directory)
        draft.mend(plan.lines)
        counted = sessions.after_edit({**plan.header, "id": transcript.path.parent.name}, draft.counters, ())
        transcript.rewrite(counted, replaced=draft.replaced)
        assert transcript.counters == opened(transcript.path).counters == draft.counters
    return plan


def records(path: Path) -> list[Any]:
    """Every line, each one object; blank ones are none."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    found = [json.loads(text) for text in data.decode("utf-8-sig").split("\n") if text.strip()]
    assert all(isinstance(record, dict) for record in found)
    return found


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Path], Path]:
    def copy(folder: Path) -> Path:
        shutil.copytree(folder, tmp_path / folder.name)
        return tmp_path / folder.name / "session.jsonl"

    return copy


def readable(transcript: Transcript) -> list[Record]:
    segments = transcript.read(0, len(transcript))
    return [segment.record for segment in segments if segment.record is not None]


@pytest.mark.parametrize("folder", [*DAMAGED, *HURT], ids=lambda folder: folder.name)
def test_a_mended_file_is_sound_and_says_all_that_could_be_read(copied: Callable[[Path], Path], folder: Path) -> None:
    path = copied(folder)
    transcript = opened(path)
    before, damage = readable(transcript), transcript.damage
    plan = mend(transcript)
    assert [(one.code, one.line) for one in plan.found] == [(one.code, one.line) for one in damage]
    assert all(one.remedy for one in plan.found)
    fresh = opened(path)
    assert fresh.damage == ()
    after = readable(fresh)
    if folder.name == "260417-dup-ids":
        assert after[2] == {**before[2], "id": "m2-2"}
        after[2] = before[2]
    assert after == before
    assert_equal_to_the_file(fresh)
    header, *rest = records(path)
    assert header["id"] == folder.name
    assert header["messageCount"] == len(before) == len(rest)
    written = path.read_bytes()
    assert not mend(opened(path)).mends
    assert path.read_bytes() == written


@pytest.mark.parametrize("session", golden.SOUND)
def test_nothing_is_found_in_a_sound_session(session: str) -> None:
    plan = repair.plan(opened(golden.FOLDERS / session / "session.jsonl"), None)
    assert [(one.code, one.remedy is None) for one in plan.found] == (
        [("header-oversized", session.endswith("-3"))] if session in golden.OVERSIZED else []
    )


def test_a_torn_header_keeps_what_is_left_of_it(copied: Callable[[Path], Path]) -> None:
    path = copied(FIELD / "O04/ws/sessions/260102-dusty-plum")
    plan = mend(opened(path))
    assert "what is left of it" in (plan.found[0].remedy or "")
    header = records(path)[0]
    assert header["createdAt"] == header["lastMessageAt"] == 1767225601000
    assert header["preview"] == "first question about the plum budget"


def test_a_header_known_from_before_goes_before_what_is_left(copied: Callable[[Path], Path]) -> None:
    path = copied(golden.FOLDERS / "260412-torn-header")
    plan = mend(opened(path), {"id": "260412-torn-header", "name": "Known", "createdAt": 5})
    assert plan.found[0].remedy == "line 1 is made anew, of what was known of it"
    assert (records(path)[0]["name"], records(path)[0]["createdAt"]) == ("Known", 5)


def test_a_message_appended_behind_half_a_line_is_saved(tmp_path: Path) -> None:
    path = new_session(tmp_path, "m1")
    glued = b'{"id":"m2","content":"ha' + line(message("m3")) + b"\n"
    path.write_bytes(path.read_bytes() + glued + line(message("m4")) + b"\n")
    transcript = opened(path)
    assert transcript.count == 2
    mend(transcript)
    assert [one["id"] for one in records(path)[1:]] == ["m1", "m3", "m4"]


def test_what_is_saved_there_and_was_written_again_stays_once(tmp_path: Path) -> None:
    path = new_session(tmp_path, "m1")
    half = b'{"id":"m2","content":"ha'
    m3 = line(message("m3"))
    path.write_bytes(path.read_bytes() + half + m3 + b"\n" + m3 + b"\n" + half + line(message("m3", "other")) + b"\n")
    mend(opened(path))
    assert [one["id"] for one in records(path)[1:]] == ["m1", "m3", "m3-2"]
    assert opened(path).damage == ()


def test_records_that_share_a_line_are_divided_and_what_is_none_goes(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    one, two, three = (line(message(f"m{n}")) for n in (1, 2, 3))
    path.write_bytes(path.read_bytes() + one + b" " + two + b'{"id":"m' + b"\n" + three + one + b"\n[]" + two + b"\n")
    mend(opened(path))
    assert [record["id"] for record in records(path)[1:]] == ["m1", "m2", "m3"]
    assert opened(path).damage == ()


def test_a_session_behind_a_link_is_left_as_it_is(tmp_path: Path) -> None:
    path = new_session(tmp_path / "elsewhere", "m1")
    path.write_bytes(path.read_bytes() + b"broken\n")
    (tmp_path / "link").symlink_to(path.parent)
    plan = repair.plan(opened(tmp_path / "link" / "session.jsonl"), None)
    assert [one.remedy for one in plan.found] == [None] * len(plan.found)
    assert not plan.mends


PIECES = st.sampled_from(
    [
        line(message("m1")), line(message("m1", "other")), line(message("m2")), b'{"id":"m3","content":"ha', b"null",
        b"[]", b"\0\0\0", b"\n", b"\n", b"\n", b" ", b"\r\n", b"{}", b'{"id":"s","createdAt":1}',
        line({"id": "x", "content": "\u65e5"})[:-4], b'{"id":"m4","content":"\xff","type":"user"}',
    ]
)  # fmt: skip


HEADS = st.sampled_from([b'{"id":"s","createdAt":1,"name":"n"}\n', b'{"id":"s","na', b"", b"\n", b"\xef\xbb\xbf"])


@given(head=HEADS, pieces=st.lists(PIECES, max_size=9))
def test_whatever_was_written_is_mended_at_once_and_for_good(
    tmp_path_factory: pytest.TempPathFactory, head: bytes, pieces: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("w") / "s" / "session.jsonl"
    path.parent.mkdir()
    path.write_bytes(head + b"".join(pieces))
    transcript = opened(path)
    before = readable(transcript)
    mend(transcript)
    fresh = opened(path)
    assert fresh.damage == ()
    contents = [(one.get("content"), one.get("type")) for one in readable(fresh)]
    assert all((one.get("content"), one.get("type")) in contents for one in before)
    written = path.read_bytes()
    mend(opened(path))
    assert path.read_bytes() == written


def test_lines_that_go_from_the_middle_of_one_line_to_the_middle_of_another_leave_two(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    one, two, three, four = (line(message(f"m{n}")) for n in range(4))
    path.write_bytes(path.read_bytes() + one + two + b"\n" + three + four + b"\n")
    transcript = opened(path)
    transcript.rewrite({**(transcript.header or {}), "messageCount": 2}, replaced={1: None, 2: None})
    assert path.read_bytes().split(b"\n")[1:] == [one, four, b""]
    assert_equal_to_the_file(transcript)
