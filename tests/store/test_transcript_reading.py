"""What a transcript finds in a file, sound or damaged. Files: golden `sessions` and the field bugs O01-O05."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from craftd.store import lines as lines_module
from craftd.store import locate
from craftd.store.transcript import Transcript
from tests.faults.transcripts import append, assert_equal_to_the_file, line, message, new_session, opened
from tests.model import golden

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden/sessions/workspace/sessions"
FIELD = TESTS / "field_bugs"

Copy = Callable[[Path], Path]

SOUND = sorted(folder.name for folder in GOLDEN.iterdir() if folder.name < "2604")


@pytest.fixture
def copied(tmp_path: Path) -> Copy:
    def copy(folder: Path) -> Path:
        shutil.copytree(folder, tmp_path / folder.name)
        return tmp_path / folder.name / "session.jsonl"

    return copy


def codes(transcript: Transcript) -> list[tuple[str, int | None]]:
    return [(damage.code, damage.line) for damage in transcript.damage]


def ids(transcript: Transcript) -> list[object]:
    return [segment.record and segment.record["id"] for segment in transcript.read(0, len(transcript))]


@pytest.mark.parametrize("name", SOUND)
def test_sound_sessions_have_no_damage_and_count_as_line_1_says(name: str) -> None:
    transcript = opened(GOLDEN / name / "session.jsonl")
    assert transcript.writable
    assert codes(transcript) == ([("header-oversized", 1)] if name in golden.OVERSIZED else [])
    header = transcript.header
    assert header is not None
    if "messageCount" in header:
        fields = transcript.counters.header_fields()
        for field in ("messageCount", "lastMessageRole", "lastFinalMessageId"):
            assert fields.get(field) == header.get(field)
        assert not transcript.needs_fold
    assert len(transcript) == transcript.count


DAMAGED = {
    # folder: (writable, messages, damage, ids by position; None = unreadable)
    "260401-torn-tail": (True, [("torn-tail", 4)], ["m1", "m2", None]),
    "260402-bad-middle": (True, [("line-unreadable", 3)], ["m1", None, "m3"]),
    "260403-zero-bytes": (False, [("header-missing", None)], []),
    "260405-crlf-lines": (True, [], ["m1", "m2", "m3"]),
    "260406-with-bom": (True, [], ["m1", "m2", "m3"]),
    "260407-left-tmp": (True, [], ["m1", "m2", "m3"]),
    "260408-tmp-only": (True, [("rescued", None)], ["m1", "m2", "m3"]),
    "260409-blank-first": (True, [("blank-first-line", 1)], ["m1", "m2", "m3"]),
    "260410-null-lines": (
        True, [("line-unreadable", number) for number in (3, 4, 5, 6)], ["m1", None, None, None, None, "m2", "m3"]
    ),
    "260411-null-header": (False, [("header-unreadable", 1)], ["m1", "m2", "m3"]),
    "260412-torn-header": (False, [("header-unreadable", 1)], ["m1", "m2", "m3"]),
    "260413-no-header": (False, [("header-missing", 1)], ["m1", "m2", "m3"]),
    "260414-torn-utf8": (True, [("line-unreadable", 3), ("torn-tail", 4)], ["m1", "m2", None]),
    "260415-wrong-id": (True, [("id-mismatch", 1)], ["m1", "m2", "m3"]),
    "260416-glued": (True, [("line-unreadable", 2)], ["m1", "m2", "m3"]),
    "260417-dup-ids": (True, [("id-repeated", 4)], ["m1", "m2", "m2", "m3"]),
    "260418-empty-object-header": (False, [("header-missing", 1)], ["m1", "m2", "m3"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_and_everything_else_is_read(name: str) -> None:
    writable, damage, found = DAMAGED[name]
    transcript = opened(GOLDEN / name / "session.jsonl")
    assert (transcript.writable, codes(transcript), ids(transcript)) == (writable, damage, found)
    assert transcript.count == len(found) - found.count(None)


def test_a_folder_without_any_file_is_no_session() -> None:
    with pytest.raises(FileNotFoundError):
        opened(GOLDEN / "260499-no-file/session.jsonl")


def test_a_header_without_line_end_counts_what_is_missing() -> None:
    transcript = opened(GOLDEN / "260404-header-only/session.jsonl")
    assert (len(transcript), codes(transcript)) == (0, [("count-mismatch", 1)])


@pytest.mark.parametrize(("field", "value"), [("lastMessageRole", "tool"), ("lastFinalMessageId", "m9")])
def test_what_line_1_says_of_the_messages_it_counts_must_be_true(tmp_path: Path, field: str, value: str) -> None:
    path = new_session(tmp_path, "m1")
    header = {**opened(path).header, "messageCount": 1, field: value}  # type: ignore[dict-item]
    path.write_bytes(line(header) + b"\n" + path.read_bytes().split(b"\n")[1] + b"\n")
    assert codes(opened(path)) == [("count-mismatch", 1)]
    path.write_bytes(path.read_bytes() + line(message("m2")) + b"\n")
    assert codes(opened(path)) == []  # one that is behind is brought up to date in its time


def test_line_1_of_more_bytes_than_the_app_lists_names_what_it_is_made_of() -> None:
    [damage] = opened(GOLDEN / "260315-high-mesa-3/session.jsonl").damage
    assert damage.message.startswith("line 1 has 18498 bytes")
    assert damage.message.endswith("transferredSessionSummary")


def test_invalid_utf8_is_shown_replaced_and_kept_as_bytes(copied: Copy) -> None:
    path = copied(GOLDEN / "260414-torn-utf8")
    transcript = opened(path)
    second = transcript.read(1, 2)[0]
    assert second.record is not None
    assert "\ufffd" in second.record["content"]
    assert second.damage is not None
    assert b"\xff" in second.raw
    transcript.rewrite(transcript.header)
    assert opened(path).read(1, 2)[0].raw == second.raw


def test_unicode_line_separators_end_no_line() -> None:
    transcript = opened(FIELD / "O01/ws/sessions/260102-amber-kite/session.jsonl")
    assert ids(transcript) == ["m1", "m2", "m3"]
    assert {"\u2028", "\u2029", "\u0085"} <= set(transcript.read(1, 2)[0].record["content"])  # type: ignore[index]


def test_blocks_of_nul_bytes_hide_nothing_and_go_with_the_next_rewrite(copied: Copy) -> None:
    path = copied(FIELD / "O02/ws/sessions/260102-brisk-otter")
    before = path.read_bytes()
    transcript = opened(path)
    assert ids(transcript) == ["m1", "m2", "m3"]
    assert [damage.code for damage in transcript.damage] == ["nul-bytes"] * 3 + ["count-mismatch"]
    transcript.rewrite({**transcript.header, **transcript.counters.header_fields()})
    records = [text for text in (part.strip(b"\0") for part in before.split(b"\n")[1:]) if text]
    assert path.read_bytes().split(b"\n")[1:] == [*records, b""]
    assert codes(transcript) == []
    assert_equal_to_the_file(transcript)


def test_appending_behind_nul_bytes_glues_nothing(copied: Copy) -> None:
    path = copied(FIELD / "O02/ws/sessions/260102-brisk-otter")
    transcript = opened(path)
    append(transcript, message("fresh"))
    assert ids(opened(path)) == ["m1", "m2", "m3", "fresh"]


def test_appending_behind_a_torn_line_glues_nothing(copied: Copy) -> None:
    path = copied(FIELD / "O03/ws/sessions/260102-cosy-ferry")
    fragment = path.read_bytes().split(b"\n")[-1]
    transcript = opened(path)
    append(transcript, message("fresh"))
    assert ids(transcript) == ["m1", "m2", None, "fresh"]
    assert codes(transcript) == [("line-unreadable", 4)]
    assert path.read_bytes().split(b"\n")[3:] == [fragment, line(message("fresh")), b""]
    assert_equal_to_the_file(transcript)


@pytest.mark.parametrize(
    ("name", "found"),
    [("260102-dusty-plum", ["m1", "m2"]), ("260102-empty-file", []), ("260102-array-head", ["m1"])],
)
def test_an_unreadable_first_line_hides_no_message_and_forbids_changes(name: str, found: list[str]) -> None:
    transcript = opened(FIELD / "O04/ws/sessions" / name / "session.jsonl")
    assert (transcript.header, transcript.writable, ids(transcript)) == (None, False, found)


def test_a_change_of_line_1_leaves_every_other_byte_alone(copied: Copy) -> None:
    path = copied(FIELD / "O05/ws/sessions/260102-fuzzy-lamp")
    before = path.read_bytes()
    transcript = opened(path)
    transcript.rewrite({**transcript.header, "labels": ["new"]})
    assert path.read_bytes().split(b"\n")[1:] == before.split(b"\n")[1:]
    assert b'"labels":["new"]' in path.read_bytes().split(b"\n")[0]


@pytest.mark.parametrize("name", [name for name in DAMAGED if DAMAGED[name][0]])
def test_damaged_lines_survive_a_rewrite_byte_for_byte(name: str, copied: Copy) -> None:
    path = copied(GOLDEN / name)
    transcript = opened(path)
    before = [segment.raw for segment in transcript.read(0, len(transcript))]
    transcript.rewrite({**transcript.header, "id": path.parent.name})
    append(transcript, message("fresh"))
    after = opened(path)
    assert [segment.raw for segment in after.read(0, len(after))] == [*before, line(message("fresh"))]
    assert after.writable
    assert_equal_to_the_file(transcript)


def session(tmp_path: Path, body: bytes) -> Path:
    path = new_session(tmp_path)
    path.write_bytes(path.read_bytes() + body)
    return path


def test_objects_divided_by_nul_bytes_are_read_and_then_divided_by_a_line_end(tmp_path: Path) -> None:
    one, two = line(message("m1")), line(message("m2"))
    path = session(tmp_path, one + bytes(40) + two + b"\n")
    transcript = opened(path)
    assert ids(transcript) == ["m1", "m2"]
    transcript.rewrite(transcript.header)
    assert path.read_bytes().split(b"\n")[1:] == [one, two, b""]
    assert_equal_to_the_file(transcript)


def test_a_header_glued_to_a_message_gets_a_line_of_its_own(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + line(message("m1")) + b"\n" + line(message("m2")) + b"\n")
    transcript = opened(path)
    assert ids(transcript) == ["m1", "m2"]
    assert transcript.writable
    assert codes(transcript) == [("line-unreadable", 1)]
    transcript.rewrite(transcript.header)
    assert path.read_bytes().split(b"\n")[1:] == [line(message("m1")), line(message("m2")), b""]
    assert_equal_to_the_file(transcript)


def test_messages_without_id_and_damaged_lines_can_be_addressed(tmp_path: Path) -> None:
    bare = message("x")
    del bare["id"]
    path = session(tmp_path, b"".join([b"broken\n", line(message("m1")), b"\n", line(bare), b"\n", b"[]\n"]))
    transcript = opened(path)
    broken, first, second, last = transcript.read(0, 4)
    assert [segment.index for segment in (broken, first, second, last)] == [None, 0, 1, None]
    assert [transcript.find(f"~{segment.offset}") for segment in (broken, first, second, last)] == [0, 1, 2, 3]
    assert [transcript.find(name) for name in ("#0", "#1", "#2", "m1", "m2", "~1", "~", "#-1")] == [
        1, 2, None, 1, None, None, None, None,
    ]  # fmt: skip
    assert transcript.tail_id == "#1"


def test_of_equal_ids_the_first_is_meant() -> None:
    transcript = opened(GOLDEN / "260417-dup-ids/session.jsonl")
    assert transcript.find("m2") == 1
    assert transcript.recent("m2") == transcript.read(1, 2)[0].record


def test_lines_longer_than_a_chunk_and_chunks_that_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(9)))
    whole = opened(path)
    for size in (1, 7, 64):
        monkeypatch.setattr(lines_module, "CHUNK", size)
        monkeypatch.setattr(lines_module, "FIRST_CHUNK", size)
        assert ids(opened(path)) == ids(whole)
        assert opened(path).body() == whole.body()
        assert_equal_to_the_file(whole)


def test_reading_fetches_only_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(100)))
    transcript = opened(path)
    monkeypatch.setattr("craftd.store.reading.READ_BATCH", 300)
    assert [segment.record["id"] for segment in transcript.read(40, 52)] == [f"m{n}" for n in range(40, 52)]  # type: ignore[index]
    assert transcript.read(98, 1000)[-1].index == 99
    assert transcript.read(5, 5) == []


def test_paths_in_messages_are_expanded(tmp_path: Path) -> None:
    path = session(tmp_path, b'{"id":"m1","content":"{{SESSION_PATH}}/plans","type":"user"}\n')
    transcript = Transcript.load(path, "/elsewhere/s")
    assert transcript.read(0, 1)[0].record["content"] == "/elsewhere/s/plans"  # type: ignore[index]


def test_a_missing_file_may_come_back_within_the_app_s_window(tmp_path: Path) -> None:
    path = new_session(tmp_path, "m1")
    path.rename(path.with_name("session.jsonl.tmp"))
    later = threading.Timer(0.02, lambda: path.with_name("session.jsonl.tmp").rename(path))
    later.start()
    assert codes(opened(path)) == []
    later.join()


@pytest.mark.parametrize("content", [b"", b'{"id":"260301-calm-cedar","createdAt":1}', b"\0" * 100 + b"\n"])
def test_an_incomplete_tmp_is_not_taken_for_the_session(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locate, "ABSENCE_MS", 2)
    path = new_session(tmp_path)
    path.unlink()
    path.with_name("session.jsonl.tmp").write_bytes(content)
    with pytest.raises(FileNotFoundError):
        opened(path)


def test_a_rescued_file_gets_its_name_with_the_first_change(copied: Copy) -> None:
    path = copied(GOLDEN / "260408-tmp-only")
    transcript = opened(path)
    assert not path.exists()
    append(transcript, message("fresh"))
    assert [entry.name for entry in path.parent.iterdir()] == ["session.jsonl"]
    assert codes(transcript) == []
    assert_equal_to_the_file(transcript)


def test_a_linked_session_folder_is_read_and_not_writable(tmp_path: Path) -> None:
    path = new_session(tmp_path / "real", "m1")
    (tmp_path / path.parent.name).symlink_to(path.parent)
    transcript = opened(tmp_path / path.parent.name / path.name)
    assert (codes(transcript), transcript.writable, ids(transcript)) == ([("linked", None)], False, ["m1"])


def test_lines_beyond_line_1_s_count_are_unfolded(tmp_path: Path) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(40)))
    assert opened(path).unfolded_bytes == 0
    extra = line(message("more")) + b"\n"
    path.write_bytes(path.read_bytes() + extra)
    transcript = opened(path)
    assert (transcript.unfolded_bytes, transcript.needs_fold) == (len(extra), False)
    append(transcript, *(message(f"n{number}") for number in range(8)))
    assert transcript.needs_fold
    transcript.rewrite({**transcript.header, **transcript.counters.header_fields()})
    assert (transcript.unfolded_bytes, opened(path).unfolded_bytes) == (0, 0)


def test_counters_are_the_same_whichever_way_they_came_about(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    transcript = opened(path)
    kinds = ("user", "assistant", "tool", "status")
    for number in range(23):
        append(transcript, {**message(f"m{number}", f"text {number}"), "type": kinds[number % 4], "timestamp": number})
        assert transcript.counters == opened(path).counters
    for position in (0, 22, 9, 1, 21):
        changed = {**message(f"m{position}", "changed"), "type": kinds[(position + 1) % 4], "timestamp": 99}
        transcript.rewrite(transcript.header, replaced={position: line(changed)})
        assert_equal_to_the_file(transcript)
    for gone in ([20, 22], [0], [3, 4, 5], [7]):
        transcript.rewrite(transcript.header, replaced=dict.fromkeys(gone))
        assert_equal_to_the_file(transcript)
        append(transcript, message(f"after-{gone[0]}"))
        assert_equal_to_the_file(transcript)
