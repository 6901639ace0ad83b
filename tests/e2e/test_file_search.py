"""Files by name over the wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
SESSION = "260704-quiet-fjord"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Iterator[Daemon]:
    daemon = make_daemon()
    root, outside = daemon.base / "ws", daemon.base / "outside"
    for path in (
        "docs/deep/er/Harbour.md", "docs/harbour-plan.txt", "harbour", ".harbour", "docs/.git/harbour", "harbour.key",
        "docs/Straße.txt", f"sessions/{SESSION}/data/harbour.csv",
    ):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    outside.mkdir()
    (outside / "harbour-secret.txt").write_text("x")
    (root / "harbour-link").symlink_to(outside)
    (root / "many").mkdir()
    for number in range(60):
        (root / "many" / f"{number:02}.txt").touch()
    daemon.register(ws=root)
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


async def found(client: Wire, query: str, **params: Any) -> list[str]:
    answer = await client.call("files/search", {"query": query, **params})
    assert answer["searched"] > 0
    return [item["id"] for item in answer["items"]]


async def test_the_nearest_files_come_first_and_nothing_hidden_or_outside(client: Wire) -> None:
    assert await found(client, "HARBOUR") == [
        "harbour",
        "harbour-link",
        "docs/harbour-plan.txt",
        "docs/deep/er/Harbour.md",
        f"sessions/{SESSION}/data/harbour.csv",
    ]
    assert await found(client, "strasse") == ["docs/Straße.txt"]
    assert await found(client, " ") == []


async def test_a_query_with_a_slash_is_looked_for_in_the_path(client: Wire) -> None:
    assert await found(client, "deep/er/") == ["docs/deep/er/Harbour.md"]
    assert await found(client, "docs/d", path="docs") == []


async def test_a_search_begins_in_a_folder_or_in_a_session(client: Wire) -> None:
    assert await found(client, "harbour", path="docs/deep") == ["docs/deep/er/Harbour.md"]
    assert await found(client, "harbour", session=SESSION) == [f"sessions/{SESSION}/data/harbour.csv"]


async def test_an_item_is_that_of_a_list(client: Wire) -> None:
    listed = await client.call("files/list", {"path": "docs", "filter": {"name": "harbour-plan.txt"}})
    answer = await client.call("files/search", {"path": "docs", "query": "plan", "partialResultToken": "p"})
    (part,) = [one["value"] for one in client.notifications("$/progress") if one["token"] == "p"]
    assert part["items"] == listed["items"]
    assert answer["items"] == []


async def test_a_search_ends_at_its_limit_and_says_so(client: Wire) -> None:
    answer = await client.call("files/search", {"query": ".txt", "path": "many"})
    assert (len(answer["items"]), answer["stopped"]) == (50, "limit")
    answer = await client.call("files/search", {"query": ".txt", "path": "many", "limit": 60})
    assert (len(answer["items"]), "stopped" in answer) == (60, False)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"path": "nowhere"}, "NotFound"),
        ({"path": "harbour"}, "InvalidState"),
        ({"path": ".harbour"}, "Forbidden"),
        ({"path": "harbour-link"}, "Forbidden"),
        ({"path": "../outside"}, "InvalidParams"),
        ({"limit": 0}, "InvalidParams"),
        ({"query": "x" * 1001}, "InvalidParams"),
    ],
)
async def test_what_cannot_be_searched_is_refused(client: Wire, params: dict[str, Any], error: str) -> None:
    with pytest.raises(Failed, match=error):
        await client.call("files/search", {"query": "x", **params})
