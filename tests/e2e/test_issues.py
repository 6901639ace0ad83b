"""What is wrong with files, over the wire and from the command line: one answer, told whenever it becomes another."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from craftd.cli import commands
from tests.daemon import Daemon, snapshot
from tests.wire import Wire

Connect = Callable[..., Awaitable[Wire]]

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"
RECORDED = GOLDEN / "workspace"

HOME = {
    "preferences": "preferences.json", "theme": "theme.json", "tool-icons": "tool-icons/tool-icons.json",
}  # fmt: skip
FULL = {
    "statuses": "statuses/config.json", "labels": "labels/config.json", "views": "views.json",
    "permissions": "permissions.json", "workspace-config": "config.json", "automations": "automations.json",
    "source": "sources/tracker/config.json",
}  # fmt: skip
"""Where the recorded invalid files lie, by the beginning of their names."""

SESSION = "260713-brisk-zenith"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    """The recorded home and its two workspaces; in the second one everything that was ever recorded as odd."""
    daemon = make_daemon()
    shutil.copytree(RECORDED / "home", daemon.config, dirs_exist_ok=True)
    for folder in json.loads((RECORDED / "expected.json").read_bytes())["tree"]["emptyDirs"]:
        (daemon.config / folder).mkdir(parents=True, exist_ok=True)
    registry = daemon.config / "config.json"
    registry.write_text(registry.read_text().replace("~/home/", f"{daemon.config}/"))
    odd = odd_root(daemon)
    for tree in ("sources/invalid", "sources/lenient", "skills/invalid", "projects/edge"):
        for room in ("sources", "skills", "projects"):
            if (GOLDEN / tree / room).is_dir():
                shutil.copytree(GOLDEN / tree / room, odd / room, symlinks=True, dirs_exist_ok=True)
    for number, task in enumerate(sorted((GOLDEN / "tasks/invalid").iterdir())):
        (odd / f"tasks/task-{number}").mkdir(parents=True)
        shutil.copy(task, odd / f"tasks/task-{number}/task.yaml")
    for session in sorted(TESTS.glob("field_bugs/O0*/ws/sessions/*")):
        shutil.copytree(session, odd / "sessions" / session.name, dirs_exist_ok=True)
    for skill in sorted(TESTS.glob("field_bugs/O1[34]/ws/skills/*")):
        shutil.copytree(skill, odd / "skills" / skill.name, dirs_exist_ok=True)
    daemon.start()
    yield daemon
    daemon.end()


def ids() -> tuple[str, str]:
    """Of the recorded workspaces: the full one, the one that was only made."""
    full, fresh = json.loads((RECORDED / "home/config.json").read_bytes())["workspaces"]
    return full["id"], fresh["id"]


def full_root(daemon: Daemon) -> Path:
    return daemon.config / "workspaces/aurora-lab"


def odd_root(daemon: Daemon) -> Path:
    return daemon.config / "outside/field-notes"


def checked(daemon: Daemon, *paths: Path) -> tuple[int, dict[Path, list[dict[str, Any]]]]:
    """Exit code of `craftd check --json`, and what it printed, by folder."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, daemon.environment), contextlib.redirect_stdout(printed):
        code = commands.run(["check", "--json", *map(str, paths)])
    found: dict[Path, list[dict[str, Any]]] = {}
    for line in printed.getvalue().splitlines():
        issue = json.loads(line)
        found.setdefault(Path(issue.pop("folder")), []).append(issue)
    return code, found


async def listed(client: Wire, workspace: str | None) -> list[dict[str, Any]]:
    scope = {} if workspace is None else {"workspace": workspace}
    await client.call("daemon/sync", scope)
    items: list[dict[str, Any]] = (await client.call("issues/list", scope))["items"]
    return items


async def test_the_command_says_what_the_daemon_answers(daemon: Daemon, connect: Connect) -> None:
    full, odd = ids()
    client = await connect(daemon, full, odd)
    answers = {scope: await listed(client, scope) for scope in (None, full, odd)}
    before = snapshot(daemon.config)
    code, found = checked(daemon, daemon.config)
    assert code == 1
    assert found.get(daemon.config, []) == answers[None] == []
    assert found[full_root(daemon)] == answers[full]
    assert found[odd_root(daemon)] == answers[odd]
    assert {issue["noun"] for issue in answers[odd] if "noun" in issue} == {
        "sources",
        "skills",
        "projects",
        "tasks",
        "sessions",
    }
    assert all(issue["severity"] and issue["code"] and issue["message"] for issue in answers[odd])
    assert snapshot(daemon.config) == before


async def test_the_command_says_it_of_every_recorded_file(daemon: Daemon, connect: Connect) -> None:
    full, odd = ids()
    client = await connect(daemon, full, odd)
    kinds = {daemon.config / path: kind for kind, path in HOME.items()}
    kinds |= {full_root(daemon) / path: kind for kind, path in FULL.items()}
    good = {path: path.read_bytes() if path.exists() else None for path in kinds}
    names = sorted(path.name for path in (RECORDED / "invalid").iterdir())
    of_kind = [[name for name in names if name.startswith(f"{kind}-")] for kind in kinds.values()]
    told: set[str] = set()
    for together in zip_longest(*of_kind):
        for path, name in zip(kinds, together, strict=True):
            if name is not None:
                path.parent.mkdir(exist_ok=True)
                path.write_bytes((RECORDED / "invalid" / name).read_bytes())
        answers = [await listed(client, None), await listed(client, full)]
        _, found = checked(daemon, daemon.config, full_root(daemon))
        assert [found.get(daemon.config, []), found.get(full_root(daemon), [])] == answers
        told |= {str(path) for path in kinds for issue in answers[0] + answers[1] if str(path).endswith(issue["path"])}
    assert told == set(map(str, kinds))
    for path, data in good.items():
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
    assert await listed(client, None) == []


async def test_the_command_says_it_of_every_recorded_list_of_workspaces(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon)
    registry = daemon.config / "config.json"
    good = registry.read_bytes()
    for recorded in sorted((RECORDED / "invalid").glob("config-*")):
        registry.write_bytes(recorded.read_bytes())
        answer = await listed(client, None)
        _, found = checked(daemon, registry)
        said = {issue["code"] for issue in answer if issue["path"] == "config.json"}
        assert [issue for issue in answer if issue["path"] == "config.json"] == found.get(daemon.config, [])
        assert bool(said) == (recorded.name != "config-with-bom.json")
    registry.write_bytes(good)
    assert await listed(client, None) == []


async def test_o13_o14_a_skill_that_cannot_be_read_is_an_issue_with_a_line_and_hides_no_other(
    daemon: Daemon, connect: Connect
) -> None:
    _, odd = ids()
    client = await connect(daemon, odd)
    found = {issue["path"]: issue for issue in await listed(client, odd)}
    skills = {item["id"]: item for item in (await client.call("skills/list", {"limit": 1000}))["items"]}
    for name in ("colon-space", "backtick-start"):
        assert found[f"skills/{name}/SKILL.md"]["range"]["start"]["line"] == 2
        assert skills[name]["info"]["issues"]
    for name in ("colon-url", "quoted-colon", "with-bom", "with-crlf", "bom-and-crlf", "word-no", "word-on"):
        assert f"skills/{name}/SKILL.md" not in found
        assert skills[name]["value"]["name"] == {"word-no": "no", "word-on": "on"}.get(name, name)
    for name in ("date-name", "clock-name", "number-name", "true-name", "zero-name"):
        assert isinstance(skills[name]["value"]["name"], str)


WRONG = {
    "labels/config.json": b"{", "statuses/config.json": b'{"statuses": []}', "views.json": b"[]",
    "permissions.json": b'{"allowedBashPatterns": ["("]}', "config.json": b'{"name": 1}', "automations.json": b"{",
    "tasks/new/task.yaml": b"id: [", "sources/tracker/config.json": b"{}", "sources/tracker/permissions.json": b"[",
    "skills/new/SKILL.md": b"no front matter", "projects/new/config.json": b'{"id": 7}',
    f"sessions/{SESSION}/session.jsonl": None,
}  # fmt: skip
"""Content that is wrong, by file; None: a line too many."""

WRONG_AT_HOME = {
    "config.json": b'{"workspaces": []}', "config-defaults.json": b"{", "preferences.json": b'{"uiLanguage": "xx"}',
    "drafts.json": b'{"drafts": {"a": 1}}',
    "theme.json": b"{}", "tool-icons/tool-icons.json": b"[]", "permissions/default.json": b"}",
}  # fmt: skip


async def told_of(client: Wire, path: str, *, wrong: bool) -> dict[str, Any]:
    """The event that says that a file is wrong now, or right again."""
    message = await client.wait(
        lambda message: (
            message.get("method") == "issues/didChange"
            and message["params"]["path"] == path
            and bool(message["params"]["issues"]) is wrong
        )
    )
    params: dict[str, Any] = message["params"]
    return params


@pytest.mark.parametrize("path", sorted(WRONG))
async def test_who_breaks_and_mends_a_file_by_hand_is_told_of(daemon: Daemon, connect: Connect, path: str) -> None:
    full, _ = ids()
    client = await connect(daemon, full)
    await client.call("events/subscribe", {"workspace": full, "topics": ["issues"]})
    file, wrong = full_root(daemon) / path, WRONG[path]
    good = file.read_bytes() if file.exists() else None
    already = [issue for issue in await listed(client, full) if issue["path"] == path]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((good or b"") + b"{broken\n" if wrong is None else wrong)
    told = await told_of(client, path, wrong=True)
    assert told["workspace"] == full
    assert [issue for issue in await listed(client, full) if issue["path"] == path] == told["issues"] != already
    assert all(issue["path"] == path for issue in told["issues"])
    seen = len(client.received)
    if good is None:
        shutil.rmtree(file.parent)
    else:
        file.write_bytes(good)
    await listed(client, full)
    later = [m["params"] for m in client.received[seen:] if m.get("method") == "issues/didChange"]
    assert [told["issues"] for told in later if told["path"] == path] == [already]


@pytest.mark.parametrize("path", sorted(WRONG_AT_HOME))
async def test_the_same_of_the_configuration_folder(daemon: Daemon, connect: Connect, path: str) -> None:
    client = await connect(daemon)
    await client.call("events/subscribe", {"topics": ["issues"]})
    file = daemon.config / path
    good = file.read_bytes() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(WRONG_AT_HOME[path])
    told = await told_of(client, path, wrong=True)
    assert [issue for issue in await listed(client, None) if issue["path"] == path] == told["issues"]
    if good is None:
        file.unlink()
    else:
        file.write_bytes(good)
    await told_of(client, path, wrong=False)
    assert await listed(client, None) == []


OWN = {
    "labels/config.json": (
        '{"version": 1, "labels": [{"id": "a", "name": "A", "color": "red"}]}',
        "labels/update", {"id": "a", "patch": {"set": {"color": "accent"}}},
    ),
    "config.json": (
        '{"id": "ws_00000001", "name": "A", "defaults": {"thinkingLevel": "ultra"}}',
        "workspaces/update", {"patch": {"set": {"defaults": {"thinkingLevel": "high"}}}},
    ),
    "permissions.json": (
        '{"allowedBashPatterns": 7}', "permissions/update",
        {"id": "workspace", "patch": {"set": {"allowedBashPatterns": ["^ls$"]}}},
    ),
}  # fmt: skip
"""What is wrong, and the change that mends it."""


@pytest.mark.parametrize("path", sorted(OWN))
async def test_a_change_that_mends_a_file_is_told_of_too(daemon: Daemon, connect: Connect, path: str) -> None:
    full, _ = ids()
    client = await connect(daemon, full)
    await client.call("events/subscribe", {"workspace": full, "topics": ["issues"]})
    file = full_root(daemon) / path
    good = file.read_bytes()
    wrong, method, params = OWN[path]
    file.write_text(wrong)
    await told_of(client, path, wrong=True)
    await client.call(method, {**({"id": full} if method.startswith("workspaces/") else {"workspace": full}), **params})
    await told_of(client, path, wrong=False)
    file.write_bytes(good)
    await listed(client, full)
