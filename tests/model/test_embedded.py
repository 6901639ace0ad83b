from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given

from craftd.model import embedded
from tests.strategies import json_values, records

FOLDER = "/ws/sessions/s"
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
TEXT = base64.b64encode(PNG).decode()


def message(*attachments: Any) -> dict[str, Any]:
    return {"id": "m1", "content": "look", "attachments": list(attachments), "type": "user"}


def test_an_image_that_has_its_file_is_left_out() -> None:
    attachment = {"id": "u", "storedPath": f"{FOLDER}/attachments/u_a.png", "resizedBase64": TEXT, "wasResized": True}
    thumbed = {**attachment, "thumbnailPath": f"{FOLDER}/attachments/u_thumb.png", "thumbnailBase64": TEXT}
    line, files = embedded.moved(message(thumbed), FOLDER)
    [left] = line["attachments"]
    assert files == {}
    assert left == {name: thumbed[name] for name in ("id", "storedPath", "wasResized", "thumbnailPath")}


@pytest.mark.parametrize("text", [TEXT, f"data:image/png;base64,{TEXT}"])
def test_an_image_without_a_file_gets_one(text: str) -> None:
    line, files = embedded.moved(message({"id": "u", "resizedBase64": text, "thumbnailBase64": text}), FOLDER)
    [left] = line["attachments"]
    assert sorted(files.values()) == [PNG, PNG]
    assert {left["storedPath"], left["thumbnailPath"]} == {f"{FOLDER}/{name}" for name in files}
    assert left["thumbnailPath"].endswith("_thumb.png")
    assert left.keys() == {"id", "storedPath", "thumbnailPath"}
    assert embedded.moved(line, FOLDER) == (line, {})


@pytest.mark.parametrize("odd", ["no base64!", "", None, 5, "QQ", "data:image/png;base64,"])
def test_what_is_no_image_stays(odd: Any) -> None:
    same = message({"thumbnailBase64": odd}, None, "text")
    assert embedded.moved(same, FOLDER) == (same, {})


def test_equal_images_share_a_file_and_others_do_not() -> None:
    other = base64.b64encode(b"\xff\xd8\xff" + PNG).decode()
    line, files = embedded.moved(message(*({"thumbnailBase64": one} for one in (TEXT, TEXT, other))), FOLDER)
    assert len(files) == 2
    assert [one["thumbnailPath"][-4:] for one in line["attachments"]] == [".png", ".png", ".jpg"]


@given(records, json_values)
def test_odd_messages_never_fail_and_moving_twice_is_moving_once(record: dict[str, Any], attachments: Any) -> None:
    line, _ = embedded.moved({**record, "attachments": attachments}, FOLDER)
    assert embedded.moved(line, FOLDER) == (line, {})
