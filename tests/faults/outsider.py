"""A process of its own that saves sessions as other programs do, and holds the record of what anybody was told.

Nothing that breaks inside the daemon reaches what it knows.
"""

from __future__ import annotations

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.model.records import Record
from tests.faults import order
from tests.faults.harness import forking
from tests.faults.work import Facts, Ledger

MARK = "x-theirs"
"""The member of line 1 that the foreign program sets."""


@define(eq=False)
class Outsider:
    """What this process sees of it."""

    pipe: Any
    process: Any

    @classmethod
    def start(cls) -> Outsider:
        ours, theirs = forking().Pipe()
        process = forking().Process(target=_run, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        return cls(ours, process)

    def __call__(self, what: str, *args: Any) -> Any:
        """Have it do one thing; its answer."""
        self.pipe.send((what, args))
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.close()
        self.process.join()


def _run(pipe: Any) -> None:
    keeper = Keeper()
    while True:
        try:
            what, args = pipe.recv()
        except EOFError:
            return
        pipe.send(getattr(keeper, what)(*args))


@define(eq=False)
class Keeper:
    """The record, and the foreign program. path: the session's file. number: of its saves, each says another thing."""

    ledger: Ledger = field(factory=Ledger)
    clients: dict[str, list[order.Entry]] = field(factory=dict)
    path: Path = Path()
    number: int = 0
    sure: bool = True
    saving: Facts = field(factory=dict)
    _messages: list[bytes] | None = None
    _clock: count[int] = field(factory=count)

    # The record

    def begin(self, path: Path, certain: Facts, sure: bool) -> None:
        """Of a new trial: *certain* is what will be true at its end, but for what the foreign program adds.

        sure: what that saves must be there at the end; else it may have been taken away as asked.
        """
        self.ledger, self.sure = Ledger(dict(certain)), sure
        self.clients = {}
        self.path = path
        self._messages = None
        if path.exists():
            self.load()

    def ask(self, facts: Facts) -> None:
        """*facts* may be true at the end."""
        self.ledger.ask(next(self._clock), facts)

    def acknowledge(self, facts: Facts) -> None:
        self.ledger.certain |= facts

    def note(self, client: str, kind: Any, what: str, revision: int = 0) -> None:
        self.clients.setdefault(client, []).append(order.Entry(next(self._clock), kind, what, revision))

    def judge(self, found: Facts) -> list[str]:
        return [*self.ledger.judge(found), *order.problems(self.clients)]

    # The foreign program

    def load(self) -> None:
        """Read the messages, which the app then keeps in memory."""
        self._messages = self.path.read_bytes().splitlines(keepends=True)[1:]

    def act(self, *steps: str) -> None:
        """The steps of a save, by their names. Where there is no session there is nothing to save."""
        try:
            for step in steps:
                getattr(self, step)()
        except FileNotFoundError:
            pass

    def write(self) -> None:
        """The whole file beside: line 1 as it is now, what we added to it, the messages we know."""
        if self._messages is None:
            self.load()
        assert self._messages is not None
        self.number += 1
        header = json.loads(self.path.read_bytes().split(b"\n", 1)[0])
        message = {"id": f"f{self.number}", "content": "theirs", "timestamp": 7, "type": "user"}
        lines = [_line({**header, MARK: self.number}), *self._messages, _line(message)]
        self.beside.write_bytes(b"".join(lines))
        self.saving = {f"header {MARK}": self.number, f"message f{self.number}": message}
        self.ask(self.saving)

    def unlink(self) -> None:
        self.path.unlink()

    def rename(self) -> None:
        os.rename(self.beside, self.path)
        if self.sure:
            self.acknowledge(self.saving)

    @property
    def beside(self) -> Path:
        return self.path.with_name("session.jsonl.tmp")


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
