"""A power cut at any moment loses nothing acknowledged and leaves every file readable."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from craftd.store import atomic, disk
from craftd.store.atomic import DirectoryNotFlushed
from tests.faults.harness import Outage, Recorder
from tests.faults.transcripts import append, contents, line, message, new_session, opened

Story = Callable[[Path, Recorder, pytest.MonkeyPatch], None]
"""Changes the session at a path and marks each acknowledgement: content by id, None = deleted, "" = name on line 1."""


def appends(path: Path, recorder: Recorder, _: pytest.MonkeyPatch) -> None:
    transcript = opened(path)
    for identity in ("m3", "m4", "m5"):
        append(transcript, message(identity))
        recorder.mark({identity: "text"})


def appends_behind_a_torn_tail(path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = disk.open_append(path)
    disk.write(fd, b'{"id":"torn","cont')
    disk.flush(fd)
    disk.close(fd)
    appends(path, recorder, monkeypatch)


def rewrites(path: Path, recorder: Recorder, _: pytest.MonkeyPatch) -> None:
    transcript = opened(path)
    transcript.rewrite({**transcript.header, "name": "New"})
    recorder.mark({"": "New"})
    append(transcript, message("m3"))
    recorder.mark({"m3": "text"})
    transcript.rewrite(transcript.header, [line(message("m4"))], replaced={0: line(message("m1", "new")), 1: None})
    recorder.mark({"m1": "new", "m2": None, "m4": "text"})
    append(transcript, message("m5"))
    recorder.mark({"m5": "text"})


def a_prepared_rewrite(path: Path, recorder: Recorder, _: pytest.MonkeyPatch) -> None:
    transcript = opened(path)
    prepared = transcript.prepare({**transcript.header, "name": "New"})
    append(transcript, message("m3"))
    recorder.mark({"m3": "text"})
    transcript.finish(prepared, [line(message("m4"))])
    recorder.mark({"": "New", "m4": "text"})


def a_failed_flush(path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = opened(path)
    append(transcript, message("m3"))
    recorder.mark({"m3": "text"})
    _fail_once(monkeypatch, FLUSH)
    with pytest.raises(OSError, match="EIO"):
        append(transcript, message("m4"))
    append(transcript, message("m4"))
    recorder.mark({"m4": "text"})
    append(transcript, message("m5"))
    recorder.mark({"m5": "text"})


def a_folder_that_was_not_flushed(path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = opened(path)
    append(transcript, message("m3"))
    recorder.mark({"m3": "text"})
    _fail_once(monkeypatch, "craftd.store.disk.flush_directory")
    with pytest.raises(DirectoryNotFlushed):
        transcript.rewrite({**transcript.header, "name": "New"})
    append(transcript, message("m4"))
    recorder.mark({"": "New", "m4": "text"})


def a_rescued_file(path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.rename(path, path.with_name("session.jsonl.tmp"))
    appends(path, recorder, monkeypatch)


def a_file_renamed_in_by_somebody(path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = disk.create(path.with_name("beside"))
    disk.write(fd, path.read_bytes())
    disk.close(fd)
    disk.rename(path.with_name("beside"), path)  # As the app does: nothing is flushed.
    appends(path, recorder, monkeypatch)


STORIES = (
    appends, appends_behind_a_torn_tail, rewrites, a_prepared_rewrite, a_failed_flush, a_folder_that_was_not_flushed,
    a_rescued_file, a_file_renamed_in_by_somebody,
)  # fmt: skip
FLUSH = "os.fdatasync"
"""Below the recorder, so that it sees the failure: what this flush should have written is lost for good."""

WRITTEN_BY_THE_APP = (a_rescued_file, a_file_renamed_in_by_somebody)
"""Until the first acknowledgement the app's own unflushed save may be lost with everything in it."""


def _fail_once(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    *module, function = name.split(".")
    real = getattr(importlib.import_module(".".join(module)), function)

    def fail(*_: object) -> None:
        monkeypatch.setattr(name, real)
        raise OSError(errno.EIO, "EIO")

    monkeypatch.setattr(name, fail)


def losses(outage: Outage, marks: list[Any], path: Path, root: Path) -> list[str]:
    """What is missing after a power cut. *marks*: all of the story, of which the outage saw the first few."""
    outage.restore(root)
    try:
        transcript = opened(root / path.parent.name / path.name)
    except FileNotFoundError as error:
        return [f"step {outage.moment}: {error}"]
    found = contents(transcript)
    problems = [] if transcript.writable else [f"step {outage.moment}: {transcript.damage}"]
    allowed: dict[str, list[Any]] = {"": ["Old"], "m1": ["text"], "m2": ["text"]}
    for number, mark in enumerate(marks):
        for identity, content in mark.items():
            # Acknowledged: this and nothing older. Not yet: it may be there, or not.
            before = [] if number < len(outage.marks) else allowed.get(identity, [None])
            allowed[identity] = [*before, content]
    for identity, contents_ in allowed.items():
        if found.get(identity) not in contents_:
            problems.append(f"step {outage.moment}: {identity} is {found.get(identity)!r}, not one of {contents_}")
    return problems


def play(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, honest: bool = True) -> list[str]:
    root = tmp_path / "sessions"
    path = new_session(root, "m1", "m2")
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, root)
        story(path, recorder, patched)
    marks = [what for _, what in recorder.marks]
    return [
        problem
        for number, outage in enumerate(recorder.outages(honest=honest))
        if outage.marks or story not in WRITTEN_BY_THE_APP
        for problem in losses(outage, marks, path, tmp_path / str(number))
    ]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_power_cut_loses_nothing_acknowledged(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(story, tmp_path, monkeypatch) == []


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_without_flushing_the_same_cuts_do_lose(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert play(story, tmp_path, monkeypatch, honest=False) != []


def test_without_flushing_folders_an_append_to_a_renamed_file_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story(path: Path, recorder: Recorder, patched: pytest.MonkeyPatch) -> None:
        patched.setattr(disk, "flush_directory", lambda _: None)
        a_file_renamed_in_by_somebody(path, recorder, patched)

    assert play(story, tmp_path, monkeypatch) != []


def test_flushing_again_after_a_failed_flush_would_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def story(path: Path, recorder: Recorder, patched: pytest.MonkeyPatch) -> None:
        flush = disk.flush

        def trusting(fd: int) -> None:
            try:
                flush(fd)
            except OSError:
                flush(fd)

        patched.setattr(disk, "flush", trusting)
        transcript = opened(path)
        _fail_once(patched, FLUSH)
        append(transcript, message("m3"))
        recorder.mark({"m3": "text"})

    assert play(story, tmp_path, monkeypatch) != []


@pytest.mark.parametrize("known", [True, False])
def test_a_power_cut_leaves_the_old_file_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    (root := tmp_path / "config").mkdir()
    (root / "a.json").write_bytes(b"old")
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, root)
        atomic.replace(root / "a.json", b"new", expect=atomic.fingerprint(root / "a.json") if known else atomic.ANY)
        recorder.mark("new")
    for honest, allowed in ((True, {b"new"}), (False, {b"new", b"old"})):
        after = {outage.tree["a.json"] for outage in recorder.outages(honest=honest) if outage.marks}
        assert after >= allowed if not honest else after == allowed
    assert {outage.tree["a.json"] for outage in recorder.outages()} == {b"old", b"new"}


def test_a_power_cut_leaves_no_half_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root := tmp_path / "sessions").mkdir()
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, root)
        atomic.create_folder(root / "s", {"session.jsonl": b"{}\n", "notes.md": b"n"}, ("plans",))
        recorder.mark("made")
    whole = {"session.jsonl": b"{}\n", "notes.md": b"n", "plans": {}}
    for outage in recorder.outages():
        assert outage.tree.get("s", whole) == whole
        assert not outage.marks or "s" in outage.tree
    assert any(outage.tree.get("s", whole) != whole for outage in recorder.outages(honest=False))


def test_a_power_cut_leaves_the_old_folder_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root := tmp_path / "skills").mkdir()
    atomic.create_folder(root / "s", {"SKILL.md": b"old", "old.txt": b"o"})
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, root)
        atomic.replace_folder(root / "s", {"SKILL.md": b"new", "docs/a.txt": b"a"}, root / "kept")
        recorder.mark("done")
    old, new = {"SKILL.md": b"old", "old.txt": b"o"}, {"SKILL.md": b"new", "docs": {"a.txt": b"a"}}
    for outage in recorder.outages():
        assert outage.tree.get("s") == new if outage.marks else outage.tree.get("s") in (old, new)
        assert old in outage.tree.values()
    assert any(outage.tree.get("s") not in (old, new) for outage in recorder.outages(honest=False))
