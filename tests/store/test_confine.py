from __future__ import annotations

from pathlib import Path

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
