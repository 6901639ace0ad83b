from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Forbidden
from craftd.store import confine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links of every kind, beside things it must not reach."""
    root = tmp_path / "ws"
    (root / "skills/own").mkdir(parents=True)
    (root / "skills/own/SKILL.md").write_bytes(b"own")
    (root / "config.json").write_bytes(b"{}")
    (tmp_path / "outside/shared").mkdir(parents=True)
    (tmp_path / "outside/shared/SKILL.md").write_bytes(b"shared")
    (tmp_path / "outside/key").write_bytes(b"secret")
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil/key").write_bytes(b"secret")
    links = {
        "to-file": "skills/own/SKILL.md",
        "to-folder": "skills/own",
        "to-root": ".",
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


def test_files_and_links_to_files_of_the_workspace_are_written(root: Path) -> None:
    for name in ("config.json", "new.json", "skills/new/SKILL.md", "to-file", "dangling"):
        confine.check_writable(root, root / name)


@pytest.mark.parametrize(
    "name",
    [
        "to-key", "chain", "to-sibling", "dangling-out", "loop", "to-folder", "to-root", "to-folder/SKILL.md",
        "to-folder/new", "skills/shared/SKILL.md",
    ],
)  # fmt: skip
def test_what_lies_outside_or_in_a_linked_folder_is_not_written(root: Path, name: str) -> None:
    with pytest.raises(Forbidden) as error:
        confine.check_writable(root, root / name)
    assert error.value.path is not None
    assert name.startswith(error.value.path)
    assert str(root) not in repr((str(error.value), error.value.data()))


def test_a_workspace_that_is_reached_through_a_link_is_like_any_other(root: Path, tmp_path: Path) -> None:
    (link := tmp_path / "linked-ws").symlink_to(root)
    for name in ("config.json", "to-file"):
        confine.check_writable(link, link / name)
    confine.check_removable(link, link / "skills/own")
    with pytest.raises(Forbidden):
        confine.check_writable(link, link / "to-key")


def test_links_are_removed_as_links(root: Path) -> None:
    for name in ("to-key", "skills/shared", "dangling", "loop", "skills/own", "config.json"):
        confine.check_removable(root, root / name)
    for name in ("skills/shared/SKILL.md", "to-folder/SKILL.md"):
        with pytest.raises(Forbidden):
            confine.check_removable(root, root / name)


# Paths that clients choose


def found(root: Path, path: str, **more: Any) -> str:
    with confine.find(root, tuple(path.split("/")), **more) as spot:
        return spot.shown


def test_a_path_is_found_where_its_links_lead(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").touch()
    (root / "up").symlink_to("a/b/../b")
    (root / "abs").symlink_to(root / "a")
    (root / "self").symlink_to(root)
    (root / "chain").symlink_to("abs")
    assert found(root, "a/b/file") == "a/b/file"
    assert found(root, "up/file") == "a/b/file"
    assert found(root, "chain/b/none/at/all") == "a/b/none/at/all"
    assert found(root, "self/self/a") == "a"
    assert found(root, "self") == ""
    assert found(root, "abs", follow=False) == "abs"


@pytest.mark.parametrize("target", ["..", "../out", "/", "a/../../out", "loop", "../ws2"])
def test_a_path_that_leads_out_is_forbidden(tmp_path: Path, target: str) -> None:
    root = tmp_path / "ws"
    (root / "a").mkdir(parents=True)
    for name in ("out", "ws2"):  # a name that only begins alike is outside too
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (root / "loop").symlink_to("loop")
    (root / "link").symlink_to(target)
    with pytest.raises(Forbidden):
        found(root, "link/file")


def test_a_folder_that_becomes_a_link_while_it_is_walked_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    (root / "room").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("secret")
    look = confine._look

    def swapping(folder: int, name: str) -> os.stat_result | None:
        status = look(folder, name)
        if name == "room":
            (root / "room").rename(root / "moved")
            (root / "room").symlink_to(outside)
        return status

    monkeypatch.setattr(confine, "_look", swapping)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        found(root, "room/file")


def test_what_was_found_stays_the_same_folder_whatever_its_name_becomes(tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    (root / "room").mkdir(parents=True)
    outside.mkdir()
    with confine.find(root, ("room", "file")) as spot:
        (root / "room").rename(root / "moved")
        (root / "room").symlink_to(outside)
        spot.path.write_text("ours")
    assert (root / "moved" / "file").read_text() == "ours"
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_shut_is_not_entered_by_any_name(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "inner").mkdir(parents=True)
    (root / "alias").symlink_to("inner")
    status = (root / "inner").stat()
    for path in ("inner", "inner/file", "alias/file"):
        with pytest.raises(Forbidden, match="belongs"):
            found(root, path, shut=[(status.st_dev, status.st_ino)])


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "out").symlink_to("/")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/b/c", "out/etc", "a", "none"):
        with contextlib.suppress(Forbidden):
            found(tmp_path, path)
    assert len(os.listdir("/proc/self/fd")) == before
