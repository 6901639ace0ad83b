"""A file can hold any JSON: whatever stands where, its workspace opens, and every list answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from craftd.errors import CraftdError
from craftd.model import json_text
from craftd.model.sessions import COMPUTED, PERSISTENT
from tests.workspace.house import House, line, message

HUGE = int("9" * 4000)
ODD: list[Any] = [None, True, -1, 0.5, 1e300, HUGE, "", "\ud800", "../..", [], [[]], {}, {"id": {}}, ["x", 1, None]]
INFINITE = b"1e400"
"""JSON that no number can hold."""

MEMBERS = {
    "labels": ("id", "name", "color", "children", "valueType", "autoRules"),
    "statuses": ("id", "label", "color", "icon", "category", "isFixed", "isDefault", "order"),
    "sources": ("id", "name", "slug", "type", "enabled", "mcp", "api", "local", "createdAt", "updatedAt"),
    "projects": ("id", "slug", "name", "createdAt", "updatedAt", "archivedAt", "workingDirectory"),
    "messages": ("id", "type", "content", "timestamp", "toolName", "toolInput", "isIntermediate", "annotations"),
}
"""What the daemon looks at in each record."""
SETTINGS = ("id", "name", "slug", "defaults", "createdAt", "updatedAt", "localMcpServers")


def odd(names: Iterable[str], **sound: Any) -> Iterator[tuple[str, bytes]]:
    """Records in each of which one member is odd: a name for it, its JSON text."""
    for name in names:
        for number, value in enumerate(ODD):
            yield f"{name}-{number}", json_text.dumps({**sound, name: value})
        written = json_text.dumps({**sound, name: None})
        yield f"{name}-x", written.replace(b'"%b":null' % name.encode(), b'"%b":%b' % (name.encode(), INFINITE))


async def everything_answers(house: House) -> None:
    """Lists in every order and with filters, and what is said of the files."""
    workspace = house.workspace
    for index in (workspace.sessions, *(table.index for table in workspace.tables.values())):
        for name in sorted(index.fields - index.specials.keys()):
            for sort in (name, f"-{name}"):
                assert len(index.page(None, sort, ("id",), 500, None).items) == min(500, len(index))
                index.page(None, sort, ("*",), 500, None)
            for wanted in ({"gte": 1}, {"lte": "x"}, {"prefix": "a"}, {"contains": "a"}, "a", [1, None]):
                index.page({name: wanted}, None, None, 500, None)
    for special in (
        {"state": "inbox"},
        {"label": "a"},
        {"text": "a"},
        {"unread": True},
        {"status": "todo"},
        {"project": "p"},
    ):
        workspace.sessions.page(special, None, None, 500, None)
    workspace.issues()
    await house.sync()


async def test_any_value_in_line_1_of_a_session(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    names = sorted({*PERSISTENT, *COMPUTED})
    for id, header in odd(names, name="n", createdAt=1, lastMessageAt=2):
        folder = house.root / "sessions" / id
        folder.mkdir()
        (folder / "session.jsonl").write_bytes(header + b"\n" + line(message("m1")))
    await house.open()
    assert len(house.workspace.sessions) == len(names) * (len(ODD) + 1)
    await everything_answers(house)
    await house.reopen()  # from the cache
    await everything_answers(house)
    for name in names:
        for kind in ("x", ODD.index(HUGE), ODD.index([[]])):
            with suppress(CraftdError):  # what cannot be written again is refused
                await house.update("sessions", f"{name}-{kind}", name="Another")
    await everything_answers(house)
    await house.close()


async def test_any_value_in_a_message(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    for id, text in odd(MEMBERS["messages"], id="m1", type="assistant", content="x", timestamp=1):
        house.new_session(id)
        with house.transcript(id).open("ab") as file:
            file.write(text + b"\n")
    await house.open()
    await everything_answers(house)
    for row in list(house.workspace.sessions):
        await house.append(row.id, "m2")
        assert (await house.ids(row.id))[-1] == "m2"
    await everything_answers(house)
    await house.close()


async def test_any_value_in_a_small_file(tmp_path: Path) -> None:
    house = House.make(tmp_path)
    for room in ("labels", "statuses"):
        texts = [text for _, text in odd(MEMBERS[room], id="a", name="n", label="n")]
        path = house.root / room / "config.json"
        path.write_bytes(b'{"version":1,"%b":[%b]}' % (room.encode(), b",".join(texts)))
    for room in ("sources", "projects"):
        for id, text in odd(MEMBERS[room], id="a", slug="a", name="n", type="local"):
            (house.root / room / id).mkdir()
            (house.root / room / id / "config.json").write_bytes(text)
    await house.open()
    await everything_answers(house)
    for room in ("sources", "projects"):
        assert len(house.workspace.tables[room].documents) == len(MEMBERS[room]) * (len(ODD) + 1)
    await house.close()


async def test_any_value_in_the_settings_of_a_workspace(tmp_path: Path) -> None:
    for id, text in odd(SETTINGS, id="ws_00000001", name="n", slug="s"):
        house = House.make(tmp_path / id)
        (house.root / "config.json").write_bytes(text)
        await house.open()
        await everything_answers(house)
        await house.close()
