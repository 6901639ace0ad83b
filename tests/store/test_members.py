"""Drafts on the disk: members of one object of a file that the app writes too."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from craftd.errors import Corrupt, TooLarge
from craftd.model.noun import Facts
from craftd.store import disk
from craftd.store.atomic import ForeignWrite
from craftd.store.files import LARGEST
from craftd.store.layout import DRAFTS_SHELF

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
FACTS = Facts(now=1783936800111, pick=lambda n: 0)
KEY = "drafts.json"


def test_a_change_leaves_the_bytes_that_the_app_would_write(tmp_path: Path) -> None:
    recorded = (GOLDEN / "home" / KEY).read_bytes()
    (tmp_path / KEY).write_bytes(recorded)
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    assert document is not None
    [(id, draft)] = document.records.items()
    DRAFTS_SHELF.save(tmp_path, KEY, document, {id: draft}, FACTS)
    assert (tmp_path / KEY).read_bytes() == recorded


def test_what_is_no_draft_is_none_and_stays(tmp_path: Path) -> None:
    recorded = (GOLDEN / "legacy/drafts-old-shape" / KEY).read_bytes()
    (tmp_path / KEY).write_bytes(recorded)
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    assert document is not None
    assert list(document.records) == ["s2", "s4"]
    saved = DRAFTS_SHELF.save(tmp_path, KEY, document, {"s2": None, "s5": {"text": "new"}}, FACTS)
    assert saved is not None
    assert list(saved.records) == ["s4", "s5"]
    before, after = json.loads(recorded)["drafts"], json.loads((tmp_path / KEY).read_bytes())["drafts"]
    del before["s2"]
    assert after == {**before, "s5": {"text": "new"}}


def test_the_first_draft_makes_the_file(tmp_path: Path) -> None:
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    saved = DRAFTS_SHELF.save(tmp_path, KEY, document, {"s": {"text": "x"}}, FACTS)
    assert saved == DRAFTS_SHELF.load(tmp_path, KEY)
    assert json.loads((tmp_path / KEY).read_bytes()) == {"drafts": {"s": {"text": "x"}}, "updatedAt": FACTS.now}


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"drafts": []}', b"\xff"])
def test_a_file_that_holds_no_drafts_is_not_written_over(tmp_path: Path, data: bytes) -> None:
    (tmp_path / KEY).write_bytes(data)
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    assert document is not None
    assert (document.records, bool(document.issues)) == ({}, True)
    with pytest.raises(Corrupt):
        DRAFTS_SHELF.save(tmp_path, KEY, document, {"s": {"text": "x"}}, FACTS)
    assert (tmp_path / KEY).read_bytes() == data


def test_somebody_elses_draft_in_between_is_noticed(tmp_path: Path) -> None:
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    (tmp_path / KEY).write_bytes(b'{"drafts": {}}')
    with pytest.raises(ForeignWrite):
        DRAFTS_SHELF.save(tmp_path, KEY, document, {"s": {"text": "x"}}, FACTS)
    assert (tmp_path / KEY).read_bytes() == b'{"drafts": {}}'


def test_drafts_that_could_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    document = DRAFTS_SHELF.load(tmp_path, KEY)
    with pytest.raises(TooLarge):
        DRAFTS_SHELF.save(tmp_path, KEY, document, {"s": {"text": "x" * LARGEST}}, FACTS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["create", "write", "flush_full", "exchange"])
def test_a_full_disk_leaves_the_drafts_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    recorded = (GOLDEN / "home" / KEY).read_bytes()
    (tmp_path / KEY).write_bytes(recorded)
    document = DRAFTS_SHELF.load(tmp_path, KEY)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(disk, call, full)
    with pytest.raises(OSError, match="full"):
        DRAFTS_SHELF.save(tmp_path, KEY, document, {"s": {"text": "x"}}, FACTS)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {KEY: recorded}
