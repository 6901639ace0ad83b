"""The rooms import each other along the arrows of ARCHITECTURE.md, and what must start fast imports little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "craftd"

ALLOWED = {
    "errors": set(),
    "model": {"errors"},
    "store": {"errors", "model"},
    "workspace": {"errors", "model", "store"},
    "protocol": {"errors", "model"},
    "server": {"errors", "model", "store", "workspace", "protocol"},
    "client": {"errors", "model", "protocol"},
    "cli": {"errors", "model", "protocol", "workspace", "client", "server"},
}
IMPURE = {"os", "asyncio", "time", "random", "secrets", "pathlib", "subprocess", "socket", "threading", "lsprotocol"}
"""What `model/` has no business with."""


def modules(room: str) -> list[Path]:
    path = PACKAGE / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def imported(path: Path, *, lazily_too: bool = True) -> Iterator[str]:
    """Full names of what a module imports; `if TYPE_CHECKING` and functions count unless told otherwise."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if lazily_too else iter(tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_what_the_arrows_allow(room: str) -> None:
    for path in modules(room):
        for name in imported(path):
            if name.startswith("craftd."):
                other = name.split(".")[1]
                assert other == room or other in ALLOWED[room], f"{path.relative_to(ROOT)} imports {name}"


def test_model_is_pure() -> None:
    for path in modules("model"):
        for name in imported(path):
            assert name.split(".")[0] not in IMPURE, f"{path.relative_to(ROOT)} imports {name}"


def test_only_the_server_and_the_lsp_shapes_know_pygls_and_lsprotocol() -> None:
    for path in PACKAGE.rglob("*.py"):
        names = {name.split(".")[0] for name in imported(path)}
        where = path.relative_to(PACKAGE).as_posix()
        if names & {"pygls", "lsprotocol"}:
            assert where.startswith("server/") or where == "protocol/lsp.py", where


def test_only_watch_knows_watchdog() -> None:
    users = [path.name for path in PACKAGE.rglob("*.py") if any(n.startswith("watchdog") for n in imported(path))]
    assert users == ["watch.py"]


def test_nothing_runs_at_the_import_of_the_package() -> None:
    assert (PACKAGE / "__init__.py").read_text() == ""


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("craftd.client.bridge", {"asyncio", "attr", "attrs", "cattrs", "click", "lsprotocol", "orjson", "pygls"}),
        ("craftd.client.client", {"attr", "attrs", "cattrs", "click", "lsprotocol", "orjson", "pygls", "websockets"}),
        ("craftd.client.mirror", {"cattrs", "click", "lsprotocol", "pygls", "websockets"}),
        ("craftd.cli.main", {"asyncio", "pygls", "lsprotocol", "cattrs"}),
        ("craftd.protocol.methods", {"asyncio", "pygls", "lsprotocol"}),
        ("craftd.server.daemon", {"asyncio", "pygls", "lsprotocol", "cattrs"}),
        ("craftd.server.core", {"websockets"}),
    ],
)
def test_what_must_start_fast_leaves_heavy_modules_alone(module: str, heavy: set[str]) -> None:
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & set(loaded)
