"""Skills over the wire: judged before they are stored, listed when they are damaged, changed without harm."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
RECORDED = Path(__file__).parents[1] / "golden" / "skills"
SKILL = b"""\xef\xbb\xbf---\r
# when the water is low\r
name: 'Tide check'   # shown in lists\r
description: >\r
  When to look\r
  at the tables\r
x-own: [1, two]\r
requiredSources: # both\r
  - tide-tables # the old ones\r
  - harbour\r
---\r
Look first.\r
"""


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    set_up(daemon)
    yield daemon
    daemon.end()


def put(daemon: Daemon, slug: str, text: bytes) -> Path:
    file = daemon.base / "ws" / "skills" / slug / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    return file


async def started(daemon: Daemon, connect: Connect) -> Wire:
    daemon.start()
    client = await connect(daemon, WORKSPACE)
    await client.call("events/subscribe", {"workspace": WORKSPACE})
    return client


async def judged(client: Wire, text: str, folder: str | None = None) -> list[dict[str, Any]]:
    params = {"text": text} if folder is None else {"text": text, "folder": folder}
    issues: list[dict[str, Any]] = (await client.call("skills/validate", params))["issues"]
    return issues


async def test_a_text_gets_the_issues_that_its_file_has_and_nothing_is_stored(daemon: Daemon, connect: Connect) -> None:
    damaged = {}
    for slug in ("duplicate-key", "number-name", "list-root", "unterminated", "blank-body", "Bad_Slug"):
        damaged[slug] = (RECORDED / "invalid" / "skills" / slug / "SKILL.md").read_bytes()
        put(daemon, slug, damaged[slug])
    client = await started(daemon, connect)
    items = {item["id"]: item for item in (await client.call("skills/list", {"limit": 500}))["items"]}
    for slug, text in damaged.items():
        issues = await judged(client, text.decode(), slug)
        stored = await client.call("issues/list", {"workspace": WORKSPACE, "path": f"skills/{slug}/SKILL.md"})
        assert issues == stored["items"] == items[slug]["info"]["issues"] != []
        loose = await judged(client, text.decode())
        assert {(issue["path"], issue.get("id")) for issue in loose} <= {("SKILL.md", None)}
    assert await judged(client, "---\nname: N\ndescription: d\n---\nDo it.\n", "not-there") == []
    assert not (daemon.base / "ws" / "skills" / "not-there").exists()
    for name in ("..", "a/b", ""):
        with pytest.raises(Failed, match="InvalidParams"):
            await judged(client, "x", name)


async def test_code_in_front_matter_is_refused_and_never_run(daemon: Daemon, connect: Connect) -> None:
    trace = daemon.base / "trace"
    code = f"require('fs').writeFileSync({json.dumps(str(trace))}, 'ran')"
    text = f"---js\n{{name: 'Js', description: {code}}}\n---\nbody\n"
    put(daemon, "code", text.encode())
    client = await started(daemon, connect)
    [issue] = await judged(client, text, "code")
    assert (issue["code"], issue["range"]["start"]["line"]) == ("not-yaml", 0)
    got = (await client.call("skills/get", {"id": "code"}))["item"]
    assert (got["value"], got["info"]["issues"]) == ({"content": "body\n"}, [issue])
    with pytest.raises(Failed, match="Corrupt"):
        await client.call("skills/update", {"id": "code", "patch": {"set": {"name": "Mine"}}})
    assert not trace.exists()


async def test_an_update_keeps_comments_order_and_line_ends(daemon: Daemon, connect: Connect) -> None:
    file = put(daemon, "tide", SKILL)
    client = await started(daemon, connect)
    before = (await client.call("skills/get", {"id": "tide"}))["item"]["value"]
    same = await client.call("skills/update", {"id": "tide", "patch": {"set": before}})
    assert (same["changed"], file.read_bytes()) == (False, SKILL)
    patch = {"set": {"name": "Tides"}, "remove": {"/requiredSources": ["harbour"]}}
    await client.call("skills/update", {"id": "tide", "patch": patch})
    changed = SKILL.replace(b"'Tide check'", b"Tides").replace(b"  - harbour\r\n", b"")
    assert file.read_bytes() == changed
    await client.call("skills/update", {"id": "tide", "patch": {"set": {"content": "Look twice.\r\n"}}})
    assert file.read_bytes() == changed.replace(b"first", b"twice")
    assert await judged(client, file.read_bytes().decode(), "tide") == []


async def test_a_skill_that_becomes_invalid_is_told_and_told_again_when_it_is_mended(
    daemon: Daemon, connect: Connect
) -> None:
    file = put(daemon, "tide", SKILL)
    client = await started(daemon, connect)
    for text, codes in ((SKILL.replace(b"x-own", b"name"), ["not-yaml"]), (SKILL, [])):
        file.write_bytes(text)
        await client.call("daemon/sync", {"workspace": WORKSPACE})
        told = [m["params"] for m in client.received if m.get("method") == "issues/didChange"]
        client.received.clear()
        assert told[-1]["path"] == "skills/tide/SKILL.md"
        assert [issue["code"] for issue in told[-1]["issues"]] == codes
        assert told[-1]["issues"] == await judged(client, text.decode(), "tide")


async def test_a_new_skill_is_judged_by_the_same_rules(daemon: Daemon, connect: Connect) -> None:
    client = await started(daemon, connect)
    with pytest.raises(Failed, match="ValidationFailed") as caught:
        await client.call("skills/create", {"value": {"name": "", "globs": [1], "content": " \n"}})
    paths = {(issue["path"], issue.get("code")) for issue in caught.value.error["data"]["issues"]}
    assert paths == {("name", "schema"), ("description", "schema"), ("globs.0", "schema"), ("content", "empty-body")}
    made = await client.call(
        "skills/create", {"value": {"content": "Go.\n", "description": "2026-07-01", "name": "42"}}
    )
    file = daemon.base / "ws" / "skills" / made["item"]["id"] / "SKILL.md"
    assert file.read_bytes() == b'---\nname: "42"\ndescription: "2026-07-01"\n---\nGo.\n'
    assert await judged(client, file.read_text(), made["item"]["id"]) == []
    for icon, shown in ((" \U0001f6a2 ", {"icon": "\U0001f6a2"}), ("./icon.svg", {})):
        patch = {"id": made["item"]["id"], "patch": {"set": {"icon": icon}}}
        item = (await client.call("skills/update", patch))["item"]
        assert (item["value"]["icon"], item.get("info", {})) == (icon, shown)
    path = f"skills/{made['item']['id']}/icon.svg"
    await client.call("files/write", {"path": path, "content": {"text": "<svg/>"}})
    assert (await client.call("files/read", {"path": path}))["data"] == "<svg/>"
