"""Every disk call of every kind of write fails in turn: nothing acknowledged is lost, and the next try succeeds."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from craftd.model.records import Record
from craftd.store import locate
from craftd.store.atomic import DirectoryNotFlushed, ForeignWrite
from craftd.store.transcript import Transcript
from tests.faults.harness import Breaker
from tests.faults.transcripts import append, assert_equal_to_the_file, contents, line, message, new_session, opened


def plain_append(transcript: Transcript) -> None:
    append(transcript, message("m3", "x" * 5000))


def rewrite(transcript: Transcript) -> None:
    transcript.rewrite(
        {**transcript.header, "name": "New"}, [line(message("m3", "x" * 5000))], replaced={0: line(message("m1"))}
    )


def prepared_rewrite(transcript: Transcript) -> None:
    prepared = transcript.prepare({**transcript.header, "name": "New"})
    transcript.finish(prepared, [line(message("m3", "x" * 5000))])


WRITES = (plain_append, rewrite, prepared_rewrite)


def as_it_is(path: Path) -> None:
    pass


def torn(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"id":"torn')


def linked_twice(path: Path) -> None:
    path.with_name("backup").hardlink_to(path)


def only_the_tmp(path: Path) -> None:
    path.rename(path.with_name("session.jsonl.tmp"))


STATES = (as_it_is, torn, linked_twice, only_the_tmp)
Write = Callable[[Transcript], None]
State = Callable[[Path], None]


def after_failures(
    tmp_path: Path, breaker: Breaker, write: Write, state: State, number: int, *, torn_write: bool, forever: bool
) -> list[str]:
    """Make each call of *write* fail, then try again on a sound disk; what went wrong, in words."""
    problems: list[str] = []
    for step in range(100):
        path = new_session(tmp_path / f"{write.__name__}-{step}", "m1", "m2")
        state(path)
        transcript = opened(path)
        breaker.arm(step, number, torn=torn_write, forever=forever)
        failed = False
        try:
            write(transcript)
        except OSError as error:
            failed = True
            if error.errno != number:
                problems.append(f"the error came out as {error!r}")
        reached = breaker.calls[step] if len(breaker.calls) > step else None
        breaker.disarm()
        found = contents(opened(path))
        if not {"m1", "m2"} <= found.keys() or (not failed and "m3" not in found):
            problems.append(f"{reached}: only {sorted(found)} are left")
        if failed:
            try:
                transcript.check() or transcript.reload()
                if "m3" not in contents(transcript):
                    write(transcript)
            except (OSError, ForeignWrite) as error:
                problems.append(f"{reached}: the next try failed: {error!r}")
                continue
            if set(contents(opened(path))) != {"", "m1", "m2", "m3"}:
                problems.append(f"{reached}: {sorted(contents(opened(path)))} after the next try")
        assert_equal_to_the_file(transcript)
        names = {entry.name for entry in path.parent.iterdir()} - {"backup", "session.jsonl", "session.jsonl.tmp"}
        if names and reached != "remove" and not forever:
            problems.append(f"{reached}: {names} left behind")
        if reached is None:
            return problems
    raise AssertionError("the write never came to its end")


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
@pytest.mark.parametrize(
    ("number", "torn_write", "forever"),
    [(errno.ENOSPC, True, False), (errno.EIO, False, False), (errno.EIO, False, True)],
)
def test_whichever_disk_call_fails_nothing_is_lost(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    state: State,
    number: int,
    torn_write: bool,
    forever: bool,
) -> None:
    monkeypatch.setattr(locate, "ABSENCE_MS", 2)
    breaker = Breaker(monkeypatch)
    found = after_failures(tmp_path, breaker, write, state, number, torn_write=torn_write, forever=forever)
    assert found == []


def test_errors_that_are_swallowed_show_as_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that logs its disk errors and goes on."""
    honest = Transcript.append

    def careless(self: Transcript, lines: Sequence[bytes], records: Sequence[Record]) -> None:
        with suppress(OSError):
            honest(self, lines, records)

    monkeypatch.setattr(Transcript, "append", careless)
    breaker = Breaker(monkeypatch)
    found = after_failures(tmp_path, breaker, plain_append, as_it_is, errno.ENOSPC, torn_write=True, forever=False)
    assert any("only" in problem for problem in found)


def test_a_failed_flush_makes_every_change_fail_until_a_new_file_could_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_session(tmp_path, "m1")
    transcript = opened(path)
    append(transcript, message("m2"))
    breaker = Breaker(monkeypatch)
    breaker.arm(breaker_step(breaker, "flush", transcript), errno.EIO)
    with pytest.raises(OSError, match="EIO"):
        append(transcript, message("m3"))
    assert contents(opened(path)).keys() == {"", "m1", "m2"}
    breaker.arm(0, errno.ENOSPC)
    with pytest.raises(OSError, match="ENOSPC"):
        append(transcript, message("m3"))
    assert breaker.calls == ["create"]
    breaker.disarm()
    append(transcript, message("m3"))
    assert "create" in breaker.calls
    assert "exchange" in breaker.calls
    assert_equal_to_the_file(transcript)


def breaker_step(breaker: Breaker, name: str, transcript: Transcript) -> int:
    """Number of the call *name* within an append to an open transcript."""
    breaker.disarm()
    append(transcript, message("probe"))
    step = breaker.calls.index(name)
    transcript.rewrite(transcript.header, replaced={len(transcript) - 1: None})
    return step


def test_a_file_whose_cutting_back_fails_too_still_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_session(tmp_path, "m1")
    transcript = opened(path)
    append(transcript, message("m2"))
    breaker = Breaker(monkeypatch)
    breaker.arm(0, errno.EIO, torn=True, forever=True)
    with pytest.raises(OSError, match="EIO"):
        append(transcript, message("m3", "x" * 100))
    assert breaker.calls == ["write", "truncate"]
    breaker.disarm()
    append(transcript, message("m3"))
    assert contents(opened(path)).keys() == {"", "m1", "m2", "m3"}
    assert opened(path).damage == ()
    assert_equal_to_the_file(transcript)


def test_a_new_file_that_may_not_survive_is_made_safe_before_the_next_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_session(tmp_path, "m1")
    transcript = opened(path)
    transcript.rewrite(transcript.header)
    breaker = Breaker(monkeypatch)
    transcript.rewrite(transcript.header)
    last = len(breaker.calls) - 1
    assert breaker.calls[last] == "flush_directory"
    breaker.arm(last, errno.EIO)
    with pytest.raises(DirectoryNotFlushed):
        transcript.rewrite({**transcript.header, "name": "New"})
    breaker.arm(0, errno.EIO)
    with pytest.raises(OSError, match="EIO") as caught:
        append(transcript, message("m2"))
    assert not isinstance(caught.value, DirectoryNotFlushed)
    assert breaker.calls == ["flush_directory"]
    breaker.disarm()
    append(transcript, message("m2"))
    assert breaker.calls == ["flush_directory", "write", "flush"]
    assert contents(opened(path)) == {"": "New", "m1": "text", "m2": "text"}
