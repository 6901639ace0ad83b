"""A real `craftd serve` in folders of its own: what end-to-end tests talk to."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Places
from tests.nursery import Forked, nursery
from tests.wire import PATIENCE, BridgeWire, Wire

CRAFTD = (sys.executable, "-m", "craftd")
WAYS = ("unix", "bridge", "tcp", "ws")
"""How a client comes in: what `over` can be."""


@define(eq=False)
class Daemon:
    """One configuration folder and the process that serves it, if it runs.

    base: an empty folder with a short name, because a socket lies in it. home: what `~` is for the daemon.
    """

    base: Path
    home: str = ""
    process: Forked | None = None
    environment: dict[str, str] = field(factory=dict)
    arguments: tuple[str, ...] = ()
    _wires: list[Wire] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        runtime = self.base / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        self.config.mkdir(exist_ok=True)
        self.home = self.home or str(self.base / "home")
        self.environment = {
            **os.environ,
            "HOME": self.home,
            "CRAFT_CONFIG_DIR": str(self.config),
            "XDG_RUNTIME_DIR": str(runtime),
            "TZ": "UTC",
        }

    @property
    def config(self) -> Path:
        return self.base / "cfg"

    @property
    def errors(self) -> Path:
        return self.base / "stderr"

    @property
    def places(self) -> Places:
        return rendezvous.find(str(self.config))

    @property
    def log(self) -> str:
        """What the daemons of this folder have written into their log."""
        log = Path(self.places.log)
        return log.read_text(errors="replace") if log.exists() else ""

    def register(self, **roots: Path) -> None:
        """Write the list of workspaces, as the app would: registry id -> folder. Before the start."""
        entries = [
            {"id": id, "name": id, "slug": root.name, "rootPath": str(root), "createdAt": 1767225600000}
            for id, root in roots.items()
        ]
        config = {"workspaces": entries, "activeWorkspaceId": next(iter(roots), None), "activeSessionId": None}
        (self.config / "config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False))

    def start(self, *arguments: str) -> None:
        """Returns when it listens. *arguments* of `craftd serve`; a restart has the same."""
        self.arguments = arguments
        self.serve(nursery().craftd(("serve", *arguments), self.environment, self.errors))

    def serve(self, process: Forked) -> None:
        """Wait until *process*, which says what it has to say into `errors`, listens as the daemon of this folder."""
        self.process = process
        deadline = time.monotonic() + PATIENCE
        while (card := rendezvous.read_card(self.places)) is None or card.pid != process.pid:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the daemon did not start: {self.errors.read_text()}")
            time.sleep(0.005)

    def stop(self) -> int:
        """End it as a person would, its clients first; its exit code."""
        assert self.process is not None
        for wire in self._wires:
            wire.hang_up()  # the daemon gives who is still there a second to go
        self._wires.clear()
        self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self._gone()

    def _gone(self) -> int:
        assert self.process is not None
        code = self.process.wait(PATIENCE)
        self.process = None
        return code

    def restart(self) -> None:
        assert self.stop() == 0
        self.start(*self.arguments)

    def end(self) -> None:
        """For the end of a test: stop what still runs; nothing unforeseen may stand in the log."""
        code = 0 if self.process is None else self.stop()
        said = self.log + (self.errors.read_text() if code else "")
        assert (code, "Traceback" in self.log) == (0, False), said

    @property
    def token(self) -> str:
        """What a program on this machine shows on the network."""
        return Path(self.places.token).read_text().strip()

    def url(self, kind: str = "unix") -> str:
        """Where it listens; kind: unix, tcp, ws."""
        card = rendezvous.read_card(self.places)
        assert card is not None
        listener = next(one for one in card.listeners if one["kind"] == kind)
        if kind == "unix":
            return f"unix:{listener['address']}"
        return f"{kind}{'s' if listener['tls'] else ''}://{listener['address']}"

    async def connect(self, *workspaces: str, over: str = "unix", **more: Any) -> Wire:
        """A client that works with *workspaces* (registry ids) and has initialized; over: one of WAYS."""
        wire = await self.dial(over)
        await wire.initialize({"workspaces": [{"id": id} for id in workspaces]}, **more)
        return wire

    async def dial(self, over: str = "unix", **how: Any) -> Wire:
        """A connection on which nothing was said yet; over the network, one that knows the local token."""
        if over == "bridge":
            self._wires.append(await BridgeWire.start(*CRAFTD, "stdio", env=self.environment))
            return self._wires[-1]
        if over != "unix":
            how.setdefault("token", self.token)
        self._wires.append(await Wire.connect(self.url(over), **how))
        return self._wires[-1]


def snapshot(folder: Path) -> Mapping[str, str]:
    """Every file, folder and link below *folder*: relative path -> kind, time of change and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            what = f"-> {os.readlink(path)}"
        elif path.is_dir():
            what = "folder"
        else:
            what = f"{status.st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        found[str(path.relative_to(folder))] = f"{status.st_mode:o} {what}"
    return found
