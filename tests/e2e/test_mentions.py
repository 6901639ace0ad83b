"""Mentions and prerequisites over the wire."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root = set_up(daemon)
    (daemon.config / "docs").mkdir()
    (daemon.config / "docs" / "browser-tools.md").write_text("# Browser\n")
    for slug, more in (("linear", {}), ("off", {"enabled": False}), ("bare", {})):
        folder = root / "sources" / slug
        folder.mkdir(parents=True)
        config = {
            "id": f"{slug}_1",
            "name": slug.title(),
            "slug": slug,
            "enabled": True,
            "provider": "p",
            "type": "local",
        }
        (folder / "config.json").write_text(json.dumps({**config, "local": {"path": "/srv"}, **more}))
        if slug != "bare":
            (folder / "guide.md").write_text("# Guide\n")
    skill = root / "skills" / "commit"
    skill.mkdir(parents=True)
    required = "requiredSources: [linear, off, nowhere]\n"
    (skill / "SKILL.md").write_text(f"---\nname: Git Commit\ndescription: D\n{required}---\nDo it.\n")
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, WORKSPACE)


async def test_a_text_says_what_it_means(client: Wire, daemon: Daemon) -> None:
    root = daemon.base / "ws"
    text = "\U0001f600 [skill:ws:commit] in [file:a.ts], not [Skill:commit], [source:linear] [skill:gone]"
    got = await client.call("mentions/resolve", {"text": text, "directory": "/work"})
    assert got["message"] == (
        "\U0001f600 [Mentioned skill: Git Commit (slug: commit)] in [Mentioned file: a.ts (at /work/a.ts)], "
        "not [Skill:commit], [Mentioned source: linear] [Mentioned skill: gone (slug: gone)]"
    )
    skill, file, source, gone = got["mentions"]
    assert skill == {
        "kind": "skill", "name": "commit", "start": 3, "end": 20, "known": True,
        "path": str(root / "skills/commit/SKILL.md"), "title": "Git Commit",
    }  # fmt: skip
    assert (file["path"], file["known"]) == ("/work/a.ts", True)
    assert (source["path"], source["title"]) == (str(root / "sources/linear"), "Linear")
    assert (gone["known"], "path" in gone) == (False, False)
    assert len(got["nearMisses"]) == 1
    assert got["enable"] == ["linear"]
    assert got["skipped"] == [
        {"source": "off", "reason": "disabled"},
        {"source": "nowhere", "reason": "missing"},
    ]


async def test_a_session_says_where_it_works_and_what_it_has(client: Wire) -> None:
    value = {"workingDirectory": "/srv/here", "enabledSourceSlugs": ["linear"]}
    session = (await client.call("sessions/create", {"value": value}))["item"]["id"]
    got = await client.call("mentions/resolve", {"text": "[file:a]", "session": session, "skills": ["commit"]})
    assert got["message"] == "[Mentioned file: a (at /srv/here/a)]"
    assert got["enable"] == []
    with pytest.raises(Failed, match="NotFound"):
        await client.call("mentions/resolve", {"text": "", "session": "nobody"})


async def test_a_session_has_the_skills_of_its_directory_the_workspace_and_everybody(
    client: Wire, daemon: Daemon
) -> None:
    project = daemon.base / "project"
    files = {
        "global": Path(daemon.environment["HOME"]) / ".agents/skills/commit/SKILL.md",
        "workspace": daemon.base / "ws/skills/commit/SKILL.md",
        "project": project / ".agents/skills/commit/SKILL.md",
    }
    for level in ("global", "project"):
        files[level].parent.mkdir(parents=True)
    files["global"].write_text("---\nname: For all\ndescription: d\nrequiredSources: bare\n---\nx\n")
    files["project"].write_text("---\nname: Here\nname: There\n---\nx\n")
    session = (await client.call("sessions/create", {"value": {"workingDirectory": str(project)}}))["item"]["id"]

    async def resolved(**params: str) -> dict[str, Any]:
        [skill] = [one for one in (await client.call("skills/resolve", params))["skills"] if one["id"] == "commit"]
        assert [level["path"] for level in skill["levels"]] == [str(files[at["level"]]) for at in skill["levels"]]
        return cast("dict[str, Any]", skill)

    broken = await resolved(session=session)
    assert [(at["level"], at["loads"]) for at in broken["levels"]] == [
        ("project", False), ("workspace", True), ("global", True),
    ]  # fmt: skip
    [issue] = broken["levels"][0]["issues"]
    assert (issue["code"], issue["path"], issue["range"]["start"]["line"]) == ("not-yaml", str(files["project"]), 2)
    assert (broken["level"], broken["value"]["name"]) == ("workspace", "Git Commit")
    assert [one["reason"] for one in broken["unusable"]] == ["disabled", "missing"]
    files["project"].write_text("---\nname: Here\ndescription: d\n---\nx\n")
    mended = await resolved(session=session)
    assert (mended["level"], mended["path"], mended["sdkName"]) == ("project", str(files["project"]), ".agents:commit")
    assert [at["level"] for at in (await resolved())["levels"]] == ["workspace", "global"]
    got = await client.call("mentions/resolve", {"text": "[skill:commit]", "session": session})
    assert (got["message"], got["mentions"][0]["path"]) == (
        "[Mentioned skill: Here (slug: commit)]", str(files["project"]),
    )  # fmt: skip
    listed = (await client.call("skills/list"))["items"]
    assert [item["value"]["name"] for item in listed if item["id"] == "commit"] == ["Git Commit"]
    here = (await client.call("skills/get", {"id": "commit", "session": session}))["item"]
    assert here["value"] == {"name": "Here", "description": "d", "content": "x\n"}
    assert here["info"] == {
        "level": "project", "path": str(files["project"]), "loads": True, "sdkName": ".agents:commit",
        "shadows": ["workspace", "global"],
    }  # fmt: skip
    below = {"id": "commit", "level": "global", "session": session, "fields": ["name"]}
    item = (await client.call("skills/get", below))["item"]
    assert (item["value"], item["info"]["shadowedBy"]) == ({"name": "For all"}, "project")
    own = (await client.call("skills/get", {"id": "commit"}))["item"]
    leveled = (await client.call("skills/get", {"id": "commit", "level": "workspace"}))["item"]
    assert (own["version"], own["value"]) == (leveled["version"], leveled["value"])
    for params in ({"id": "commit", "level": "project"}, {"id": "no", "session": session}):
        with pytest.raises(Failed, match="NotFound"):
            await client.call("skills/get", params)
    for params in ({"id": "commit", "level": "home"}, {"id": "../commit", "level": "global"}):
        with pytest.raises(Failed, match="InvalidParams"):
            await client.call("skills/get", params)
    before = {level: file.read_bytes() for level, file in files.items()}
    value = {"name": "n", "description": "d", "content": "x\n"}
    for verb, more in (("create", {"value": value}), ("update", {"patch": {"set": {"name": "n"}}}), ("delete", {})):
        for level in ("global", "project"):
            with pytest.raises(Failed, match="Forbidden") as caught:
                await client.call(f"skills/{verb}", {"id": "commit", "level": level, **more})
            assert "only read" in caught.value.error["message"]
    assert before == {level: file.read_bytes() for level, file in files.items()}
    for level in ("global", "project"):
        shutil.rmtree(files[level].parents[2])


async def test_sessions_have_the_recorded_skills(client: Wire, daemon: Daemon) -> None:
    tiers = Path(__file__).parents[1] / "golden" / "skills" / "tiers"
    recorded = json.loads((tiers.parent / "expected.json").read_bytes())["tiers"]
    home, root, project = Path(daemon.environment["HOME"]), daemon.base / "ws", daemon.base / "tiers"
    shutil.copytree(tiers / "home" / ".agents", home / ".agents")
    shutil.copytree(tiers / "workspace" / "skills", root / "skills", dirs_exist_ok=True)
    shutil.copytree(tiers / "project", project)
    await client.call("daemon/sync", {"workspace": WORKSPACE})
    places = {"${HOME}": str(home), "${ROOT}/tiers/workspace": str(root), "${ROOT}/tiers/project": str(project)}
    value = {"workingDirectory": str(project)}
    session = (await client.call("sessions/create", {"value": value}))["item"]["id"]
    resolved = {one["id"]: one for one in (await client.call("skills/resolve", {"session": session}))["skills"]}
    names = {case["given"].rpartition(":")[2]: case["tool"]["input"]["skill"] for case in recorded["qualified"]}
    for slug, expected in recorded["bySlug"].items():
        if expected is None:
            with pytest.raises(Failed, match="NotFound"):
                await client.call("skills/get", {"id": slug, "session": session})
            continue
        item = (await client.call("skills/get", {"id": slug, "session": session}))["item"]
        path = expected["path"]
        for token, place in places.items():
            path = path.replace(token, place)
        assert (item["value"]["name"], item["info"]["level"]) == (expected["name"], expected["source"])
        assert (item["info"]["path"], item["info"]["loads"]) == (f"{path}/SKILL.md", True)
        assert (resolved[slug]["level"], resolved[slug]["path"]) == (expected["source"], f"{path}/SKILL.md")
        assert resolved[slug]["sdkName"] == item["info"]["sdkName"]
        if slug in names and expected["source"] != "workspace":
            assert item["info"]["sdkName"] == names[slug]
    got = await client.call("skills/get", {"id": "broken-on-top", "level": "project", "session": session})
    assert got["item"]["info"]["loads"] is False
    shutil.rmtree(home / ".agents")


async def test_a_hostile_folder_of_skills_harms_nobody(client: Wire, daemon: Daemon) -> None:
    skills = daemon.base / "hostile" / ".agents" / "skills"
    skills.mkdir(parents=True)
    for at in range(1_100):
        (skills / f"s{at:05}").mkdir()
    (skills / "s00000" / "SKILL.md").write_bytes(b"x" * 1_000_000)
    os.mkfifo(skills / "s00001" / "SKILL.md")
    (skills / "s00002" / "SKILL.md").write_text("---\nname: n\ndescription: d\n---\nx\n")
    (skills / "s00003").rmdir()
    (skills / "s00003").symlink_to("s00003")
    (skills / "s00004" / "SKILL.md").symlink_to(daemon.config / "config.json")
    value = {"workingDirectory": str(skills.parents[1])}
    session = (await client.call("sessions/create", {"value": value}))["item"]["id"]
    got = await client.call("skills/resolve", {"session": session})
    loaded = {skill["id"]: (skill.get("level"), [at["issues"][0]["code"] for at in skill["levels"] if at["issues"]])
              for skill in got["skills"] if skill["id"].startswith("s0")}  # fmt: skip
    assert loaded == {
        "s00000": (None, ["too-large"]), "s00001": (None, ["unreadable"]), "s00002": ("project", []),
        "s00004": (None, ["link-outside"]),
    }  # fmt: skip
    assert [(issue["code"], issue["path"]) for issue in got["issues"]] == [("too-many", str(skills))]
    leaked = (await client.call("skills/get", {"id": "s00004", "level": "project", "session": session}))["item"]
    assert leaked["value"] == {}


async def test_what_is_not_read_is_asked_for_once_and_the_state_goes_with_the_client(
    client: Wire, daemon: Daemon
) -> None:
    resolved = await client.call("mentions/resolve", {"text": "[skill:commit]"})
    skill = resolved["mentions"][0]["path"]
    guide = str(daemon.base / "ws/sources/linear/guide.md")
    steps: list[Any] = [{"mention": [skill]}, {"call": "Grep"}, {"read": skill}, {"call": "mcp__linear__list"}]
    first = await client.call("prerequisites/check", {"steps": steps})
    assert first["answers"] == [
        None, {"allowed": False, "needs": [skill]}, None, {"allowed": False, "needs": [guide]},
    ]  # fmt: skip
    more = [{"call": "mcp__linear__list"}, {"call": "mcp__bare__list"}, {"reset": True}, {"call": "mcp__linear__list"}]
    second = await client.call("prerequisites/check", {"steps": more, "state": first["state"]})
    assert [answer and answer["allowed"] for answer in second["answers"]] == [True, True, None, False]
    docs = str(daemon.config / "docs" / "browser-tools.md")
    browsing = {"steps": [{"call": "browser_tool"}, {"call": "browser_tool"}], "browser": True}
    answers = (await client.call("prerequisites/check", browsing))["answers"]
    assert answers == [{"allowed": False, "needs": [docs]}] * 2
    assert (await client.call("prerequisites/check", {**browsing, "browser": False}))["answers"][0]["allowed"]


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"steps": [{"call": "Grep"}, {}]}, "steps.1"),
        ({"steps": [{"call": 7}]}, "steps.0.call"),
        ({"steps": [{"mention": [7]}]}, "steps.0.mention"),
        ({"steps": [{"reset": False}]}, "steps.0.reset"),
        ({"steps": [{"wait": 1}]}, "steps.0.wait"),
        ({"steps": [], "state": {"read": "x"}}, "state.read"),
    ],
)
async def test_steps_that_are_none_are_named(client: Wire, params: dict[str, Any], path: str) -> None:
    with pytest.raises(Failed) as failed:
        await client.call("prerequisites/check", params)
    assert failed.value.error["data"]["issues"][0]["path"] == path
