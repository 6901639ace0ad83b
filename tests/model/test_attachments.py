"""Names of attachments, and which files of a folder are one, compared with what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.attachments import Attachment, grouped, kind_of, safe_name, stored, stored_name
from craftd.model.files import NAME_BYTES, parts_of

GOLDEN = Path(__file__).parents[1] / "golden/sessions"
VECTORS = json.loads((GOLDEN / "vectors.json").read_bytes())
OTTER = GOLDEN / "workspace/sessions/260307-silver-otter"
ID, OTHER = "96573f6c-46ea-4191-a3d2-ea5d9db4cf31", "f2adbbaf-fed7-4123-aa94-501a12751a71"


@pytest.mark.parametrize(("name", "safe"), VECTORS["attachmentNames"])
def test_a_name_becomes_what_the_app_makes_of_it(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text())
def test_any_name_becomes_one_that_a_file_can_have(name: str) -> None:
    file = stored_name(ID, name)
    assert parts_of(f"{file}.md") == (f"{file}.md",)
    assert not any(char in file for char in '/\\:*?"<>|')


def test_a_long_name_leaves_room_for_what_is_added() -> None:
    assert len(f"{stored_name(ID, '日' * 300)}.md".encode()) <= NAME_BYTES


def test_no_attachment_is_its_own_thumbnail() -> None:
    assert stored_name(ID, "thumb.png") == f"{ID}_thumb-1.png"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.PNG", "image"),
        ("a.pdf", "pdf"),
        ("a.docx", "office"),
        ("a.opus", "audio"),
        ("a.xyz", "text"),
        (".png", "text"),
    ],
)
def test_the_extension_says_what_it_is(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_what_was_made_of_a_file_belongs_to_it() -> None:
    files = [f"{ID}_report.docx", f"{OTHER}_thumb.png", f"{ID}_report.docx.md", f"{OTHER}_view.png", "loose.txt"]
    report = Attachment(ID, "report.docx", files[0], markdown=files[2])
    view = Attachment(OTHER, "view.png", files[3], thumbnail=files[1])
    assert grouped(files) == [report, view, Attachment("loose.txt", "loose.txt", "loose.txt")]
    assert view.files == (files[1], files[3])
    assert grouped(files[:2]) == [Attachment(ID, "report.docx", files[0]), Attachment(OTHER, "thumb.png", files[1])]
    assert [one.id for one in grouped([f"{ID}_a", f"{ID}_b"])] == [ID, f"{ID}_b"]


@given(st.lists(st.sampled_from([f"{id}_{name}" for id in (ID, OTHER) for name in ("a", "a.md", "b", "thumb.png")])))
def test_every_file_is_in_one_attachment_and_no_id_comes_twice(files: list[str]) -> None:
    files = list(dict.fromkeys(files))
    found = grouped(files)
    assert len({one.id for one in found}) == len(found)
    held = {name for one in found for name in one.files}
    assert held >= {name for name in files if not name.endswith("thumb.png")}


def test_a_recorded_message_says_of_its_attachments_what_is_in_the_folder() -> None:
    found = {one.id: one for one in grouped(sorted(path.name for path in (OTTER / "attachments").iterdir()))}
    lines = (OTTER / "session.jsonl").read_text().splitlines()[1:]
    recorded = [one for line in lines for one in json.loads(line).get("attachments", [])]
    assert {one["id"] for one in recorded} == found.keys()
    for one in recorded:
        told = stored(found[one["id"]], one["size"], "{{SESSION_PATH}}/attachments")
        for name in ("id", "type", "name", "mimeType", "size", "storedPath", "thumbnailPath", "wasResized"):
            assert told.get(name) == one.get(name), name
