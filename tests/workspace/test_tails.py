"""Pages from the end of sessions that are not open: the same as of an open one, without opening it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import NotFound
from craftd.model import json_text
from craftd.store.transcript import Transcript
from craftd.workspace import foreign, reading, tails
from tests.workspace.house import House, line, message

TESTS = Path(__file__).parents[1]
RECORDED = TESTS / "golden/sessions/workspace/sessions"
DAMAGED = TESTS / "field_bugs"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House.make(tmp_path)


def age(house: House) -> None:
    """Let the files be older than what may still be in writing."""
    for path in house.root.rglob("session.jsonl*"):
        os.utime(path, (1_772_000_000, 1_772_000_000))


async def backward(house: House, session: str, limit: int = 2, cursor: str | None = None) -> list[Any]:
    """Every page from the end, as (items, total)."""
    pages = []
    while True:
        page = await reading.page(house.workspace, session, backward=True, limit=limit, cursor=cursor)
        pages.append(([json_text.loads(text) for text in page.items], page.total))
        if (cursor := page.next_cursor) is None:
            return pages


async def test_recorded_sessions_that_are_not_open_give_the_pages_of_open_ones(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "TAIL_ABOVE", 0)
    folders = [folder for folder in RECORDED.iterdir() if folder.is_dir()]
    folders += [folder for folder in DAMAGED.glob("O*/ws/sessions/*") if folder.is_dir()]
    for folder in folders:
        shutil.copytree(folder, house.root / "sessions" / folder.name)
    age(house)
    await house.open()
    await house.sync()
    ids = [row.id for row in house.workspace.sessions]
    assert len(ids) > 50
    closed = {id: await backward(house, id) for id in ids if house.workspace.session(id).body is not None}
    opened = set(house.workspace.transcripts)
    assert opened <= {"260408-tmp-only", "260417-dup-ids"}
    for id in closed:
        await house.workspace.transcript(id)
    assert closed == {id: await backward(house, id) for id in closed}
    await house.close()


async def test_a_page_of_a_long_session_opens_nothing_after_a_restart_too(house: House) -> None:
    long_session(house)
    await house.open()
    await house.sync()
    for _ in range(2):
        pages = await backward(house, "260301-long-road", limit=500)
        assert [item["id"] for items, _ in reversed(pages) for item in items] == [f"m{n}" for n in range(4000)]
        assert {total for _, total in pages} == {4000}
        assert not house.workspace.transcripts
        await house.reopen()
    await house.close()


def long_session(house: House) -> Path:
    path = house.new_session("260301-long-road", *(f"m{number}" for number in range(4000)))
    assert path.stat().st_size > tails.TAIL_ABOVE
    age(house)
    return path


async def test_pages_go_on_where_they_were_when_the_session_is_opened_and_changed(house: House) -> None:
    long_session(house)
    await house.open()
    await house.sync()
    first = await reading.page(house.workspace, "260301-long-road", backward=True, limit=10)
    await house.append("260301-long-road", "more")
    assert house.workspace.transcripts
    second = await reading.page(house.workspace, "260301-long-road", backward=True, limit=10, cursor=first.next_cursor)
    house.workspace.transcripts.popitem()[1].close()
    age(house)
    await house.sync()
    house.workspace.transcripts.clear()
    third = await reading.page(house.workspace, "260301-long-road", backward=True, limit=10, cursor=second.next_cursor)
    found = [json_text.loads(text)["id"] for page in (third, second, first) for text in page.items]
    assert found == [f"m{number}" for number in range(3970, 4000)]
    assert (first.total, second.total, third.total) == (4000, 4001, 4001)
    await house.close()


async def test_what_somebody_wrote_meanwhile_is_in_the_page(house: House) -> None:
    path = long_session(house)
    await house.open()
    await house.sync()
    with path.open("ab") as file:
        file.write(line(message("theirs")))
    page = await reading.page(house.workspace, "260301-long-road", backward=True, limit=1)
    assert [json_text.loads(text)["id"] for text in page.items] == ["theirs"]
    assert page.total == 4001
    await house.delete("sessions", "260301-long-road")
    with pytest.raises(NotFound):
        await reading.page(house.workspace, "260301-long-road", backward=True, limit=1)
    await house.close()


async def test_a_page_of_an_open_session_reads_no_more_than_it_returns(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = house.new_session("260301-long-road")
    path.write_bytes(path.read_bytes() + b"".join(line(message(f"m{n}", "x" * 300_000)) for n in range(12)))
    await house.open()
    await house.workspace.transcript("260301-long-road")
    asked: list[tuple[int, int]] = []
    read = Transcript.read

    def counted(self: Transcript, start: int, stop: int) -> Any:
        asked.append((start, stop))
        return read(self, start, stop)

    monkeypatch.setattr(Transcript, "read", counted)
    page = await reading.page(house.workspace, "260301-long-road", limit=500)
    assert (len(page.items), asked) == (3, [(0, 3)])
    page = await reading.page(house.workspace, "260301-long-road", limit=500, backward=True)
    assert (len(page.items), asked[1:]) == (3, [(9, 12)])
    await house.close()


@pytest.mark.parametrize("opened", [True, False])
async def test_more_than_events_can_hold_is_announced_without_reading_it(
    house: House, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    monkeypatch.setattr(foreign, "TOLD_BYTES", 10_000)
    path = long_session(house)
    await house.open()
    await house.sync()
    if opened:
        await house.workspace.transcript("260301-long-road")
    read: list[int] = []
    segments = Transcript.read
    monkeypatch.setattr(
        Transcript, "read", lambda self, start, stop: read.append(stop - start) or segments(self, start, stop)
    )
    edits = {  # what another program makes of the file: how many messages readers know for certain afterwards
        "an early message": (lambda text: text.replace(b'text of m9"', b'no text"'), {0, 9}),
        "many more": (lambda text: text + b"".join(line(message(f"n{n}")) for n in range(500)), {4000}),
    }
    for made, known in edits.values():
        revision = house.workspace.revision
        path.write_bytes(made(path.read_bytes()))
        await house.sync()
        [told] = house.heard("messages/")[-1:]
        assert told["method"] == "messages/didTruncate"
        assert told["keep"] in known
        assert house.workspace.journal.since(house.workspace.epoch, revision) is None
    assert sum(read) < 20
    assert not house.heard("messages/didAppend")
    assert house.value("sessions", "260301-long-road")["messageCount"] == 4500
    await house.close()
