from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from craftd.store import disk, watch
from craftd.store.watch import GONE, HOME, OVERFLOW, UNWATCHED_FOLDER, Watcher

PATIENCE = 20.0
"""Seconds until a report that must come counts as missing."""

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's watches are counted")


class Seen:
    """What a watcher said, and waiting for it."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.losses: list[str] = []
        self._said = threading.Condition()

    def on_paths(self, paths: set[str]) -> None:
        with self._said:
            self.paths |= paths
            self._said.notify_all()

    def on_lost(self, reason: str) -> None:
        with self._said:
            self.losses.append(reason)
            self._said.notify_all()

    def forget(self) -> None:
        with self._said:
            self.paths.clear()
            self.losses.clear()

    def wait_for(self, *paths: str) -> None:
        self._wait(lambda: self.paths.issuperset(paths), paths)

    def wait_for_loss(self, reason: str) -> None:
        self._wait(lambda: reason in self.losses, reason)

    def _wait(self, condition: Callable[[], bool], what: object) -> None:
        with self._said:
            came = self._said.wait_for(condition, PATIENCE)
        assert came, f"no report of {what}; seen: {sorted(self.paths)[:20]} {self.losses}"


class Workspace:
    """A watched folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for room in ("sessions", "skills", "sources", "labels", "statuses", "projects", "tasks", ".trash"):
            (root / room).mkdir()
        self.seen = Seen()
        self.watcher = Watcher(root, self.seen.on_paths, self.seen.on_lost)
        self._sentinels = 0

    def start(self) -> None:
        self.watcher.start()
        assert self.watcher.ready.wait(PATIENCE)

    def catch_up(self) -> None:
        """Everything done before this has been reported after it: the kernel's queue keeps the order."""
        self._sentinels += 1
        name = f"sentinel-{self._sentinels}"
        (self.root / name).write_bytes(b"")
        self.seen.wait_for(name)

    def session(self, name: str) -> Path:
        folder = self.root / "sessions" / name
        folder.mkdir()
        (folder / "session.jsonl").write_bytes(b"{}\n")
        return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (root := tmp_path / "ws").mkdir()
    workspace = Workspace(root)
    yield workspace
    workspace.watcher.stop()


def kernel_watches() -> int:
    """Inotify watches of this process, as the kernel counts them."""
    return sum(
        line.startswith("inotify wd:")
        for info in Path("/proc/self/fdinfo").iterdir()
        if info.exists()
        for line in info.read_text().splitlines()
    )


def _in_place(target: Path, elsewhere: Path) -> None:
    target.write_bytes(b"new")


def _beside(target: Path, elsewhere: Path) -> None:
    temporary = target.with_name(f".{target.name}.77-abcd.tmp")
    temporary.write_bytes(b"new")
    temporary.rename(target)


def _from_elsewhere(target: Path, elsewhere: Path) -> None:
    (elsewhere / "new").write_bytes(b"new")
    (elsewhere / "new").rename(target)


def _unlinked_first(target: Path, elsewhere: Path) -> None:
    (temporary := target.with_name(target.name + ".tmp")).write_bytes(b"new")
    target.unlink()
    temporary.rename(target)


@pytest.fixture(params=["kernel", "observer"])
def any_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "observer":
        monkeypatch.setattr(watch, "_folders", watch._ObservedFolders)
    elif sys.platform != "linux":
        pytest.skip("no inotify")


@pytest.mark.usefixtures("any_backend")
@pytest.mark.parametrize("save", [_in_place, _beside, _from_elsewhere, _unlinked_first])
@pytest.mark.parametrize("name", ["labels/config.json", "skills/tidy/SKILL.md", "sessions/260102-a-b/session.jsonl"])
def test_every_way_to_save_a_file_is_seen_and_no_temporary_file(
    tmp_path: Path, save: Callable[[Path, Path], None], name: str
) -> None:
    (tmp_path / "ws").mkdir()
    workspace = Workspace(tmp_path / "ws")
    target = workspace.root / name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(b"old")
    workspace.start()
    try:
        save(target, tmp_path)
        workspace.seen.wait_for(name)
        workspace.catch_up()
        assert not [path for path in workspace.seen.paths if path.rpartition("/")[2].startswith(".")]
    finally:
        workspace.watcher.stop()


def test_a_session_folder_moved_in_comes_with_its_files(workspace: Workspace, tmp_path: Path) -> None:
    workspace.start()
    (outside := tmp_path / "outside").mkdir()
    (outside / "session.jsonl").write_bytes(b"{}\n")
    outside.rename(workspace.root / "sessions/260102-far-away")
    workspace.seen.wait_for("sessions/260102-far-away", "sessions/260102-far-away/session.jsonl")
    workspace.seen.forget()
    with (workspace.root / "sessions/260102-far-away/session.jsonl").open("ab") as file:
        file.write(b"{}\n")
    workspace.seen.wait_for("sessions/260102-far-away/session.jsonl")


def test_two_hundred_folders_made_in_a_loop_lose_none(workspace: Workspace) -> None:
    workspace.start()
    script = (
        "import os, sys\n"
        "for n in range(200):\n"
        "    os.mkdir(f'260102-loop-{n}')\n"
        "    open(f'260102-loop-{n}/session.jsonl', 'w').write('{}')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=workspace.root / "sessions", check=True)
    workspace.seen.wait_for(*(f"sessions/260102-loop-{n}/session.jsonl" for n in range(200)))
    workspace.seen.forget()
    for n in range(200):
        (workspace.root / f"sessions/260102-loop-{n}/session.jsonl").write_bytes(b"[]")
    workspace.seen.wait_for(*(f"sessions/260102-loop-{n}/session.jsonl" for n in range(200)))
    assert workspace.seen.losses == []


def test_a_renamed_session_is_seen_under_both_names_and_then_under_the_new_one(workspace: Workspace) -> None:
    folder = workspace.session("260102-old-name")
    workspace.start()
    moved = folder.rename(workspace.root / "sessions/260102-new-name")
    workspace.seen.wait_for(
        "sessions/260102-old-name", "sessions/260102-new-name", "sessions/260102-new-name/session.jsonl"
    )
    workspace.seen.forget()
    (moved / "session.jsonl").write_bytes(b"{}\n{}\n")
    workspace.seen.wait_for("sessions/260102-new-name/session.jsonl")
    workspace.catch_up()
    assert not [path for path in workspace.seen.paths if "old-name" in path]


@needs_inotify
def test_a_folder_moved_out_is_watched_no_longer_and_holds_nothing_up(workspace: Workspace, tmp_path: Path) -> None:
    folder = workspace.session("260102-gone-away")
    workspace.start()
    before = kernel_watches()
    moved = folder.rename(tmp_path / "outside")
    workspace.seen.wait_for("sessions/260102-gone-away")
    assert kernel_watches() == before - 1
    workspace.seen.forget()
    (moved / "session.jsonl").write_bytes(b"changed")
    workspace.catch_up()
    assert not [path for path in workspace.seen.paths if "gone-away" in path]
    moved.rename(folder)
    workspace.seen.wait_for("sessions/260102-gone-away/session.jsonl")
    assert kernel_watches() == before


def test_folders_that_exchange_their_names_stay_watched_both(workspace: Workspace) -> None:
    first, second = workspace.session("260102-a-a"), workspace.session("260102-b-b")
    workspace.start()
    if not disk.exchange(first, second):
        pytest.skip("this file system exchanges no names")
    workspace.seen.wait_for("sessions/260102-a-a", "sessions/260102-b-b")
    workspace.catch_up()
    workspace.seen.forget()
    (first / "session.jsonl").write_bytes(b"1")
    (second / "session.jsonl").write_bytes(b"2")
    workspace.seen.wait_for("sessions/260102-a-a/session.jsonl", "sessions/260102-b-b/session.jsonl")


def test_a_deleted_session_that_is_made_again_at_once_stays_watched(workspace: Workspace) -> None:
    folder = workspace.session("260102-again")
    workspace.start()
    for _ in range(50):
        shutil.rmtree(folder)
        workspace.session("260102-again")
    workspace.catch_up()
    workspace.seen.forget()
    (folder / "session.jsonl").write_bytes(b"last")
    workspace.seen.wait_for("sessions/260102-again/session.jsonl")


@needs_inotify
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_to_folders_exactly_those_that_are_there_are_watched(
    workspace: Workspace, tmp_path: Path, seed: int
) -> None:
    skills, outside = workspace.root / "skills", tmp_path / "outside"
    outside.mkdir()
    before = kernel_watches()
    moves: list[Callable[[Path, Path], object]] = [
        lambda first, _: (first / "scripts").mkdir(parents=True),
        lambda first, _: shutil.rmtree(first),
        lambda first, second: first.rename(second),
        disk.exchange,
        lambda first, _: first.rename(outside / first.name),
        lambda first, _: (outside / first.name).rename(first),
    ]

    def disturb(choose: random.Random) -> None:
        for _ in range(1500):
            first, second = (skills / f"s{choose.randrange(20)}" for _ in range(2))
            with contextlib.suppress(OSError):
                choose.choice(moves)(first, second)

    threads = [threading.Thread(target=disturb, args=(random.Random(f"{seed} {n}"),)) for n in range(3)]
    for thread in threads:
        thread.start()
    workspace.start()
    for thread in threads:
        thread.join()
    workspace.catch_up()
    there = [path for path in skills.iterdir() if path.is_dir()]
    there += [path / "scripts" for path in there if (path / "scripts").is_dir()]
    assert workspace.watcher.watches == kernel_watches() - before == len(there) + 8
    workspace.seen.forget()
    for path in there:
        (path / "probe").write_bytes(b"")
    workspace.seen.wait_for(*(f"{path.relative_to(workspace.root)}/probe" for path in there))


@pytest.mark.usefixtures("any_backend")
def test_subfolders_of_a_session_are_seen_only_while_it_is_open(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    workspace = Workspace(tmp_path / "ws")
    folder = workspace.session("260102-deep-plan")
    room = "sessions/260102-deep-plan"
    (folder / "plans").mkdir()
    workspace.start()
    try:
        (folder / "plans/early.md").write_bytes(b"")
        workspace.catch_up()
        assert f"{room}/plans/early.md" not in workspace.seen.paths
        workspace.watcher.watch_session("260102-deep-plan")
        (folder / "plans/open.md").write_bytes(b"")
        workspace.seen.wait_for(f"{room}/plans/open.md")
        (folder / "downloads/assets").mkdir(parents=True)
        (folder / "downloads/assets/new.png").write_bytes(b"")
        workspace.seen.wait_for(f"{room}/downloads/assets/new.png")
        workspace.watcher.unwatch_session("260102-deep-plan")
        (folder / "plans/late.md").write_bytes(b"")
        (folder / "downloads/assets/late.png").write_bytes(b"")
        workspace.catch_up()
        assert not workspace.seen.paths & {f"{room}/plans/late.md", f"{room}/downloads/assets/late.png"}
        (folder / "session.jsonl").write_bytes(b"{}\n{}\n")
        workspace.seen.wait_for(f"{room}/session.jsonl")
    finally:
        workspace.watcher.stop()


@needs_inotify
def test_only_what_can_hold_records_is_watched(workspace: Workspace) -> None:
    unwatched = [
        ".trash/260102-a-b",
        ".git/objects",
        "sessions/260102-a-b/data",
        "sessions/260102-a-b/own-folder",
        "skills/tidy/scripts/vendor",
        "skills/tidy/node_modules/left-pad",
        "sources/mail/.cache",
        "build/output",
    ]
    watched = ["skills/tidy", "skills/tidy/scripts", "sources/mail", "sessions/260102-a-b", "statuses/icons"]
    for name in [*unwatched, *watched]:
        (workspace.root / name).mkdir(parents=True, exist_ok=True)
    before = kernel_watches()
    workspace.start()
    rooms = 1 + 7  # the root and its rooms
    assert kernel_watches() - before == workspace.watcher.watches == rooms + len(watched)
    for name in [*unwatched, *watched]:
        (workspace.root / name / "file").write_bytes(b"")
    workspace.seen.wait_for(*(f"{name}/file" for name in watched))
    workspace.catch_up()
    assert not {f"{name}/file" for name in unwatched} & workspace.seen.paths


def test_the_configuration_folder_has_other_rooms(tmp_path: Path) -> None:
    for name in ("permissions", "workspaces/one/sessions", "craftd/cache"):
        (tmp_path / name).mkdir(parents=True)
    seen = Seen()
    watcher = Watcher(tmp_path, seen.on_paths, seen.on_lost, rooms=HOME)
    watcher.start()
    try:
        assert watcher.ready.wait(PATIENCE)
        for name in ("craftd/cache/index", "workspaces/one/x", "permissions/default.json", "config.json"):
            (tmp_path / name).write_bytes(b"{}")
        seen.wait_for("permissions/default.json", "config.json")
        assert not {"craftd/cache/index", "workspaces/one/x"} & seen.paths
    finally:
        watcher.stop()


def test_reading_everything_reports_nothing(workspace: Workspace) -> None:
    folder = workspace.session("260102-read-me")
    workspace.start()
    for _ in range(3):
        assert os.listdir(workspace.root / "sessions")
        assert (folder / "session.jsonl").read_bytes()
    workspace.catch_up()
    assert {path for path in workspace.seen.paths if not path.startswith("sentinel")} == set()


def test_a_name_that_is_no_text_arrives_as_the_system_spells_it(workspace: Workspace) -> None:
    workspace.start()
    name = os.fsdecode(b"skills/caf\xe9")
    try:
        (workspace.root / name).mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    workspace.seen.wait_for(name)


def test_a_linked_folder_is_named_but_not_entered(workspace: Workspace, tmp_path: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    workspace.start()
    (workspace.root / "skills/shared").symlink_to(outside)
    workspace.seen.wait_for("skills/shared")
    (outside / "SKILL.md").write_bytes(b"")
    workspace.catch_up()
    assert "skills/shared/SKILL.md" not in workspace.seen.paths
    assert workspace.seen.losses == []


def test_a_path_written_all_the_time_is_reported_all_the_same(workspace: Workspace) -> None:
    workspace.start()
    done = threading.Event()

    def write() -> None:
        with (workspace.root / "busy").open("ab", buffering=0) as file:
            while not done.wait(0.002):
                file.write(b"x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        workspace.seen.wait_for("busy")
    finally:
        done.set()
        writer.join()


def test_nested_workspaces_both_see_what_is_theirs(workspace: Workspace) -> None:
    (inner := workspace.root / "skills/inner").mkdir()
    seen = Seen()
    watcher = Watcher(inner, seen.on_paths, seen.on_lost)
    workspace.start()
    watcher.start()
    assert watcher.ready.wait(PATIENCE)
    (inner / "config.json").write_bytes(b"{}")
    seen.wait_for("config.json")
    workspace.seen.wait_for("skills/inner/config.json")
    watcher.stop()
    (inner / "views.json").write_bytes(b"{}")
    workspace.seen.wait_for("skills/inner/views.json")
    assert "views.json" not in seen.paths


class Plug:
    """Keeps the process's event reader busy, so that the kernel's queue fills up."""

    def __init__(self, folder: Path) -> None:
        from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyFD

        self._reader = InotifyFD.get_instance()
        self._reached, self._go_on = threading.Event(), threading.Event()
        self._id = CallbackId(-1)
        self._watch = self._reader.add_callback(os.fsencode(folder), InotifyConstants.IN_CREATE, self, self._id)
        (folder / "stop here").write_bytes(b"")
        assert self._reached.wait(PATIENCE)

    def on_event(self, event: object) -> None:
        self._reached.set()
        assert self._go_on.wait(PATIENCE)

    def on_watch_deleted(self, wd: object) -> None: ...
    def on_queue_overflow(self) -> None: ...

    def pull(self) -> None:
        self._go_on.set()
        self._reader.remove_callbacks([(self._watch, self._id)])


def _overflow(folder: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("the kernel's queue is too long to fill it")
    for n in range(limit // 2 + 100):  # equal neighbours would count once
        (folder / f"drop-{n % 2}").write_bytes(b"")
        (folder / f"drop-{n % 2}").unlink()


@needs_inotify
def test_an_overflow_is_told_and_watching_is_right_again_after_it(workspace: Workspace, tmp_path: Path) -> None:
    (plugged := tmp_path / "plugged").mkdir()
    for name in ("renamed", "replaced", "moved-out"):
        workspace.session(name)
    workspace.start()
    plug = Plug(plugged)
    _overflow(workspace.root)
    sessions = workspace.root / "sessions"
    (sessions / "renamed").rename(sessions / "renamed-too")
    shutil.rmtree(sessions / "replaced")
    workspace.session("replaced")
    outside = (sessions / "moved-out").rename(tmp_path / "outside")
    workspace.session("created")
    plug.pull()
    workspace.seen.wait_for_loss(OVERFLOW)
    assert workspace.watcher.overflows >= 1
    assert workspace.watcher.watches == 8 + 3
    workspace.catch_up()
    workspace.seen.forget()
    for name in ("renamed-too", "replaced", "created"):
        (sessions / name / "session.jsonl").write_bytes(b"after")
    (outside / "session.jsonl").write_bytes(b"after")
    workspace.seen.wait_for(*(f"sessions/{name}/session.jsonl" for name in ("renamed-too", "replaced", "created")))
    workspace.catch_up()
    assert not [path for path in workspace.seen.paths if path.rpartition("/")[0] == "sessions/renamed"]
    assert not [path for path in workspace.seen.paths if "moved-out" in path]


@needs_inotify
def test_an_overflow_with_more_folders_than_the_queue_holds_does_not_cause_the_next(
    workspace: Workspace, tmp_path: Path
) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 20_000 or int(Path("/proc/sys/fs/inotify/max_user_watches").read_text()) < 2 * limit:
        pytest.skip("the kernel's limits are far from what they usually are")
    (plugged := tmp_path / "plugged").mkdir()
    for n in range(limit + 500):
        (workspace.root / f"sessions/s{n}").mkdir()
    workspace.start()
    plug = Plug(plugged)
    _overflow(workspace.root)
    plug.pull()
    workspace.seen.wait_for_loss(OVERFLOW)
    workspace.catch_up()
    assert workspace.watcher.overflows == 1
    assert workspace.watcher.watches == limit + 500 + 8


@needs_inotify
def test_watches_above_the_limit_are_counted_and_told_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    real, left = InotifyFD.add_callback, 30

    def limited(self: InotifyFD, *args: object) -> int:
        nonlocal left
        if left == 0:
            raise OSError(28, "inotify watch limit reached")
        left -= 1
        return real(self, *args)  # type: ignore[arg-type]

    for n in range(50):
        workspace.session(f"260102-s-{n}")
    monkeypatch.setattr(InotifyFD, "add_callback", limited)
    workspace.start()
    workspace.seen.wait_for_loss(UNWATCHED_FOLDER)
    workspace.catch_up()
    assert (workspace.watcher.watches, workspace.watcher.failed) == (30, 50 + 8 - 30)
    assert workspace.seen.losses == [UNWATCHED_FOLDER]


LIMITED = """
import sys, threading
from pathlib import Path
from craftd.store.watch import Watcher
told = threading.Event()
watcher = Watcher(Path(sys.argv[1]), lambda paths: None, lambda reason: told.set())
watcher.start()
assert told.wait(20)
watcher.ready.wait(20)
print(watcher.watches, watcher.failed)
"""


@needs_inotify
def test_the_kernels_own_limit_is_noticed(workspace: Workspace) -> None:
    for n in range(50):
        workspace.session(f"260102-s-{n}")
    command = 'echo 20 > /proc/sys/user/max_inotify_watches && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", command, "sh", sys.executable, "-c", LIMITED, workspace.root],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "max_inotify_watches" in done.stderr:
        pytest.skip("no user namespaces here")
    watches, failed = map(int, done.stdout.split())
    assert (watches, watches + failed) == (20, 58), done.stderr


@needs_inotify
def test_a_folder_we_may_not_read_is_counted_and_told() -> None:
    root = Path(tempfile.mkdtemp())  # not below tmp_path, whose parents are closed to others
    try:
        root.chmod(0o755)
        (root / "sessions/closed").mkdir(parents=True)
        (root / "sessions/closed").chmod(0)
        become_nobody = "import os\nos.geteuid() or os.seteuid(65534)\ntold ="  # root may read everything
        run = [sys.executable, "-c", LIMITED.replace("told =", become_nobody, 1), str(root)]
        done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
        assert done.stdout.split() == ["2", "1"], done.stderr
    finally:
        (root / "sessions/closed").chmod(0o700)
        shutil.rmtree(root)


@pytest.mark.parametrize("end", ["moved", "deleted"])
def test_a_root_that_goes_away_is_told(tmp_path: Path, end: str) -> None:
    (root := tmp_path / "ws").mkdir()
    workspace = Workspace(root)
    workspace.start()
    if end == "moved":
        root.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(root)
    workspace.seen.wait_for_loss(GONE)
    workspace.watcher.stop()


@pytest.mark.usefixtures("any_backend")
def test_a_root_that_is_not_there_is_told(tmp_path: Path) -> None:
    seen = Seen()
    watcher = Watcher(tmp_path / "nowhere", seen.on_paths, seen.on_lost)
    watcher.start()
    seen.wait_for_loss(GONE)
    assert watcher.ready.wait(PATIENCE)
    watcher.stop()


@needs_inotify
def test_a_start_where_no_watch_can_be_had_at_all_is_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    def refuse() -> InotifyFD:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(InotifyFD, "get_instance", refuse)
    workspace.start()
    workspace.seen.wait_for_loss(UNWATCHED_FOLDER)
    assert workspace.watcher.failed == 1


@needs_inotify
def test_start_does_not_wait_for_the_watches(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    real, go_on = InotifyFD.add_callback, threading.Event()

    def slow(self: InotifyFD, *args: object) -> int:
        assert go_on.wait(PATIENCE)
        return real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(InotifyFD, "add_callback", slow)
    workspace.watcher.start()
    assert not workspace.watcher.ready.is_set()
    go_on.set()
    assert workspace.watcher.ready.wait(PATIENCE)


@needs_inotify
def test_nothing_is_left_after_stop(workspace: Workspace) -> None:
    workspace.session("260102-a-b")
    before, threads = kernel_watches(), threading.active_count()
    workspace.start()
    assert kernel_watches() > before
    workspace.watcher.stop()
    workspace.watcher.stop()
    assert kernel_watches() == before
    assert threading.active_count() <= threads + 1  # the reader, which all watchers share
    workspace.seen.forget()
    (workspace.root / "late").write_bytes(b"")
    assert workspace.seen.paths == set()


def test_stopping_from_a_callback_does_not_wait_for_itself(tmp_path: Path) -> None:
    stopped = threading.Event()

    def stop(paths: set[str]) -> None:
        watcher.stop()
        stopped.set()

    watcher = Watcher(tmp_path, stop, print)
    watcher.start()
    assert watcher.ready.wait(PATIENCE)
    (tmp_path / "file").write_bytes(b"")
    assert stopped.wait(PATIENCE)


def test_a_callback_that_fails_does_not_end_the_watching(tmp_path: Path) -> None:
    seen = Seen()

    def fail_first(paths: set[str]) -> None:
        seen.on_paths(paths)
        if "first" in paths:
            raise ValueError

    watcher = Watcher(tmp_path, fail_first, seen.on_lost)
    watcher.start()
    assert watcher.ready.wait(PATIENCE)
    (tmp_path / "first").write_bytes(b"")
    seen.wait_for("first")
    (tmp_path / "second").write_bytes(b"")
    seen.wait_for("second")
    watcher.stop()
