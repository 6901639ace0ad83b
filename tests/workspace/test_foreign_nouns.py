"""Edits of the nouns with small files by other programs."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from craftd.errors import Corrupt, Forbidden
from craftd.model.records import Record
from tests.workspace.house import SAVES, SESSION, House, Mirror, message, rename_over, write

FIELD_BUGS = Path(__file__).parent.parent / "field_bugs"

Save = Callable[[Path, bytes], None]


def text(value: Record) -> bytes:
    return json.dumps(value, indent=2).encode()


def skill(description: str) -> bytes:
    return f"---\nname: Tide\ndescription: {description}\n---\nRead the tide table.\n".encode()


def labels(*names: str) -> bytes:
    return text({"version": 1, "labels": [{"id": name.lower(), "name": name} for name in names]})


def statuses(todo: str) -> bytes:
    fixed = [("todo", todo, "open"), ("done", "Done", "closed"), ("cancelled", "Cancelled", "closed")]
    entries = [
        {"id": id, "label": label, "category": category, "isFixed": True, "isDefault": False, "order": order}
        for order, (id, label, category) in enumerate(fixed)
    ]
    return text({"version": 1, "statuses": entries, "defaultStatusId": "todo"})


def project(name: str) -> bytes:
    return text({"id": "proj_0a1b2c3d", "slug": "atlas", "name": name, "createdAt": 1, "updatedAt": 1})


def source(name: str) -> bytes:
    return text({"id": "tides_1", "slug": "tides", "name": name, "type": "local", "local": {"path": "~/tides"}})


def views(name: str) -> bytes:
    return text({"version": 1, "views": [{"id": "view-hot", "name": name, "expression": "isFlagged"}]})


FILES = {
    "labels": ("labels/config.json", lambda name: labels(name, "Fixed"), "one", "name"),
    "statuses": ("statuses/config.json", statuses, "todo", "label"),
    "views": ("views.json", views, "view-hot", "name"),
    "projects": ("projects/atlas/config.json", project, "proj_0a1b2c3d", "name"),
    "sources": ("sources/tides/config.json", source, "tides", "name"),
    "skills": ("skills/tide/SKILL.md", skill, "tide", "description"),
    "permissions": ("permissions.json", lambda version: text({"version": version}), "workspace", "version"),
}
"""By noun: a file, what is in it for a text, the id of a record there, the member that holds the text."""

NOUNS = [noun for noun in FILES if noun != "labels"]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("noun", NOUNS)
async def test_a_record_saved_by_another_program_is_announced_once(house: House, noun: str, save: Save) -> None:
    path, content, id, member = FILES[noun]
    file = house.root / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content("Before"))
    await house.sync()
    assert house.value(noun, id)[member] == "Before"
    house.events.clear()
    save(file, content("After"))
    event = await house.hear(f"{noun}/didChange")
    await house.sync()
    assert house.methods == [f"{noun}/didChange"]
    assert (event["changes"][0]["id"], event["patch"]) == (id, {"set": {member: "After"}})
    assert event["origin"] == {"kind": "disk"}
    assert house.value(noun, id)[member] == "After"


@pytest.mark.parametrize("save", SAVES)
async def test_the_labels_that_came_went_and_changed_are_announced_one_by_one(house: House, save: Save) -> None:
    file = house.root / "labels" / "config.json"
    file.write_bytes(labels("One", "Two"))
    await house.sync()
    mirror = await Mirror.of(house)
    save(file, labels("Two", "Three"))
    await house.hear("labels/didCreate")
    await house.sync()
    assert sorted(house.methods) == ["labels/didCreate", "labels/didDelete"]
    mirror.follow(house.events)
    await mirror.compare(house)


@pytest.mark.parametrize("save", SAVES)
async def test_another_order_of_labels_is_announced_by_its_level(house: House, save: Save) -> None:
    file = house.root / "labels" / "config.json"
    file.write_bytes(labels("One", "Two", "Three"))
    await house.sync()
    house.events.clear()
    save(file, labels("Three", "One", "Four"))
    event = await house.hear("labels/didReorder")
    await house.sync()
    assert house.methods == ["labels/didDelete", "labels/didCreate", "labels/didReorder"]
    assert (event["ids"], event.get("parent")) == (["three", "one", "four"], None)
    page = house.workspace.tables["labels"].index.page()
    assert [json.loads(item)["id"] for item in page.items] == ["three", "one", "four"]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("noun", FILES)
async def test_a_file_saved_without_a_change_is_not_announced(house: House, noun: str, save: Save) -> None:
    path, content, _, _ = FILES[noun]
    file = house.root / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content("Same"))
    await house.sync()
    house.events.clear()
    save(file, content("Same"))
    await house.sync()
    assert house.events == []


@pytest.mark.parametrize("noun", ["projects", "sources", "skills"])
async def test_folders_moved_in_renamed_and_moved_out(house: House, tmp_path: Path, noun: str) -> None:
    path, content, _, _ = FILES[noun]
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / Path(path).name).write_bytes(content("Guest"))
    mirror = await Mirror.of(house)
    folder = house.root / Path(path).parent
    os.rename(tmp_path / "away", folder)
    await house.hear(f"{noun}/didCreate")
    os.rename(folder, folder.with_name("a-new-name"))
    await house.hear(f"{noun}/did", 2) if noun != "projects" else None
    await house.sync()
    mirror.follow(house.events)
    await mirror.compare(house)
    house.events.clear()
    os.rename(folder.with_name("a-new-name"), tmp_path / "away")
    await house.hear(f"{noun}/didDelete")
    mirror.follow(house.events)
    await mirror.compare(house)
    assert house.values(noun) == {}


async def test_a_project_whose_folder_gets_another_name_stays_the_project_it_was(house: House) -> None:
    """In whatever order the two names are looked at."""
    for number, name in enumerate(("zebra", "aardvark", "zulu", "atlas")):
        old = next((p for p in (house.root / "projects").iterdir()), None)
        if old is None:
            write(house.root / "projects" / "zebra" / "config.json", json.loads(project("Atlas")))
        else:
            os.rename(old, old.with_name(name))
        await house.sync()
        assert house.value("projects", "proj_0a1b2c3d")["name"] == "Atlas", number
        assert len(house.values("projects")) == 1
    await house.update("projects", "proj_0a1b2c3d", name="Still ours")
    assert json.loads((house.root / "projects" / "atlas" / "config.json").read_bytes())["name"] == "Still ours"


async def test_a_copied_project_folder_is_reported_and_takes_over_when_the_first_goes(house: House) -> None:
    first, copy = house.root / "projects" / "atlas", house.root / "projects" / "copy"
    write(first / "config.json", json.loads(project("Atlas")))
    await house.sync()
    mirror = await Mirror.of(house)
    shutil.copytree(first, copy)
    await house.sync()
    assert [issue.code for issue in house.workspace.issues()["projects/copy"]] == ["duplicate-id"]
    assert house.heard("projects/") == []
    shutil.rmtree(first)
    await house.sync()
    await house.sync()
    mirror.follow(house.events)
    await mirror.compare(house)
    assert set(house.values("projects")) == {"proj_0a1b2c3d"}
    assert "projects/copy" not in house.workspace.issues() or not any(
        issue.code == "duplicate-id" for issue in house.workspace.issues()["projects/copy"]
    )


async def test_a_file_beside_the_main_one_is_part_of_its_record(house: House) -> None:
    folder = house.root / "sources" / "tides"
    folder.mkdir()
    (folder / "config.json").write_bytes(source("Tides"))
    await house.sync()
    house.events.clear()
    (folder / "guide.md").write_text("Ask for the port.")
    assert (await house.hear("sources/didChange"))["patch"] == {"set": {"guide": "Ask for the port."}}
    (folder / "guide.md").unlink()
    assert (await house.hear("sources/didChange", 2))["patch"] == {"unset": ["/guide"]}


async def test_what_is_no_part_of_a_record_is_not_looked_at(house: House) -> None:
    (house.root / "skills" / "tide").mkdir()
    (house.root / "skills" / "tide" / "SKILL.md").write_bytes(skill("Before"))
    await house.sync()
    house.events.clear()
    (house.root / "skills" / "tide" / "notes.txt").write_text("x")
    (house.root / "skills" / ".hidden").mkdir()
    (house.root / "skills" / "empty").mkdir()
    await house.sync()
    assert house.events == []


BAD_FILES = {
    "partial_statuses": ("statuses", "partial_statuses.json"),
    "missing_fixed_status": ("statuses", "missing_fixed_status.json"),
    "trailing_comma_labels": ("labels", "trailing_comma_labels.json"),
    "empty": ("labels", None),
}


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("case", BAD_FILES)
async def test_a_half_written_configuration_resets_nothing(house: House, case: str, save: Save) -> None:
    noun, name = BAD_FILES[case]
    file = house.root / noun / "config.json"
    shutil.copytree(FIELD_BUGS / "_base" / "ws" / noun, house.root / noun, dirs_exist_ok=True)
    await house.sync()
    await house.update("sessions", SESSION, sessionStatus="waiting-on-vendor", labels=["bug"])
    good, before = file.read_bytes(), dict(house.values(noun))
    bad = b"" if name is None else (FIELD_BUGS / "O15" / name).read_bytes()
    house.events.clear()

    save(file, bad)
    told = await house.hear("issues/didChange")
    await house.sync()
    assert told["path"] == f"{noun}/config.json"
    assert told["issues"]
    assert house.methods == ["issues/didChange"]
    assert house.values(noun) == before
    assert house.value("sessions", SESSION)["sessionStatus"] == "waiting-on-vendor"
    more = {"label": "Blocked", "category": "open"} if noun == "statuses" else {"name": "Blocked"}
    with pytest.raises(Corrupt):
        await house.create(noun, **more)
    assert file.read_bytes() == bad

    save(file, good)
    assert (await house.hear("issues/didChange", 2))["issues"] == []
    await house.create(noun, **more)
    assert {*before} < {*house.values(noun)}
    assert len(json.loads(file.read_bytes())[noun]) == len(json.loads(good)[noun]) + 1


async def test_the_last_good_configuration_outlives_a_restart(house: House) -> None:
    file = house.root / "labels" / "config.json"
    file.write_bytes(labels("One", "Two"))
    await house.sync()
    await house.close()
    file.write_bytes(b'{"labels": [')
    await house.open()
    assert set(house.values("labels")) == {"one", "two"}
    with pytest.raises(Corrupt):
        await house.create("labels", name="Three")
    assert file.read_bytes() == b'{"labels": ['


async def test_a_foreign_edit_and_ours_of_one_file_are_both_kept(house: House) -> None:
    file = house.root / "labels" / "config.json"
    file.write_bytes(labels("One", "Two"))
    await house.sync()
    mirror = await Mirror.of(house)
    for number in range(20):
        known = json.loads(file.read_bytes())
        known["labels"].append({"id": f"theirs-{number}", "name": "Theirs"})
        mine = asyncio.create_task(house.create("labels", f"ours-{number}", name="Ours"))
        if number % 2:
            await asyncio.sleep(0)
        rename_over(file, text({**known, "labels": known["labels"]}))
        await mine
        await house.sync()
        there = {entry["id"] for entry in json.loads(file.read_bytes())["labels"]}
        assert f"theirs-{number}" in there
    mirror.follow(house.events)
    await mirror.compare(house)


@pytest.mark.parametrize("target", ["labels/config.json", "skills/tide/SKILL.md", "sessions/260302-loop/session.jsonl"])
async def test_a_link_that_leads_in_a_circle_harms_only_itself(house: House, target: str) -> None:
    path = house.root / target
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(path.name)
    await house.sync()
    rename_over(house.transcript(), house.transcript().read_bytes() + json.dumps(message("x")).encode() + b"\n")
    await house.hear("messages/didAppend")
    await house.reopen()
    assert SESSION in house.values("sessions")


@pytest.mark.parametrize("target", ["labels/config.json", "skills/tide/SKILL.md", "sessions/260302-dir/session.jsonl"])
async def test_a_folder_where_a_file_should_be_harms_only_itself(house: House, target: str) -> None:
    (house.root / target).mkdir(parents=True)
    await house.sync()
    rename_over(house.transcript(), house.transcript().read_bytes() + json.dumps(message("x")).encode() + b"\n")
    await house.hear("messages/didAppend")
    await house.reopen()
    assert SESSION in house.values("sessions")


async def test_linked_skills_are_listed_read_and_deleted_as_links(house: House, tmp_path: Path) -> None:
    shutil.copytree(FIELD_BUGS / "O16" / "outside", tmp_path / "outside")
    target = tmp_path / "outside" / "shared-skill"
    (house.root / "skills" / "shared-skill").symlink_to(target)
    (house.root / "skills" / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "plain").write_text("x")
    (house.root / "skills" / "plain").symlink_to(tmp_path / "plain")
    await house.sync()
    assert set(house.values("skills")) == {"shared-skill"}
    assert len(house.heard("skills/didCreate")) == 1
    before = (target / "SKILL.md").read_bytes()
    with pytest.raises(Forbidden):
        await house.update("skills", "shared-skill", description="Ours")
    rename_over(target / "SKILL.md", before + b"\nMore.\n")
    await house.sync()
    assert house.value("skills", "shared-skill")["content"].endswith("More.\n")
    await house.delete("skills", "shared-skill")
    assert not os.path.lexists(house.root / "skills" / "shared-skill")
    assert (target / "SKILL.md").read_bytes() == before + b"\nMore.\n"
