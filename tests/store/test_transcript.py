"""Appending, rewriting, and what happens when somebody else writes as well."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from craftd.model.portable import dump_line
from craftd.store import disk, lines
from craftd.store import rewrite as rewrite_module
from craftd.store.atomic import ForeignWrite
from craftd.store.lines import compare_body
from craftd.store.transcript import Stale, Transcript
from tests.faults.transcripts import append, assert_equal_to_the_file, contents, line, message, new_session, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_session(tmp_path, "m1", "m2")


@pytest.fixture
def transcript(path: Path) -> Transcript:
    return opened(path)


def only_file(path: Path) -> bool:
    return [entry.name for entry in path.parent.iterdir()] == [path.name]


# Appending


def test_an_append_writes_its_lines_and_nothing_else(path: Path, transcript: Transcript) -> None:
    before = path.read_bytes()
    append(transcript, message("m3"), message("m4"))
    assert path.read_bytes() == before + line(message("m3")) + b"\n" + line(message("m4")) + b"\n"
    assert (transcript.count, transcript.tail_id, transcript.find("m4")) == (4, "m4", 3)
    assert_equal_to_the_file(transcript)


def test_an_append_makes_the_same_disk_calls_and_reads_line_one_alone_however_long_the_transcript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    for number in (1, 3000):
        transcript = opened(new_session(tmp_path / str(number), *(f"m{n}" for n in range(number))))
        append(transcript, message("first"))
        calls.append([])
        for name in ("open_read", "open_append", "create", "write", "flush", "flush_directory", "copy_range"):
            real = getattr(disk, name)
            monkeypatch.setattr(
                disk, name, lambda *args, real=real, name=name: (calls[-1].append(name), real(*args))[1]
            )
        with monkeypatch.context() as patched:
            read: list[bytes] = []
            patched.setattr(
                os, "pread", lambda *args, read=read, real=os.pread: (read.append(real(*args)), read[-1])[1]
            )
            append(transcript, message("second"))
        monkeypatch.undo()
        assert read == [transcript.path.read_bytes().splitlines(keepends=True)[0]]
    assert calls == [["write", "flush"]] * 2


def test_an_append_to_a_file_with_two_names_leaves_the_other_alone(path: Path, transcript: Transcript) -> None:
    path.with_name("backup").hardlink_to(path)
    before = path.read_bytes()
    append(transcript, message("m3"))
    assert path.with_name("backup").read_bytes() == before
    assert contents(opened(path)).keys() == {"", "m1", "m2", "m3"}
    assert_equal_to_the_file(transcript)


def test_a_linked_file_is_written_at_its_target(tmp_path: Path, path: Path) -> None:
    (target := tmp_path / "elsewhere.jsonl").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(target)
    transcript = opened(path)
    append(transcript, message("m3"))
    transcript.rewrite({**transcript.header, "name": "New"})
    append(transcript, message("m4"))
    assert path.is_symlink()
    assert b"m4" in target.read_bytes()
    assert_equal_to_the_file(transcript)


def test_line_1_without_line_end_gets_one_before_the_first_message(tmp_path: Path) -> None:
    path = new_session(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    transcript = opened(path)
    append(transcript, message("m1"))
    append(transcript, message("m2"))
    assert path.read_bytes().count(b"\n") == 3
    assert_equal_to_the_file(transcript)


def test_recent_messages_are_recognised_by_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("craftd.store.reading.RECENT", 3)
    transcript = opened(new_session(tmp_path, "m1", "m2", "m3", "m4", "m5"))
    append(transcript, *(message(f"n{number}") for number in range(5)))
    known = [name for name in ("m1", "m2", "m3", "m4", "m5", "n0", "n4", "n5") if transcript.recent(name)]
    assert known == ["m3", "m4", "m5", "n0", "n4"]
    assert transcript.recent("n4") == message("n4")


def test_appending_goes_on_after_closing(path: Path, transcript: Transcript) -> None:
    append(transcript, message("m3"))
    transcript.close()
    transcript.close()
    append(transcript, message("m4"))
    assert_equal_to_the_file(transcript)


# Rewriting


def test_a_rewrite_changes_line_1_keeps_the_mode_and_leaves_one_file(path: Path, transcript: Transcript) -> None:
    path.chmod(0o640)
    body = path.read_bytes().split(b"\n", 1)[1]
    transcript.rewrite({**transcript.header, "name": "New", "unknown": [1]}, [line(message("m3"))])
    first, rest = path.read_bytes().split(b"\n", 1)
    assert json.loads(first) == {**transcript.header, "name": "New", "unknown": [1]}
    assert rest == body + line(message("m3")) + b"\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert only_file(path)
    assert_equal_to_the_file(transcript)
    append(transcript, message("m4"))
    assert_equal_to_the_file(transcript)


def test_lines_are_replaced_and_taken_out_where_they_stand(tmp_path: Path) -> None:
    path = new_session(tmp_path, *"abcdef")
    transcript = opened(path)
    changed = line(message("c", "longer than before"))
    transcript.rewrite(transcript.header, [line(message("g"))], replaced={2: changed, 0: None, 5: None})
    assert path.read_bytes().split(b"\n")[1:] == [
        line(message("b")), changed, line(message("d")), line(message("e")), line(message("g")), b"",
    ]  # fmt: skip


def test_a_replaced_last_line_without_line_end_is_not_glued(path: Path) -> None:
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    transcript = opened(path)
    transcript.rewrite(transcript.header, [line(message("m3"))], replaced={1: line(message("m2", "new"))})
    assert contents(opened(path)) == {"": "Old", "m1": "text", "m2": "new", "m3": "text"}
    assert_equal_to_the_file(transcript)


def test_padding_goes_with_the_line_it_belongs_to(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"}\n", b"}\0\0\n"))
    transcript = opened(path)
    transcript.rewrite(transcript.header, replaced={0: None})
    assert path.read_bytes().split(b"\n")[1:] == [line(message("m2")), b""]
    assert_equal_to_the_file(transcript)


def test_line_numbers_follow_a_line_1_that_moved_up(path: Path) -> None:
    path.write_bytes(b"\n\n" + path.read_bytes() + b"broken\n")
    transcript = opened(path)
    assert [damage.line for damage in transcript.damage] == [1, 6]
    transcript.rewrite(transcript.header)
    assert [damage.line for damage in transcript.damage] == [4]
    assert_equal_to_the_file(transcript)


def test_what_was_appended_during_a_prepared_rewrite_is_in_the_new_file(path: Path, transcript: Transcript) -> None:
    header = {**transcript.header, "name": "New", **transcript.counters.header_fields()}
    prepared = transcript.prepare(header, replaced={0: line(message("m1", "new"))})
    append(transcript, message("m3"))
    transcript.finish(prepared, [line(message("m4"))])
    assert contents(opened(path)) == {"": "New", "m1": "new", "m2": "text", "m3": "text", "m4": "text"}
    assert only_file(path)
    assert transcript.unfolded_bytes == len(line(message("m3")) + line(message("m4"))) + 2
    assert_equal_to_the_file(transcript)


def test_a_prepared_rewrite_is_stale_after_another_rewrite_or_a_reload(path: Path, transcript: Transcript) -> None:
    for between in (lambda: transcript.rewrite(transcript.header), transcript.reload):
        prepared = transcript.prepare({**transcript.header, "name": "Stale"})
        between()
        with pytest.raises(Stale):
            transcript.finish(prepared)
    assert contents(opened(path))[""] == "Old"
    assert only_file(path)


def test_a_prepared_rewrite_that_is_not_wanted_leaves_nothing(path: Path, transcript: Transcript) -> None:
    transcript.prepare(transcript.header).discard()
    assert only_file(path)
    assert_equal_to_the_file(transcript)


def test_reading_in_another_thread_never_notices_our_own_rewrites(path: Path, transcript: Transcript) -> None:
    failures: list[BaseException] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                assert transcript.read(0, 2)[1].record == message("m2")
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        transcript.rewrite({**transcript.header, "name": str(number)})
        append(transcript, message(f"n{number}"))
    stop.set()
    reader.join()
    assert failures == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_an_open_transcript_always_equals_its_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = new_session(tmp_path_factory.mktemp("s"))
    pieces = st.sampled_from(
        [
            line(message("a")),
            line(message("b")),
            b"[]",
            b"broken",
            bytes(7),
            b" ",
            b"\r",
            line(message("a")) * 2,
            b"\xff",
        ]
    )
    separators = st.sampled_from([b"\n", b"\r\n", b"\0\n", b"", b"\0"])
    for piece, separator in data.draw(st.lists(st.tuples(pieces, separators), max_size=6)):
        path.write_bytes(path.read_bytes() + piece + separator)
    transcript = opened(path)
    survivors = {segment.raw for segment in transcript.read(0, len(transcript))}
    for number in range(data.draw(st.integers(1, 4))):
        positions = st.sets(st.integers(0, len(transcript) - 1), max_size=2) if len(transcript) else st.just(set())
        match data.draw(st.sampled_from(["append", "rewrite", "change", "remove", "foreign"])):
            case "append":
                append(transcript, message(f"n{number}"))
            case "rewrite":
                transcript.rewrite({**transcript.header, "name": str(number)}, [line(message(f"n{number}"))])
            case "change":
                changes = {position: line(message(f"c{position}")) for position in data.draw(positions)}
                survivors -= {transcript.read(position, position + 1)[0].raw for position in changes}
                transcript.rewrite(transcript.header, replaced=changes)
            case "remove":
                gone = data.draw(positions)
                survivors -= {transcript.read(position, position + 1)[0].raw for position in gone}
                transcript.rewrite(transcript.header, replaced=dict.fromkeys(gone))
            case "foreign":
                path.write_bytes(path.read_bytes() + b"\n" + line(message(f"f{number}")))
                transcript.reload()
        assert_equal_to_the_file(transcript)
        written = path.read_bytes()
        assert all(raw in written for raw in survivors)
    assert transcript.writable


# Somebody else

Save = Callable[[Path, bytes], object]


def in_place(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def by_rename(path: Path, data: bytes) -> None:
    (beside := path.with_name("theirs")).write_bytes(data)
    beside.rename(path)


def as_the_app_does(path: Path, data: bytes) -> None:
    (beside := path.with_name("session.jsonl.tmp")).write_bytes(data)
    path.unlink()
    beside.rename(path)


SAVES = pytest.mark.parametrize("save", [in_place, by_rename, as_the_app_does])


def renamed(data: bytes) -> bytes:
    return data.replace(b'"name":"Old"', b'"name":"Theirs"', 1)


@SAVES
@pytest.mark.parametrize("change", ["append", "rewrite", "finish"])
def test_nothing_is_written_over_a_foreign_save(path: Path, transcript: Transcript, save: Save, change: str) -> None:
    append(transcript, message("m3"))
    prepared = transcript.prepare(transcript.header)
    theirs = renamed(path.read_bytes())
    save(path, theirs)
    assert not transcript.check()
    with pytest.raises(ForeignWrite):
        {
            "append": lambda: append(transcript, message("m4")),
            "rewrite": lambda: transcript.rewrite(transcript.header),
            "finish": lambda: transcript.finish(prepared),
        }[change]()
    assert path.read_bytes() == theirs
    prepared.discard()
    assert only_file(path)
    foreign = transcript.reload()
    assert (foreign.header_before["name"], foreign.header_after["name"]) == ("Old", "Theirs")
    assert (foreign.appended, foreign.changed, foreign.deleted, foreign.lost_own) == ((), (), (), ())
    append(transcript, message("m4"))
    assert contents(opened(path)) == {"": "Theirs", "m1": "text", "m2": "text", "m3": "text", "m4": "text"}
    assert_equal_to_the_file(transcript)


@SAVES
def test_a_save_in_the_middle_of_an_append_makes_the_append_start_again(
    path: Path, transcript: Transcript, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(transcript, message("m3"))
    theirs = renamed(path.read_bytes())
    flush = disk.flush

    def late(fd: int) -> None:
        flush(fd)
        save(path, theirs)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "flush", late)
        with pytest.raises(ForeignWrite):
            append(transcript, message("m4"))
    transcript.reload()
    if transcript.recent("m4") is None:
        append(transcript, message("m4"))
    assert contents(opened(path)) == {"": "Theirs", "m1": "text", "m2": "text", "m3": "text", "m4": "text"}


def test_a_foreign_append_in_the_middle_of_ours_doubles_nothing_and_ours_stays_ours(
    path: Path, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = disk.write

    def late(fd: int, data: bytes) -> None:
        with path.open("ab") as file:
            file.write(line(message("theirs")) + b"\n")
        write(fd, data)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "write", late)
        with pytest.raises(ForeignWrite):
            append(transcript, message("ours"))
    foreign = transcript.reload()
    assert [segment.record["id"] for p in foreign.appended for segment in transcript.read(p, p + 1)] == [
        "theirs",
        "ours",
    ]
    assert transcript.recent("ours") == message("ours")
    by_rename(path, b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    foreign = transcript.reload()
    assert (foreign.lost_own, foreign.deleted) == ((line(message("ours")),), ("theirs",))


@pytest.mark.parametrize("step", ["exchange", "flush_full"])
@SAVES
def test_a_save_in_the_middle_of_a_rewrite_stays(
    path: Path, transcript: Transcript, save: Save, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = renamed(path.read_bytes()) + line(message("theirs")) + b"\n"
    real = getattr(disk, step)

    def delayed(*args: object) -> object:
        monkeypatch.setattr(disk, step, real)
        save(path, theirs)
        return real(*args)

    monkeypatch.setattr(disk, step, delayed)
    with pytest.raises(ForeignWrite):
        transcript.rewrite({**transcript.header, "name": "Ours"}, [line(message("ours"))])
    assert path.read_bytes() == theirs
    assert only_file(path)
    assert transcript.reload().appended == (2,)
    transcript.rewrite({**transcript.header, "labels": ["ours"]}, [line(message("ours"))])
    assert contents(opened(path)).keys() == {"", "m1", "m2", "theirs", "ours"}
    assert_equal_to_the_file(transcript)


def test_a_file_cut_short_while_it_is_copied_is_a_foreign_write(
    path: Path, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = disk.copy_range

    def late(*args: int) -> None:
        os.truncate(path, 10)
        copy(*args)

    monkeypatch.setattr(disk, "copy_range", late)
    with pytest.raises(ForeignWrite):
        transcript.rewrite(transcript.header)
    assert path.stat().st_size == 10
    assert only_file(path)


@SAVES
def test_foreign_changes_are_told_line_by_line(tmp_path: Path, save: Save) -> None:
    path = new_session(tmp_path, *"abcd")
    transcript = opened(path)
    text = path.read_bytes().replace(line(message("b")) + b"\n", b"")
    text = text.replace(line(message("c")), line(message("c", "edited"))) + line(message("e")) + b"\n"
    save(path, text)
    foreign = transcript.reload()
    assert (foreign.appended, foreign.changed, foreign.deleted) == ((3,), (1,), ("b",))
    assert foreign.in_order
    assert_equal_to_the_file(transcript)


@pytest.mark.parametrize(
    ("order", "in_order"),
    [("abcd", True), ("abcde", True), ("abc", True), ("bacd", False), ("xabcd", False), ("abxcd", False)],
)
def test_lines_that_change_places_are_told_from_those_that_come_and_go(
    tmp_path: Path, order: str, in_order: bool
) -> None:
    path = new_session(tmp_path, *"abcd")
    transcript = opened(path)
    by_rename(path, path.read_bytes().split(b"\n")[0] + b"\n" + b"".join(line(message(m)) + b"\n" for m in order))
    assert transcript.reload().in_order is in_order


@SAVES
@pytest.mark.parametrize("closed", [False, True])
def test_acknowledged_lines_that_a_foreign_save_drops_are_handed_back(
    path: Path, transcript: Transcript, save: Save, closed: bool
) -> None:
    seen_by_the_app = path.read_bytes()
    append(transcript, message("m3"), message("m4"))
    if closed:
        transcript.close()
    save(path, renamed(seen_by_the_app).replace(line(message("m1")) + b"\n", b""))
    foreign = transcript.reload()
    assert foreign.lost_own == (line(message("m3")), line(message("m4")))
    assert (foreign.deleted, foreign.unrecoverable) == (("m1",), 0)
    append(transcript, message("m3"), message("m4"))
    assert contents(opened(path)) == {"": "Theirs", "m2": "text", "m3": "text", "m4": "text"}


def test_more_acknowledged_lines_than_memory_holds_come_from_the_replaced_file(
    path: Path, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("craftd.store.compare.REMEMBERED_BYTES", 100)
    seen_by_the_app = path.read_bytes()
    ours = [message(f"n{number}", "x" * 50) for number in range(20)]
    append(transcript, *ours)
    by_rename(path, seen_by_the_app)
    assert transcript.reload().lost_own == tuple(map(line, ours))


def test_lines_that_are_nowhere_any_more_are_counted(
    path: Path, transcript: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("craftd.store.compare.REMEMBERED_BYTES", 100)
    seen_by_the_app = path.read_bytes()
    append(transcript, *(message(f"n{number}", "x" * 50) for number in range(20)))
    in_place(path, seen_by_the_app)
    foreign = transcript.reload()
    assert foreign.lost_own == (line(message("n19", "x" * 50)),)
    assert foreign.unrecoverable == 19


@SAVES
def test_a_change_of_ours_that_a_foreign_save_takes_back_is_handed_back(
    path: Path, transcript: Transcript, save: Save
) -> None:
    seen_by_the_app = path.read_bytes()
    changed = line(message("m2", "changed by us"))
    transcript.rewrite(transcript.header, replaced={1: changed})
    save(path, renamed(seen_by_the_app))
    assert transcript.reload().reverted == ((1, changed),)
    save(path, path.read_bytes().replace(b"text", b"edited by them"))
    assert transcript.reload().changed == (0, 1)


@SAVES
@pytest.mark.parametrize("at_the_end", [True, False])
def test_a_line_that_we_took_out_and_an_older_copy_brings_back_is_told(
    path: Path, transcript: Transcript, save: Save, at_the_end: bool
) -> None:
    append(transcript, message("m3"))
    seen_by_the_app = path.read_bytes()
    transcript.rewrite(transcript.header, replaced={1: line(message("m2", "changed by us"))})
    transcript.rewrite(transcript.header, replaced={2 if at_the_end else 1: None})
    save(path, renamed(seen_by_the_app))
    assert transcript.reload().returned == ((2,) if at_the_end else (1,))


def test_a_line_that_is_back_as_something_else_is_theirs(path: Path, transcript: Transcript) -> None:
    seen_by_the_app = path.read_bytes()
    transcript.rewrite(transcript.header, replaced={1: None})
    by_rename(path, renamed(seen_by_the_app).replace(line(message("m2")), line(message("m2", "theirs"))))
    foreign = transcript.reload()
    assert (foreign.returned, foreign.appended) == ((), (1,))
    transcript.rewrite(transcript.header, replaced={1: None})
    append(transcript, message("m2"))  # appended again, it is ours again
    by_rename(path, renamed(path.read_bytes()))
    assert transcript.reload().returned == ()


def test_an_edit_costs_a_look_at_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(500)))
    transcript = opened(path)
    append(transcript, {**message("a"), "type": "assistant"})
    parsed: list[bytes] = []
    parse = rewrite_module.parse_line
    monkeypatch.setattr(
        rewrite_module, "parse_line", lambda data, directory: (parsed.append(data), parse(data, directory))[1]
    )
    for position in (0, 250, 499):
        transcript.rewrite(transcript.header, replaced={position: line(message(f"m{position}", "new"))})
    transcript.rewrite(transcript.header, replaced=dict.fromkeys(range(100, 400)))
    assert len(parsed) < 20
    monkeypatch.undo()
    assert_equal_to_the_file(transcript)


def test_a_save_that_only_appends_or_only_changes_line_1_is_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(50)))
    transcript = opened(path)
    parsed: list[bytes] = []
    parse = lines.parse_line
    monkeypatch.setattr(lines, "parse_line", lambda data, directory: (parsed.append(data), parse(data, directory))[1])
    by_rename(path, renamed(path.read_bytes()) + line(message("new")) + b"\n")
    assert transcript.reload().appended == (50,)
    assert len(parsed) == 2
    monkeypatch.undo()
    assert_equal_to_the_file(transcript)


def test_a_body_is_recognised_without_having_been_open(path: Path, transcript: Transcript) -> None:
    known = transcript.body()
    assert compare_body(path, known) == "same"
    transcript.rewrite({**transcript.header, "name": "A longer name"})
    assert compare_body(path, known) == "same"
    append(transcript, message("m3"))
    assert compare_body(path, known) == "appended"
    transcript.rewrite(transcript.header, replaced={0: line(message("m1", "new!"))})
    assert compare_body(path, known) == "changed"
    transcript.rewrite(transcript.header, replaced={0: None, 1: None})
    assert compare_body(path, known) == "changed"


def test_a_file_that_is_gone_is_reported_and_nothing_forgotten(path: Path, transcript: Transcript) -> None:
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(ForeignWrite):
        append(transcript, message("m3"))
    with pytest.raises(FileNotFoundError):
        transcript.reload()
    path.write_bytes(data)
    transcript.reload()
    append(transcript, message("m3"))
    assert_equal_to_the_file(transcript)


def test_reading_a_file_that_somebody_else_changed_is_refused(path: Path, transcript: Transcript) -> None:
    in_place(path, path.read_bytes().replace(b"text", b"TEXT"))
    with pytest.raises(ForeignWrite):
        transcript.read(0, 2)


def test_a_rescued_file_whose_name_was_taken_meanwhile_is_a_foreign_write(path: Path) -> None:
    path.rename(path.with_name("session.jsonl.tmp"))
    transcript = opened(path)
    new = path.with_name("session.jsonl.tmp").read_bytes() + line(message("m3")) + b"\n"
    path.write_bytes(new)
    with pytest.raises(ForeignWrite):
        append(transcript, message("m4"))
    assert path.read_bytes() == new
    transcript.reload()
    append(transcript, message("m4"))
    assert contents(opened(path)).keys() == {"", "m1", "m2", "m3", "m4"}


def test_lines_go_to_disk_with_portable_paths(path: Path, transcript: Transcript) -> None:
    record = message("m3", f"{path.parent}/plans/a.md")
    transcript.append([dump_line(record, transcript.directory)], [record])
    transcript.rewrite({**transcript.header, "sdkCwd": str(path.parent)})
    assert str(path.parent).encode() not in path.read_bytes()
    assert transcript.header["sdkCwd"] == str(path.parent)
    assert_equal_to_the_file(transcript)
