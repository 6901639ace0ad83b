"""Daemons whose clocks are set fast, and the base workspace of the field bugs."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.daemon import Daemon
from tests.nursery import nursery

CASES = Path(__file__).parents[1] / "field_bugs"
WORKSPACE = "ws_0a1b2c3d"
"""Registry id of the base workspace."""

_RUN = """
import sys
from functools import partial
from craftd.server import blobs, core, daemon, dispatch, outbox
from craftd.workspace import home, seen
{changes}
sys.exit(daemon.run(sys.argv[1], auto={auto}))
"""


def set_up(daemon: Daemon, *cases: str) -> Path:
    """The base workspace with what *cases* lay over it; its folder."""
    root = daemon.base / "ws"
    shutil.copytree(CASES / "_base" / "cfg", daemon.config, dirs_exist_ok=True)
    for source in (CASES / "_base" / "ws", *(CASES / case / "ws" for case in cases)):
        shutil.copytree(source, root, dirs_exist_ok=True)
    for path in (*root.rglob("*.json*"), *daemon.config.glob("*.json")):
        path.write_bytes(path.read_bytes().replace(b"@WS@", str(root).encode()))
    return root


def start_impatient(daemon: Daemon, *, auto: bool = False, house_every: float = 5.0, **constants: float) -> None:
    """Start *daemon* with other values for module constants: `core__IDLE_SECONDS=0.2`. Returns when it listens."""
    changes = "\n".join(f"{name.replace('__', '.')} = {value!r}" for name, value in constants.items())
    changes += f"\ncore.Surroundings = partial(core.Surroundings, house_every={house_every})"
    code = _RUN.format(changes=changes, auto=auto)
    daemon.serve(nursery().python(code, (daemon.places.config,), daemon.environment, daemon.errors))
