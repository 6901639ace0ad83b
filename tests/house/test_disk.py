"""Only store/disk.py makes system calls that change a disk; everything else of the workspace goes through it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "craftd"

CHANGING = {
    *("rename", "replace", "renames", "unlink", "remove", "rmdir", "removedirs", "mkdir", "makedirs", "mkfifo"),
    *("truncate", "ftruncate", "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "symlink", "link"),
    *("chmod", "fchmod", "chown", "fchown", "utime", "fsync", "fdatasync"),
    *("rmtree", "move", "copyfile", "copytree", "copy2"),
}
MODULES = {"os", "shutil"}
PATH_METHODS = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "mkdir", "rmdir", "unlink", "rename"}

NO_PATHS = {"disk", "self", "formatter", "noun"}
"""Owners of methods that are called like those of a path."""

ITS_OWN = {
    "protocol/generate.py": "protocol.md of a checkout, run by scripts/generate",
    "server/core.py": "folders of the daemon's socket, and removing socket and daemon.json at the end",
    "server/listeners.py": "the socket and its folder",
    "client/launch.py": "the folder of the log before there is a daemon",
}
"""Files of the daemon itself; nothing of the user's."""


def changes_in(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, node.func.value
        from_module = isinstance(owner, ast.Name) and owner.id in MODULES and name in CHANGING
        on_path = name in PATH_METHODS and ast.unparse(owner).rpartition(".")[2] not in NO_PATHS
        if from_module or on_path:
            found.append(f"{node.lineno}: {ast.unparse(node.func)}")
    return found


def test_only_disk_changes_a_disk() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where != "store/disk.py" and where not in ITS_OWN:
            assert changes_in(path) == [], where


def test_every_exception_is_needed() -> None:
    for where in ITS_OWN:
        assert changes_in(PACKAGE / where), f"{where} makes no such call any more"


def test_lines_are_never_split_by_python() -> None:
    """`splitlines` breaks at U+2028, U+0085 and others, which stand raw in transcripts."""
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).as_posix()
        if where != "cli/serve.py":  # the daemon's own log
            assert ".splitlines(" not in path.read_text(), where
