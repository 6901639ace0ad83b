"""A daemon that is killed while it imports leaves every resource as it was or as the bundle has it, and no more."""

from __future__ import annotations

import base64
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.faults.harness import number_of_kills
from tests.faults.work import litter

FILES = ("SKILL.md", "a/b/big.txt", "a/c.txt", "d.txt")
SKILLS = tuple(f"s{number}" for number in range(6))


@pytest.fixture
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        yield Path(folder)


def text_of(file: str, version: int) -> bytes:
    head = "---\nname: n\ndescription: d\n---\n" if file == "SKILL.md" else ""
    return f"{head}{version}\n".encode() * (20_000 if "big" in file else 1)


def bundle(version: int) -> str:
    def file(name: str) -> Any:
        data = text_of(name, version)
        return {"relativePath": name, "contentBase64": base64.b64encode(data).decode(), "size": len(data)}

    skills = [{"slug": slug, "files": [file(name) for name in FILES]} for slug in SKILLS]
    return json.dumps({"version": 1, "exportedAt": 1, "resources": {"skills": skills}})


def versions(root: Path, version: int) -> dict[str, int | None]:
    """What each skill is: whole, of one version."""
    found: dict[str, int | None] = {}
    for slug in SKILLS:
        there = {str(path.relative_to(root / slug)): path.read_bytes() for path in (root / slug).rglob("*.*")}
        whole = [n for n in range(version + 1) if there == {name: text_of(name, n) for name in FILES}]
        assert whole or not there, (slug, {name: data[:80] for name, data in there.items()})
        found[slug] = whole[0] if whole else None
    return found


async def test_a_kill_leaves_every_resource_old_or_new(base: Path) -> None:
    chance = random.Random(7)
    daemon, root = Daemon(base), base / "ws"
    root.mkdir()
    (root / "config.json").write_text('{"id": "ws_1", "name": "Work", "slug": "ws", "createdAt": 1}')
    daemon.register(work=root)
    ends: set[int] = set()
    before: dict[str, int | None] = dict.fromkeys(SKILLS)
    for version in range(number_of_kills(4)):
        daemon.start()
        wire = await daemon.connect("work")
        params = {"content": {"text": bundle(version)}, "onConflict": "overwrite", "workDoneToken": "w"}
        wire.ask("bundles/import", {"workspace": "work", **params})
        heard = chance.randint(1, len(SKILLS))
        await wire.notified("$/progress", heard + 1)
        daemon.kill()
        await wire.close()
        after = versions(root / "skills", version)
        new = [slug for slug in SKILLS if after[slug] == version]
        assert new == list(SKILLS[: len(new)])  # one after the other
        assert len(new) >= heard - 1
        assert all(after[slug] == before[slug] for slug in SKILLS[len(new) :])
        ends.add(len(new))
        before = after
    daemon.start()
    wire = await daemon.connect("work")
    await wire.call("daemon/sync", {"workspace": "work"})
    assert litter(daemon.config, root) == []
    listed = await wire.call("skills/list", {"workspace": "work"})
    assert {item["id"] for item in listed["items"]} == {slug for slug in SKILLS if before[slug] is not None}
    await wire.close()
    daemon.end()
    assert len(ends) > 1
