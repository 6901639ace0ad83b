"""The credential file under full disks, power cuts and kills: what was acknowledged opens, what was there is kept."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from craftd.errors import CraftdError, IoError
from craftd.store import atomic, vault
from craftd.store.vault import FILE, Keys
from craftd.workspace.commit import Commit
from tests.faults import vault_victim
from tests.faults.harness import Breaker, Program, Recorder, kill_rounds, number_of_kills
from tests.faults.scopes import Scopes
from tests.faults.vault_victim import MACHINE, deletion, setting
from tests.faults.work import litter

KEYS = Keys(lambda: MACHINE)
GARBAGE = b"CRAFT01\0 from another machine" + b"?" * 100
ONE, TWO = "llm_oauth::one", "llm_oauth::two"

Entries = dict[str, Any]


@pytest.fixture
def cheap(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are derived at once, and nobody waits for a file that does not open to be written to its end."""
    monkeypatch.setattr(vault, "ROUNDS", 1)
    monkeypatch.setattr(vault, "ABSENCE_MS", 0)
    monkeypatch.setattr(KEYS, "_salt", b"")


def configuration(base: Path) -> Path:
    (base / "cfg" / "craftd").mkdir(parents=True)
    (base / "cfg" / "config.json").write_text(json.dumps({"workspaces": [], "activeWorkspaceId": None}))
    return base / "cfg"


def scopes(config: Path) -> Any:
    return Scopes.open(config, machine=lambda: MACHINE)


def on_disk(config: Path) -> Entries | str:
    """Secrets by account; in words where the file gives none."""
    content = vault.load(config / FILE, KEYS)
    if content.problem is not None:
        return content.state
    return {account: entry["value"] for account, entry in content.entries.items()}


def keeps_garbage(config: Path) -> bool:
    return any(path.read_bytes() == GARBAGE for path in config.iterdir() if path.is_file())


async def attempt(home: Any, commit: Commit) -> str:
    try:
        await home.commit(commit)
    except IoError as error:
        return "written" if error.written else "failed"
    except CraftdError as error:
        return error.name
    return "done"


# A full disk

CHANGES: dict[str, tuple[Sequence[Commit], bytes | None, Commit]] = {
    "the first": ((), None, setting(ONE, "new")),
    "another value": ((setting(ONE, "old"),), None, setting(ONE, "new")),
    "one that goes": ((setting(ONE, "old"), setting(TWO, "old")), None, deletion(ONE)),
    "one beside what does not open": ((), GARBAGE, setting(ONE, "new")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.usefixtures("cheap")
async def test_a_disk_that_refuses_is_answered_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, number: int
) -> None:
    ready, garbage, commit = CHANGES[change]
    breaker = Breaker(monkeypatch)
    reached: str | None = ""
    step = -1
    while reached is not None:
        step += 1
        config = configuration(tmp_path / str(step))
        if garbage is not None:
            (config / FILE).write_bytes(garbage)
            (config / FILE).chmod(0o644)
        async with scopes(config) as open_scopes:
            home = open_scopes.home
            await home.look_at_credentials()
            for one in ready:
                await home.commit(one)
            before = on_disk(config)
            breaker.arm(step, number, torn=True, within=config)
            answer = await attempt(home, commit)
            reached = breaker.calls[step] if len(breaker.calls) > step else None
            breaker.disarm()
            after = on_disk(config)
            assert answer in ("done", "written", "failed"), reached
            assert (after != before) == (answer != "failed"), (reached, answer)
            served = {row.named.stored.account for row in home.vault.index}
            assert served == (set(after) if isinstance(after, dict) else set()), reached
            assert await attempt(home, commit) in ("done", "NotFound")
            last = on_disk(config)
            assert isinstance(last, dict)
            assert last.get(ONE) == (None if change == "one that goes" else "new")
            assert garbage is None or keeps_garbage(config), reached
            assert len(vault.set_aside(config / FILE)) <= 1


# A power cut


async def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, honest: bool = True) -> list[str]:
    """What is wrong after cuts at every moment of a few changes, the first of them beside what does not open."""
    base = tmp_path / "base"
    config = configuration(base)
    (config / FILE).write_bytes(GARBAGE)
    (config / FILE).chmod(0o644)
    changes = [setting(ONE, "1"), setting(TWO, "2"), setting(ONE, "3"), deletion(TWO), setting(TWO, "4")]
    states: list[Entries | str] = [on_disk(config)]
    with monkeypatch.context() as patched:
        recorder = Recorder(patched, base)
        async with scopes(config) as open_scopes:
            await open_scopes.home.look_at_credentials()
            for number, commit in enumerate(changes):
                recorder.mark(("asked", number))
                await open_scopes.home.commit(commit)
                states.append(on_disk(config))
                recorder.mark(("acknowledged", number))
    monkeypatch.setattr(atomic, "_LIFE", "dead")  # from here on another process
    problems = []
    for outage in recorder.outages(honest=honest, sample=100):
        shutil.rmtree(base)
        outage.restore(base)
        acknowledged = sum(what == "acknowledged" for what, _ in outage.marks)
        asked = sum(what == "asked" for what, _ in outage.marks)
        found = on_disk(config)
        if found not in states[acknowledged : asked + 1]:
            problems.append(f"step {outage.moment}: {found} where {states[acknowledged : asked + 1]} was acknowledged")
        if not keeps_garbage(config):
            problems.append(f"step {outage.moment}: what did not open is gone")
        async with scopes(config) as open_scopes:
            await open_scopes.home.commit(setting("llm_oauth::new", "new"))
        assert isinstance(after := on_disk(config), dict)
        assert after["llm_oauth::new"] == "new"
        problems += [f"step {outage.moment}: left behind: {path}" for path in litter(config)]
        if problems and not honest:
            break
    return problems


@pytest.mark.usefixtures("cheap")
async def test_a_power_cut_loses_nothing_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await play(tmp_path, monkeypatch) == []


@pytest.mark.usefixtures("cheap")
async def test_without_flushing_the_same_cuts_do_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await play(tmp_path, monkeypatch, honest=False) != []


# kill -9


@define
class Trial:
    """What may stand in the file of one configuration folder, by account."""

    config: Path
    lazy: bool = False
    certain: Entries = field(factory=dict)

    def start(self, number: int) -> Program:
        return Program(vault_victim.main, self.config, number, lazy=self.lazy)

    def check(self, lines: list[str]) -> list[str]:
        asked: Entries = {}
        for line in lines:
            word, _, told = line.partition(" ")
            id, value = json.loads(told)
            if word == "asked":
                asked = {id: value}
            else:
                self.certain[id] = value
                asked = {}
        found = on_disk(self.config)
        if isinstance(found, str):
            return [f"acknowledged was {len(self.certain)} credentials, the file is {found}"]
        problems = [
            f"{id}: acknowledged was {value!r}, there is {found.get(id)!r}"
            for id, value in self.certain.items()
            if found.get(id) != value and not (id in asked and found.get(id) == asked[id])
        ]
        self.certain = dict(found)
        return problems


def test_kill_loses_nothing_acknowledged(tmp_path: Path) -> None:
    trial = Trial(configuration(tmp_path))
    killed = kill_rounds(trial.start, trial.check, rounds=number_of_kills(30), most=4, longest=0.1)
    assert killed.problems == []
    assert killed.acknowledged > killed.rounds


def test_a_disk_that_writes_late_is_seen_to_lose(tmp_path: Path) -> None:
    trial = Trial(configuration(tmp_path), lazy=True)
    assert kill_rounds(trial.start, trial.check, rounds=40, most=4, longest=0.1, until_a_loss=True).lost
