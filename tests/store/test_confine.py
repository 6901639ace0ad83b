from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.errors import Forbidden
from craftd.store import confine

SECRET = b"secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links of every kind, beside things it must not reach."""
    root = tmp_path / "ws"
    (root / "skills/own").mkdir(parents=True)
    (root / "skills/own/SKILL.md").write_bytes(b"own")
    (root / "config.json").write_bytes(b"{}")
    (tmp_path / "outside/shared").mkdir(parents=True)
    (tmp_path / "outside/shared/SKILL.md").write_bytes(b"shared")
    (tmp_path / "outside/key").write_bytes(SECRET)
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil/key").write_bytes(SECRET)
    links = {
        "to-file": "skills/own/SKILL.md",
        "to-folder": "skills/own",
        "to-key": "../outside/key",
        "to-sibling": "../ws-evil/key",
        "skills/shared": "../../outside/shared",
        "dangling": "skills/own/not-yet",
        "dangling-out": "../outside/not-yet",
        "loop": "loop",
        "chain": "to-key",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


def read(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def test_a_name_is_one_name(root: Path) -> None:
    assert confine.below(root, "skills", "own") == root / "skills/own"
    assert confine.below_relative(root, "skills/own/SKILL.md") == root / "skills/own/SKILL.md"
    for name in ("港口", ".hidden", "a b", "...", "~", "-rf", "x" * 255, "caf\udce9"):
        assert confine.check_name(name) == name


HOSTILE = [
    "",
    ".",
    "..",
    "/",
    "a/b",
    "/etc",
    "../x",
    "a\\b",
    "..\\x",
    "a\0b",
    "x" * 256,
    "é" * 128,
    "\ud800",
    "a\udbff",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_refused(root: Path, name: str) -> None:
    with pytest.raises(Forbidden) as error:
        confine.below(root, "skills", name)
    str(error.value).encode()
    repr(error.value.data()).encode()
    assert str(root) not in repr(error.value.data())


@pytest.mark.parametrize("relative", ["", "/", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a/./b"])
def test_a_hostile_relative_path_is_refused(root: Path, relative: str) -> None:
    with pytest.raises(Forbidden):
        confine.below_relative(root, relative)


@given(st.lists(st.text(st.characters(codec=None) | st.sampled_from("./\\\0")), min_size=1, max_size=4))
def test_whatever_the_names_the_path_stays_below(names: list[str]) -> None:
    root = Path("/somewhere/ws")
    try:
        path = confine.below(root, *names)
    except Forbidden:
        return
    assert Path(os.path.normpath(path)) == path
    assert path.relative_to(root).parts == tuple(names)
    os.fsencode(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", b"{}"), ("to-file", b"own"), ("to-folder/SKILL.md", b"own"), ("skills/own/SKILL.md", b"own")],
)
def test_what_lies_inside_is_read_through_links_too(root: Path, name: str, content: bytes) -> None:
    assert confine.readable(root, root / name).read_bytes() == content
    assert read(confine.open_file(root, root / name)) == content


@pytest.mark.parametrize("name", ["to-key", "to-sibling", "chain", "skills/shared", "skills/shared/SKILL.md", "loop"])
def test_what_lies_outside_is_not_read(root: Path, name: str) -> None:
    for call in (confine.readable, confine.open_file):
        with pytest.raises(Forbidden) as error:
            call(root, root / name)
        assert error.value.path == name


def test_a_further_root_opens_what_lies_in_it_and_nothing_else(root: Path) -> None:
    shared = root.parent / "outside/shared"
    (shared / "leak").symlink_to("../key")
    assert read(confine.open_file(root, root / "skills/shared/SKILL.md", [shared])) == b"shared"
    for name in ("to-key", "skills/shared/leak"):
        with pytest.raises(Forbidden):
            confine.open_file(root, root / name, [shared])


def test_a_root_that_is_reached_by_a_link_is_no_obstacle(root: Path) -> None:
    (link := root.parent / "link").symlink_to(root)
    assert read(confine.open_file(link, link / "config.json")) == b"{}"
    assert confine.writable(link, link / "config.json") == link / "config.json"
    with pytest.raises(Forbidden):
        confine.open_file(link, link / "to-key")


@pytest.mark.parametrize("name", ["nothing", "dangling", "dangling-out", "skills/none/SKILL.md"])
def test_what_is_missing_is_missing(root: Path, name: str) -> None:
    for call in (confine.readable, confine.open_file):
        with pytest.raises(FileNotFoundError):
            call(root, root / name)


@pytest.mark.parametrize("path", ["../outside/key", "/etc/passwd", "skills/../../outside/key"])
def test_a_path_that_is_not_below_the_root_is_refused_everywhere(root: Path, path: str) -> None:
    for call in (
        confine.readable, confine.writable, confine.removable, confine.open_file, confine.first_link
    ):  # fmt: skip
        with pytest.raises(Forbidden):
            call(root, root / path)


def test_only_files_are_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
        for name in ("pipe", "null", "socket", "skills", "to-folder"):
            with pytest.raises(Forbidden):
                confine.open_file(root, root / name)
    with pytest.raises(Forbidden):
        confine.open_file(root, root)
    fd = confine.open_file(root, root / "config.json")
    assert stat.S_ISREG(os.fstat(fd).st_mode)
    assert not os.get_inheritable(fd)
    os.close(fd)


@pytest.mark.parametrize("swapped", ["skills", "skills/own", "skills/own/SKILL.md"])
def test_a_link_swapped_in_after_the_look_leads_nowhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    elsewhere = root.parent / "elsewhere"
    (elsewhere / "own").mkdir(parents=True)
    (elsewhere / "own/SKILL.md").write_bytes(SECRET)
    target = {"skills": elsewhere, "skills/own": elsewhere / "own"}.get(swapped, elsewhere / "own/SKILL.md")
    real = os.path.realpath

    def late(path: str | Path, *, strict: bool = False) -> str:
        found = real(path, strict=strict)
        if strict:
            (root / swapped).rename(root.parent / "moved")
            (root / swapped).symlink_to(target)
        return found

    monkeypatch.setattr(os.path, "realpath", late)
    with pytest.raises(Forbidden):
        confine.open_file(root, root / "skills/own/SKILL.md")


def test_no_handle_is_left_open(root: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for name in ("config.json", "skills/own/SKILL.md", "to-file"):
        os.close(confine.open_file(root, root / name))
    for name in ("to-key", "skills", "skills/own", "loop"):
        with pytest.raises(Forbidden):
            confine.open_file(root, root / name)
    assert len(os.listdir("/dev/fd")) == before


def test_files_are_written_in_place_and_linked_ones_at_their_target(root: Path) -> None:
    for name in ("config.json", "new.json", "skills/new/SKILL.md"):
        assert confine.writable(root, root / name) == root / name
    assert confine.writable(root, root / "to-file") == (root / "skills/own/SKILL.md").resolve()
    assert confine.writable(root, root / "dangling") == (root / "skills/own").resolve() / "not-yet"


@pytest.mark.parametrize(
    "name",
    ["to-key", "chain", "to-sibling", "dangling-out", "loop", "to-folder", "to-folder/SKILL.md", "to-folder/new"],
)
def test_what_lies_outside_or_in_a_linked_folder_is_not_written(root: Path, name: str) -> None:
    with pytest.raises(Forbidden) as error:
        confine.writable(root, root / name)
    assert str(root) not in repr(error.value.data())


def test_a_linked_folder_is_not_written_even_in_a_further_root(root: Path) -> None:
    outside = root.parent / "outside"
    assert confine.writable(root, root / "to-key", [outside]) == (outside / "key").resolve()
    with pytest.raises(Forbidden):
        confine.writable(root, root / "skills/shared/SKILL.md", [outside])


def test_links_are_removed_as_links(root: Path) -> None:
    for name in ("to-key", "skills/shared", "dangling", "loop", "skills/own", "config.json"):
        assert confine.removable(root, root / name) == root / name
    for path in (root / "skills/shared/SKILL.md", root / "to-folder/SKILL.md", root):
        with pytest.raises(Forbidden):
            confine.removable(root, path)


def test_the_first_link_on_the_way_is_found(root: Path) -> None:
    assert confine.first_link(root, root / "skills/own/SKILL.md") is None
    assert confine.first_link(root, root / "skills/shared/SKILL.md") == root / "skills/shared"
    assert confine.first_link(root, root / "to-file") == root / "to-file"
    assert confine.first_link(root, root) is None
