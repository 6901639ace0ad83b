"""A mirror equals what the daemon lists, whatever happens to records, files, daemons and connections."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from craftd.client import CallFailed, Client, ConnectionLost, Mirror, connect
from craftd.client.errors import NotFound
from craftd.model import json_text
from craftd.protocol import rendezvous
from tests.client.proxy import Proxy
from tests.daemon import Daemon
from tests.e2e.places import start_impatient
from tests.wire import PATIENCE
from tests.workspace.house import WHOLE_SAVES, line, message

SEEDS = range(int(os.environ.get("CRAFTD_MIRRORS", "3")))
"""More rounds: CRAFTD_MIRRORS=200 scripts/test tests/client/test_mirror.py."""
STEPS = 30

NOUNS = ("sessions", "projects", "sources", "skills", "statuses", "labels")
SESSIONS = [f"26030{number}-calm-cedar" for number in range(1, 4)]


def start(daemon: Daemon) -> None:
    """A daemon that gives up early on a client that does not read."""
    start_impatient(daemon, outbox__LAPSE_FRAMES=40)


async def start_again(daemon: Daemon) -> None:
    await asyncio.to_thread(start, daemon)


def socket_of(daemon: Daemon) -> str | None:
    card = rendezvous.read_card(daemon.places)
    return None if card is None else card.socket


def canonical(value: Any) -> str:
    return json_text.canonical(value).decode()


async def compare(mirror: Mirror, client: Client) -> None:
    """Raises: AssertionError where the mirror is not what *client* lists."""
    for noun in NOUNS:
        listed = {
            item["id"]: {name: item[name] for name in ("id", "version", "value")}
            async for item in client.pages(f"{noun}/list", {"workspace": "ws", "fields": ["*"]})
        }
        assert {**mirror.items(noun)}.keys() == listed.keys(), noun
        for id, item in listed.items():
            assert canonical(mirror.items(noun)[id]) == canonical(item), (noun, id)
    for session in SESSIONS:
        with suppress(CallFailed):  # deleted
            listed_messages = [
                item["value"]
                async for item in client.pages("messages/list", {"workspace": "ws", "session": session})
                if "raw" not in item.get("info", {})
            ]
            assert canonical(mirror.messages(session)) == canonical(listed_messages), session


class Storm:
    """Changes by two clients and somebody else, and what happens to daemon and connection; drawn from a seed."""

    def __init__(self, daemon: Daemon, proxy: Proxy, writers: list[Client], seed: int) -> None:
        self.daemon = daemon
        self.proxy = proxy
        self.writers = writers
        self.random = random.Random(seed)
        self.count = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.unforeseen: list[BaseException] = []
        self.last = (self.hold_up, self.cut, self.restart)[seed % 3]
        """What nothing comes after that could hide what it has done."""

    def next(self, what: str) -> str:
        self.count += 1
        return f"{what}-{self.count}"

    async def blow(self) -> None:
        steps = (
            [self.write] * 14 + [self.save] * 4 + [self.cut] * 3 + [self.hold_up, self.kill, self.restart, self.pause]
        )
        for _ in range(STEPS):
            await self.random.choice(steps)()
            await asyncio.sleep(0)
        await self.last()
        if self.tasks:
            await asyncio.wait(self.tasks)
        assert not self.unforeseen, self.unforeseen

    async def write(self) -> None:
        """Some changes at once; nobody waits for their answers."""
        for _ in range(self.random.randrange(1, 8)):
            task = asyncio.create_task(self._write(self.random.choice(self.writers)))
            self.tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        failure = task.exception()
        if failure is not None and not isinstance(failure, CallFailed | ConnectionLost):
            self.unforeseen.append(failure)

    async def _write(self, client: Client) -> None:
        session, kind = self.random.choice(SESSIONS), self.random.randrange(12)
        if kind < 4:
            content = "x" * self.random.choice([10, 10, 3_000, 300_000])
            one = {"id": self.next("m"), "type": "user", "content": content}
            await client.messages.append(workspace="ws", session=session, messages=[one])
        elif kind == 4:
            patch = {"set": {"note": self.next("note")}, "add": {"/tags": [self.next("tag")]}}
            await client.messages.update(workspace="ws", session=session, id=self._message(), patch=patch)
        elif kind == 5:
            await client.messages.delete(workspace="ws", session=session, id=self._message())
        elif kind == 6:
            await client.messages.truncate(workspace="ws", session=session, keep=self.random.randrange(20))
        elif kind == 7:
            label = await client.labels.create(workspace="ws", value={"name": self.next("Label")})
            if self.random.random() < 0.5:
                await client.labels.delete(workspace="ws", id=label["item"]["id"])
        elif kind == 8:
            made = await client.sessions.create(workspace="ws", value={"name": self.next("Session")})
            if self.random.random() < 0.5:
                await client.sessions.delete(workspace="ws", id=made["item"]["id"])
        elif kind == 9 and self.random.random() < 0.3:
            await client.sessions.delete(workspace="ws", id=session)
            await client.sessions.create(workspace="ws", id=session, value={"name": self.next("Again")})
        else:
            patch = {"set": {"name": self.next("Name")}, "add": {"/labels": [self.next("project::")]}}
            await client.sessions.update(workspace="ws", id=session, patch=patch)

    def _message(self) -> str:
        return f"m-{self.random.randrange(1, self.count + 2)}"

    async def save(self) -> None:
        """What another program does to the files."""
        root = self.daemon.base / "ws"
        path = root / "sessions" / self.random.choice(SESSIONS) / "session.jsonl"
        if self.random.random() < 0.3:
            folder = root / "skills" / f"skill-{self.random.randrange(3)}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "SKILL.md").write_text(f"---\nname: n\ndescription: {self.next('d')}\n---\nText\n")
        elif path.exists() and self.random.random() < 0.5:
            with path.open("ab") as file:
                file.write(line(message(self.next("theirs"))))
        elif path.exists():
            header, *lines = (json.loads(text) for text in path.read_bytes().split(b"\n") if text.strip())
            kept = [one for one in lines if self.random.random() < 0.9]
            saved = [{**header, "note": self.next("note")}, *kept, message(self.next("theirs"))]
            with suppress(FileNotFoundError):  # the session has just been deleted
                self.random.choice(WHOLE_SAVES)(path, b"".join(map(line, saved)))

    async def cut(self) -> None:
        self.proxy.cut()

    async def hold_up(self) -> None:
        """The mirror's client stalls while much happens: the daemon has to drop events, of all kinds."""
        session, client = self.random.choice(SESSIONS), self.writers[0]
        await self.writers[1].daemon.status()  # it is connected
        self.proxy.flowing.clear()
        for number in range(100):
            with suppress(CallFailed, ConnectionLost):
                one = {"id": self.next("m"), "type": "user", "content": "y" * 8_000}
                await client.messages.append(workspace="ws", session=session, messages=[one])
                if number % 4 == 0:
                    await self._write(client)
                    await client.labels.create(workspace="ws", value={"name": self.next("Label")})
        self.proxy.flowing.set()

    async def kill(self) -> None:
        await asyncio.to_thread(self.daemon.kill)
        await start_again(self.daemon)

    async def restart(self) -> None:
        await asyncio.to_thread(self.daemon.stop)
        await start_again(self.daemon)

    async def pause(self) -> None:
        """Let what is under way come to an end, of the changes at least."""
        if self.tasks:
            await asyncio.wait(self.tasks)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_mirror_equals_the_lists_after_anything(daemon: Daemon, seed: int) -> None:
    start(daemon)
    async with (
        asyncio.timeout(3 * PATIENCE),
        Proxy(daemon.base / "proxy", lambda: socket_of(daemon)) as proxy,
        connect(name="one", workspaces=[], url=proxy.url) as client,
        connect(daemon.url(), name="two", workspaces=[]) as writer,
    ):
        for session in SESSIONS:
            await writer.sessions.create(workspace="ws", id=session, value={"name": "Old"})
        async with Mirror(client, "ws", nouns=NOUNS, sessions=SESSIONS) as mirror:
            await Storm(daemon, proxy, [writer, client], seed).blow()
            there = await writer.daemon.sync(workspace="ws")
            await mirror.at(there["revision"])
            await compare(mirror, writer)


@pytest.fixture
async def client(daemon: Daemon) -> AsyncIterator[Client]:
    daemon.start()
    async with connect(daemon.url(), name="one", workspaces=["ws"]) as client:
        yield client


async def test_a_change_is_in_the_mirror_when_its_answer_is_there(client: Client) -> None:
    async with Mirror(client, "ws", nouns=["sessions"], sessions=["s-1"]) as mirror:
        assert mirror.messages("s-1") == []
        made = await client.sessions.create(id="s-1", value={"name": "One"})
        assert mirror.items("sessions")["s-1"]["value"]["name"] == "One"
        assert mirror.position == (made["epoch"], made["revision"])
        await client.messages.append(session="s-1", messages=[{"id": "m1", "type": "user", "content": "a"}])
        assert [message["id"] for message in mirror.messages("s-1")] == ["m1"]
        assert mirror.items("sessions")["s-1"]["value"]["messageCount"] == 1
        await client.messages.truncate(session="s-1", keep=0)
        assert mirror.messages("s-1") == []
        await client.sessions.delete(id="s-1")
        assert "s-1" not in mirror.items("sessions")


async def test_what_an_event_leaves_out_is_fetched(client: Client) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    async with Mirror(client, "ws", sessions=["s-1"]) as mirror:
        large = {"id": "m1", "type": "user", "content": "x" * 300_000}
        done = await client.messages.append(session="s-1", messages=[large])
        assert mirror.messages("s-1")[0]["omitted"] > 300_000
        await mirror.at(done["revision"])
        assert len(mirror.messages("s-1")[0]["content"]) == 300_000
        patch = {"set": {"content": "y" * 300_000}}
        changed = await client.messages.update(session="s-1", id="m1", patch=patch)
        assert mirror.messages("s-1")[0]["omitted"] > 300_000
        await mirror.at(changed["revision"])
        assert mirror.messages("s-1")[0]["content"] == "y" * 300_000


async def test_a_session_can_be_followed_later_and_no_longer(client: Client) -> None:
    await client.sessions.create(id="s-1", value={"name": "One"})
    await client.messages.append(session="s-1", messages=[{"id": "m1", "type": "user", "content": "a"}])
    async with Mirror(client, "ws", nouns=[]) as mirror:
        await mirror.follow("s-1")
        await client.messages.append(session="s-1", messages=[{"id": "m2", "type": "user", "content": "b"}])
        assert [message["id"] for message in mirror.messages("s-1")] == ["m1", "m2"]
        mirror.unfollow("s-1")
        with pytest.raises(KeyError):
            mirror.messages("s-1")


async def test_the_configuration_can_be_mirrored_too(client: Client, daemon: Daemon) -> None:
    async with Mirror(client, nouns=["workspaces"]) as mirror:
        made = await client.workspaces.create(value={"name": "Attic", "path": str(daemon.base / "attic")})
        await mirror.at(made["revision"])
        names = [item["value"]["name"] for item in mirror.items("workspaces").values()]
        assert sorted(names) == ["Attic", "Notes"]


async def test_changes_name_what_is_new_once(client: Client) -> None:
    async with Mirror(client, "ws", nouns=["sessions", "labels"], sessions=["s-1"]) as mirror:
        changes = mirror.changes()
        await client.sessions.create(id="s-1", value={"name": "One"})
        for number in range(3):
            await client.sessions.update(id="s-1", patch={"set": {"name": str(number)}})
        await client.labels.create(id="garden", value={"name": "Garden"})
        changed = await anext(changes)
        assert changed - {("messages", "s-1")} == {("sessions", "s-1"), ("labels", "garden")}


async def test_a_mirror_of_a_workspace_that_is_not_there_cannot_be_entered(client: Client) -> None:
    with pytest.raises(NotFound):
        async with Mirror(client, "nowhere"):
            pass


async def test_a_mirror_ends_with_its_client(client: Client) -> None:
    async with Mirror(client, "ws") as mirror:
        changes = mirror.changes()
        await client.close()
        with pytest.raises(ConnectionLost):
            await anext(changes)
        with pytest.raises(ConnectionLost):
            await mirror.at(1)
