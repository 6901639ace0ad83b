"""Daemons whose clocks are set fast, and the base workspace of the field bugs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from craftd.protocol import rendezvous
from tests.daemon import Daemon
from tests.wire import PATIENCE

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
    errors = (daemon.base / "stderr").open("ab")
    daemon.process = subprocess.Popen(
        [sys.executable, "-c", _RUN.format(changes=changes, auto=auto), daemon.places.config],
        env=daemon.environment,
        stdin=subprocess.DEVNULL,
        stdout=errors,
        stderr=errors,
    )
    errors.close()
    deadline = time.monotonic() + PATIENCE
    while (card := rendezvous.read_card(daemon.places)) is None or card.pid != daemon.process.pid:
        if daemon.process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"the daemon did not start: {(daemon.base / 'stderr').read_text()}")
        time.sleep(0.01)
