"""Any changes of a session's messages, ours and other programs': file, memory and a client's copy stay one and the
same, and lines that nobody changed keep their bytes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from attrs import define
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from craftd.model import json_text
from craftd.model import patch as patches
from craftd.model.portable import parse_line
from craftd.model.records import Record
from craftd.workspace import workspace as workspaces
from craftd.workspace.messages import AppendMessages
from tests.strategies import records as odd_members
from tests.workspace.house import CLIENT, SESSION, House, Mirror, line, message, rename_over, same

KINDS = ("user", "assistant", "tool", "status")

ours = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3)),
    st.tuples(st.just("edit"), st.integers(0, 99), st.booleans(), odd_members),
    st.tuples(st.just("delete"), st.integers(0, 99), st.booleans()),
    st.tuples(st.just("truncate"), st.integers(0, 12), st.booleans()),
)
theirs = st.sampled_from(["line one", "append", "drop", "change", "older", "torn", "restart"])
steps = st.lists(st.one_of(st.lists(ours, min_size=1, max_size=5), theirs), max_size=8)


@define(eq=False)
class Play:
    """expected: what our own changes must have made of the messages. older: the file as some program read it once."""

    house: House
    mirror: Mirror
    expected: list[Record]
    older: bytes = b""
    count: int = 0

    async def step(self, step: Any) -> None:
        before = self._lines()
        if isinstance(step, list):
            await asyncio.gather(*[work for one in step if (work := self._ours(*one)) is not None])
            if len(step) == 1:  # alone, it leaves the other lines as they are
                kept = [raw for raw in before if raw.endswith(b"}") and self._parsed(raw) in self.expected]
                assert [raw for raw in self._lines() if raw.endswith(b"}") and raw in before] == kept
        else:
            await self._theirs(step)
        await self.house.sync()
        self.mirror.follow(self.house.events)
        self.house.events.clear()
        await self.mirror.compare(self.house)
        there = await self.house.messages(SESSION)
        if isinstance(step, list):
            assert same(there, self.expected)
        self.expected = there
        on_disk = [self._parsed(raw) for raw in self._lines() if raw.endswith(b"}")]
        assert same(on_disk, there)
        value = self.house.value("sessions", SESSION)
        assert value["messageCount"] == len(there)
        finals = [one["id"] for one in there if one["type"] == "assistant"]
        assert value.get("lastFinalMessageId") == (finals[-1] if finals else None)

    def _lines(self) -> list[bytes]:
        return self.house.transcript().read_bytes().split(b"\n")[1:]

    def _parsed(self, raw: bytes) -> Record:
        record: Record = parse_line(raw, str(self.house.transcript().parent))
        return record

    def _new(self, name: str) -> Record:
        self.count += 1
        return {**message(f"{name}-{self.count}"), "type": KINDS[self.count % 4]}

    def _ours(self, what: str, *how: Any) -> Awaitable[Any] | None:
        house, expected = self.house, self.expected
        if what == "append":
            new = [self._new("ours") for _ in range(how[0])]
            expected += new
            return house.workspace.commit(AppendMessages(origin=CLIENT, labels=dict, id=SESSION, messages=new))
        if what == "truncate":
            keep = min(how[0], len(expected))
            after = expected[keep - 1]["id"] if how[1] and keep else None
            del expected[keep:]
            return house.truncate(SESSION, after=after) if after else house.truncate(SESSION, keep=keep)
        if not expected:
            return None
        at = how[0] % len(expected)
        name = f"#{at}" if how[1] else expected[at]["id"]
        if what == "delete":
            del expected[at]
            return house.take_out(SESSION, name)
        self.count += 1
        set = {"content": f"edited {self.count}", "extra": how[2]}
        expected[at] = patches.apply(expected[at], {"set": set})
        return house.edit(SESSION, name, **set)

    async def _theirs(self, what: str) -> None:
        house, path = self.house, self.house.transcript()
        now = path.read_bytes()
        first, *lines = now.split(b"\n")
        if what == "restart":
            await house.reopen()
            self.mirror = await Mirror.of(house)
        elif what == "append":
            path.write_bytes(now + (b"" if now.endswith(b"\n") else b"\n") + line(self._new("theirs")))
        elif what == "torn":
            path.write_bytes(now + b'{"id":"half","con')
        elif what == "older" and self.older:
            rename_over(path, self.older)
        elif what == "line one":
            self.count += 1
            rename_over(path, b"\n".join([first.replace(b'"name":"', b'"name":"%d' % self.count), *lines]))
        elif what == "drop":
            rename_over(path, b"\n".join([first, *lines[1:]]))
        elif what == "change" and lines and lines[0].endswith(b"}"):
            self.count += 1
            lines[0] = lines[0][:-1] + b',"x%d":1}' % self.count
            rename_over(path, b"\n".join([first, *lines]))
        self.older = now


async def _play(base: Path, steps: list[Any]) -> None:
    house = House.make(base)
    house.new_session(SESSION, "m1", "m2", "m3")
    await house.open()
    try:
        play = Play(house, await Mirror.of(house), await house.messages(SESSION))
        for step in steps:
            await play.step(step)
    finally:
        await house.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
@example([[("append", 2)], "line one", [("edit", 3, False, {})], [("delete", 0, False)], "older", [("append", 1)]])
@example([[("append", 3)], "line one", [("truncate", 1, False)], "older", "older", [("append", 1)]])
def test_file_memory_and_a_clients_copy_stay_the_same(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as base:
        asyncio.run(_play(Path(base), steps))


def test_a_large_session_is_no_different() -> None:
    """Rewrites are prepared beside."""
    above, workspaces.PREPARE_ABOVE = workspaces.PREPARE_ABOVE, 0
    burst = [
        ("append", 3),
        ("edit", 1, False, {"a": 1}),
        ("delete", 0, True),
        ("edit", 4, True, {}),
        ("truncate", 4, True),
    ]
    try:
        with tempfile.TemporaryDirectory() as base:
            asyncio.run(_play(Path(base), [burst, "line one", burst, "older", [("append", 1)], "restart", burst]))
    finally:
        workspaces.PREPARE_ABOVE = above


def test_untouched_lines_of_a_recorded_session_keep_their_bytes(tmp_path: Path) -> None:
    """Every spelling that the app and other programs have left in a file, around one line that is edited."""
    odd = [
        b'{"id":"a","content":"\\u00e9 \\ud83d \\/","timestamp":1.0,"type":"user"}',
        b'{ "type" : "tool" , "id" : "b", "content":"x", "n":1e400, "big":123456789012345678901234567890 }',
        b'{"content":"no id","type":"user","1":0,"0":1}',
        b'{"id":"c","content":"\xff","type":"user"}',
        b"not json at all",
        b'{"id":"d","content":"here","type":"user"}',
        b'{"id":"e","content":"{{SESSION_PATH}}/x","type":"plan"}\r',
        b'{"id":"f","content":"1","type":"user"}{"id":"g","content":"2","type":"user"}',
    ]

    async def edit() -> None:
        house = House.make(tmp_path)
        path = house.new_session(SESSION, "m1")
        path.write_bytes(path.read_bytes() + b"\n".join(odd) + b"\n")
        await house.open()
        before = path.read_bytes().split(b"\n")
        await house.edit(SESSION, "d", content="there")
        after = path.read_bytes().split(b"\n")
        at = before.index(odd[5])
        assert json_text.loads(after[at])["content"] == "there"
        assert [*after[1:at], *after[at + 1 :]] == [*before[1:at], *before[at + 1 :]]
        await house.take_out(SESSION, "d")
        assert path.read_bytes().split(b"\n")[1:] == [*before[1:at], *before[at + 1 :]]
        await house.close()

    asyncio.run(edit())
