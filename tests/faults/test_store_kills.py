"""`kill -9` at any moment loses nothing acknowledged and leaves no unreadable file.

50 rounds; CRAFTD_KILLS says how many instead.
"""

from __future__ import annotations

import os
from pathlib import Path

from craftd.store import atomic
from tests.faults import victim
from tests.faults.harness import Program, kill_rounds, number_of_kills
from tests.faults.transcripts import contents, new_session, opened

FRESH_EVERY = 15
"""Rounds after which a new session keeps the file small."""


class Ledger:
    """What was acknowledged, kept outside the process that dies."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.path = root
        self._certain: dict[str, str | None] = {}

    def start(self, number: int, *, lazy: bool = False) -> Program:
        if number % FRESH_EVERY == 0:
            self.path = new_session(self._root, name=f"2603{number:02}-calm-cedar")
            self._certain = {"": "Old"}
        return Program(victim.main, self.path, number, lazy=lazy)

    def check(self, lines: list[str]) -> list[str]:
        """Compare the file with what was heard; then the file is what the next round begins with."""
        possible: dict[str, str | None] = {}
        for line in lines:
            said = line.removeprefix("? ")
            identity, content = _meaning(said)
            if said != line:
                possible[identity] = content
            else:
                possible.pop(identity, None)
                self._certain[identity] = content
        transcript = opened(self.path)
        found = contents(transcript)
        problems = [] if transcript.writable else [f"line 1: {transcript.damage}"]
        bad = {damage.code for damage in transcript.damage} - {"torn-tail", "line-unreadable"}
        problems += [f"damage {code}" for code in bad]
        for identity, content in self._certain.items():
            there = found.get(identity)
            if not _agrees(there, content) and not (identity in possible and _agrees(there, possible[identity])):
                problems.append(f"{identity!r} is {str(there)[:40]!r}, acknowledged was {content!r}")
        problems += [
            f"{identity} came from nowhere" for identity in found.keys() - self._certain.keys() - possible.keys()
        ]
        order = [int(identity.split("-")[0]) for identity in found if identity]
        if order != sorted(order):
            problems.append("the order changed")
        for left in atomic.leftovers(self.path.parent):
            atomic.discard(left)
        if (names := os.listdir(self.path.parent)) != ["session.jsonl"]:
            problems.append(f"left behind: {names}")
        self._certain = {identity: "" if identity else content for identity, content in found.items()}
        return problems


def _meaning(said: str) -> tuple[str, str | None]:
    kind, identity, *rest = said.split(" ")
    if kind == "name":
        return "", identity
    return identity, {"+": "", "-": None, "=": "".join(rest)}[kind]


def _agrees(there: str | None, content: str | None) -> bool:
    """ "" stands for any content."""
    return there is not None if content == "" else there == content


def test_kill_loses_nothing_acknowledged(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    killed = kill_rounds(ledger.start, ledger.check, rounds=number_of_kills(50))
    assert "\n".join(killed.problems) == ""
    assert killed.acknowledged > killed.rounds


def test_a_disk_that_writes_late_is_seen_to_lose(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    killed = kill_rounds(lambda number: ledger.start(number, lazy=True), ledger.check, rounds=60, until_a_loss=True)
    assert killed.lost
