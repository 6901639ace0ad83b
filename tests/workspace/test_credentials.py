"""The credential file inside the global scope: what others do to it meanwhile, and what listeners are told."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from craftd.errors import Corrupt, CraftdError, InvalidState, NotFound, ReadOnly, Undecryptable
from craftd.model import json_text
from craftd.model import patch as patches
from craftd.model.credentials import MARK
from craftd.store import vault
from craftd.store.machine import Machine
from craftd.store.vault import FILE, Header, Keys, load, save
from craftd.workspace.credentials import DeleteCredential, Reveal, SetCredential, identity_of
from craftd.workspace.guard import Guard
from tests.workspace.house import CLIENT, House

MACHINE = Machine(ids=("feedface",), host="host", user="ada", home="/home/ada")
OTHER = Machine(ids=("another",), host="host", user="bob", home="/home/bob")
X = "source_bearer::ws::x"
K = "llm_api_key::k"

GOLDEN = Path(__file__).parents[1] / "golden" / "credentials"

Entries = dict[str, Any]


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(vault, "ROUNDS", 1)
    monkeypatch.setattr(vault, "ABSENCE_MS", 0)
    house = House.make(tmp_path, machine=lambda: MACHINE)
    await house.open()
    yield house
    await house.close()


def rewrite(house: House, change: Any, machine: Machine = MACHINE) -> None:
    """What another program does: read, *change* the entries, write."""
    path, keys = house.config / FILE, Keys(lambda: machine)
    content = load(path, keys)
    entries = dict(content.entries)
    change(entries)
    payload = content.opened.payload if content.opened else {"version": 1, "metadata": {"createdAt": 1, "updatedAt": 1}}
    header = content.header if content.opened else Header(random.randbytes(32))
    path.unlink(missing_ok=True)
    save(path, vault.Content(), header, {**payload, "credentials": entries}, keys)


def stored(house: House) -> Entries:
    return load(house.config / FILE, Keys(lambda: MACHINE)).entries


async def put(house: House, id: str, value: str, **more: Any) -> Any:
    identity = identity_of(id)
    assert identity is not None
    commit = SetCredential(origin=CLIENT, id=id, identity=identity, value={"value": value}, **more)
    return (await house.home.commit(commit)).answer


async def drop(house: House, id: str) -> None:
    await house.home.commit(DeleteCredential(origin=CLIENT, id=id))


async def test_a_change_in_the_moment_of_ours_is_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(house, X, "one")
    real, times = vault.save, 0

    def between(*args: Any) -> Any:
        nonlocal times
        times += 1
        if times <= 3:
            monkeypatch.setattr(vault, "save", real)
            rewrite(house, lambda entries: entries.update({f"llm_api_key::t{times}": {"value": str(times)}}))
            monkeypatch.setattr(vault, "save", between)
        return real(*args)

    monkeypatch.setattr(vault, "save", between)
    await put(house, X, "two")
    assert times == 4
    values = {account: entry["value"] for account, entry in stored(house).items()}
    assert values == {X: "two", **{f"llm_api_key::t{n}": str(n) for n in (1, 2, 3)}}
    assert [event["origin"]["kind"] for event in house.heard("credentials")] == ["client", *["disk"] * 3, "client"]


ODD: list[Entries] = [
    {"value": "\ud800 half"}, {"value": "", "n": 10**40}, {"value": "x", "expiresAt": 1e300}, {"value": "\0\u2028"},
    {"value": "x" * 300_000}, {"value": "x", "\ud800": [None, 1e400]}, {"value": "x", "a": {"b": {"c": [[[]]]}}},
]  # fmt: skip


@pytest.mark.parametrize("entry", ODD, ids=lambda entry: repr(entry)[:30])
async def test_odd_values_are_kept_as_they_are(house: House, entry: Entries) -> None:
    identity = identity_of(K)
    assert identity is not None
    await house.home.commit(SetCredential(origin=CLIENT, id=K, identity=identity, value=entry))
    done = await house.home.commit(Reveal(origin=CLIENT, id=K))
    await house.home.sync()
    assert json_text.canonical(stored(house)[K]) == json_text.canonical(done.answer.entry)
    assert json_text.canonical(done.answer.entry) == json_text.canonical(json_text.loads(json_text.dumps(entry)))
    rewrite(house, lambda entries: entries.update({X: {**entry, "expiresAt": entry.get("n", 1e400)}}))
    await house.home.sync()
    assert house.home.vault.find(X) is not None


async def test_a_second_writer_takes_nothing_back(house: House) -> None:
    """The app reads the file once: of two of them, the second wrote without what the first had added."""
    recorded = json.loads((GOLDEN / "store-rules.json").read_bytes())["twoWriters"]
    assert recorded["steps"] == ["A writes one", "B reads", "A writes two", "B writes three"]
    names = {name: f"llm_api_key::{name}" for name in ("one", "two", "three")}
    rewrite(house, lambda entries: entries.update({names["one"]: {"value": "1"}}))
    await house.home.look_at_credentials()
    rewrite(house, lambda entries: entries.update({names["two"]: {"value": "2"}}))
    await put(house, names["three"], "3")
    assert sorted(stored(house)) == sorted(names.values())
    assert recorded["fileEndsWith"] == ["one", "three"]


async def test_a_file_that_others_could_read_is_closed_to_them(house: House) -> None:
    """The app leaves it open."""
    await put(house, K, "1")
    (house.config / FILE).chmod(0o644)
    await put(house, K, "2")
    assert (house.config / FILE).stat().st_mode & 0o777 == 0o600


async def test_changes_that_wait_together_share_one_writing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    real = vault.save
    monkeypatch.setattr(vault, "save", lambda *args: written.append(1) or real(*args))  # type: ignore[func-returns-value]
    await asyncio.gather(*(put(house, f"llm_api_key::k{n}", str(n)) for n in range(50)))
    assert len(stored(house)) == 50
    assert len(written) < 50


async def test_one_that_is_refused_does_not_take_the_others_along(house: House) -> None:
    answers = await asyncio.gather(
        put(house, X, "one"), put(house, "source_bearer::nobody::x", "two"), drop(house, "llm_oauth::none"),
        put(house, K, "three"), put(house, K, "four", expected=""), return_exceptions=True,
    )  # fmt: skip
    assert [type(answer).__name__ for answer in answers] == [
        "Updated", "NotFound", "NotFound", "Updated", "VersionConflict"
    ]  # fmt: skip
    assert {account: entry["value"] for account, entry in stored(house).items()} == {X: "one", K: "three"}


async def test_what_was_there_before_anybody_looked_is_no_news(house: House) -> None:
    await house.close()
    rewrite(house, lambda entries: entries.update({X: {"value": "old"}}))
    await house.open()
    await house.home.look_at_credentials()
    assert house.heard("credentials") == []
    assert house.home.vault.find(X) is not None


async def test_an_account_of_somebody_else_is_not_taken(house: House) -> None:
    rewrite(house, lambda entries: entries.update({X: {"value": "theirs", MARK: "gone"}}))
    with pytest.raises(InvalidState):
        await put(house, X, "mine")
    assert stored(house)[X]["value"] == "theirs"
    found = house.home.vault.find("source_bearer::gone::x")
    assert found is not None
    assert found.named.problem == "unregistered"


async def test_no_secret_stays_in_memory_after_its_round(house: House) -> None:
    await put(house, X, "hush-1")
    done = await house.home.commit(Reveal(origin=CLIENT, id=X))
    assert done.answer.entry == {"value": "hush-1"}
    home = house.home
    assert "hush-1" not in repr((home.vault.known, list(home.vault.index), home.vault.keys, done))
    published = [home.vault.known.stored, home.vault.known.named, [row.item().as_json() for row in home.vault.index]]
    assert "hush-1" not in str(published)


async def test_what_a_version_of_the_future_wrote_is_read_and_left(house: House) -> None:
    path = house.config / FILE
    payload = {"version": 2, "credentials": {X: {"value": "new"}}}
    save(path, vault.Content(), Header(bytes(32)), payload, Keys(lambda: MACHINE))
    before = path.read_bytes()
    with pytest.raises(CraftdError, match="version"):
        await put(house, X, "mine")
    done = await house.home.commit(Reveal(origin=CLIENT, id=X))
    assert (done.answer.entry, path.read_bytes()) == ({"value": "new"}, before)


async def test_sealing_anew_waits_while_somebody_else_may_write(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    without_id = Machine(ids=(), host=MACHINE.host, user=MACHINE.user, home=MACHINE.home)

    def refuse(guard: Guard) -> None:
        raise ReadOnly({"name": "app"})

    with monkeypatch.context() as patched:
        patched.setattr(Guard, "_take", refuse)
        rewrite(house, lambda entries: entries.update({X: {"value": "old"}}), without_id)
        before = (house.config / FILE).read_bytes()
        await house.home.look_at_credentials()
    assert (house.config / FILE).read_bytes() == before
    version = house.home.vault.index.get(X).named.stored.version  # type: ignore[union-attr]
    await house.home.look_at_credentials()
    assert (house.config / FILE).read_bytes() != before
    assert stored(house) == {X: {"value": "old"}}
    assert house.home.vault.index.get(X).named.stored.version == version  # type: ignore[union-attr]
    assert house.heard("credentials", "client") == []


# Everything at once


def mirrored(events: list[Any]) -> dict[str, tuple[str, Any]]:
    """What somebody knows who was told everything: id -> version and value."""
    known: dict[str, tuple[str, Any]] = {}
    for event in events:
        verb = event["method"].partition("/")[2]
        if verb == "didCreate":
            item = event["item"]
            assert item["id"] not in known
            known[item["id"]] = (item["version"], item["value"])
        elif verb == "didDelete":
            del known[event["id"]]
        else:
            for change in event["changes"]:
                _, value = known[change["id"]]
                known[change["id"]] = (change["version"], patches.apply(value, event["patch"]))
    return known


IDS = (X, "source_oauth::two::x", "source_bearer::three::x", K, "messaging_bearer::ws::lark")
ACCOUNTS = (X, "source_oauth::notes::x", "source_bearer::notes::x", K, "craft_oauth::global", "junk", "llm_oauth::a::b",
    "", "\ud800", "llm_oauth::", "source_bearer::::x",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_listeners_know_what_is_there(house: House, seed: int) -> None:
    chance = random.Random(seed)
    others = [{"id": "two", "rootPath": str(house.config.parent / "a" / "notes")},
              {"id": "three", "rootPath": str(house.config.parent / "b" / "notes")}]  # fmt: skip
    for other in others:
        Path(other["rootPath"]).mkdir(parents=True)
    first = {"id": "ws", "rootPath": str(house.root)}
    await house.home.look_at_credentials()

    def meddle(entries: Entries) -> None:
        account = chance.choice(ACCOUNTS)
        if chance.random() < 0.3:
            entries.pop(account, None)
        else:
            entries[account] = chance.choice([{"value": str(chance.random())}, {"value": 5}, "text", {}])

    for _ in range(40):
        what = chance.random()
        try:
            if what < 0.4:
                await put(house, chance.choice(IDS), str(chance.random()), refreshed=chance.random() < 0.2)
            elif what < 0.55:
                await drop(house, chance.choice(IDS))
            elif what < 0.75:
                rewrite(house, meddle)
            elif what < 0.8:
                (house.config / FILE).write_bytes(chance.randbytes(chance.choice([5, 200])))
            elif what < 0.85:
                rewrite(house, meddle, OTHER)
            elif what < 0.9:
                (house.config / FILE).unlink(missing_ok=True)
            else:
                house.register(first, *chance.sample(others, chance.randint(0, 2)))
        except (Corrupt, InvalidState, NotFound, Undecryptable):
            pass
        if chance.random() < 0.5:
            await house.home.sync()
    await house.home.sync()
    shown = {row.id: (row.named.stored.version, row.value) for row in house.home.vault.index}
    assert json.dumps(mirrored(house.heard("credentials")), sort_keys=True) == json.dumps(shown, sort_keys=True)
    content = load(house.config / FILE, Keys(lambda: MACHINE))
    assert sorted(content.entries) == sorted(row.named.stored.account for row in house.home.vault.index)
    assert content.state == house.home.vault.known.state
    told = [event["issues"] for event in house.heard("issues") if event["path"] == FILE]
    assert ([] if not told else told[-1]) == [issue.as_json() for issue in house.home.vault.known.issues]
