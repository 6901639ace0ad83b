"""Searching over the wire."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
GOLDEN = Path(__file__).parents[1] / "golden/sessions"
DAY = 86_400_000
START = 1_767_225_600_000
BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 20


def session(root: Path, id: str, day: int, name: str, *messages: dict[str, Any], ascii_only: bool = False) -> Path:
    """A session as the app writes it, or as one whose writer escapes all but ASCII."""
    folder = root / "sessions" / id
    folder.mkdir(parents=True)
    at = START + day * DAY
    header = {
        "id": id,
        "createdAt": at,
        "lastUsedAt": at,
        "lastMessageAt": at,
        "name": name,
        "messageCount": len(messages),
    }
    lines = [json.dumps(line, ensure_ascii=ascii_only, separators=(",", ":")) for line in (header, *messages)]
    (folder / "session.jsonl").write_text("\n".join((*lines, "")))
    return folder


def said(id: str, content: str, type: str = "assistant", **more: Any) -> dict[str, Any]:
    return {"id": id, "content": content, "timestamp": START, **more, "type": type}


def fill(root: Path) -> None:
    calm = session(
        root, "260101-calm-river", 1, "Plan the Straße",
        said("m1", "Der Lampenschirm an der STRASSE.", "user"),
        said("m2", "日本語のテキスト and\na second line"),
        said("m3", "ls", "tool", toolName="Bash", toolResult='He said "Ahoi" in C:\\Temp', toolUseId="toolu_ahoi"),
        said("m4", f"![picture](data:image/png;base64,{BASE64}) of a lampenschirm", isIntermediate=True),
        said("m5", "see {{SESSION_PATH}}/plans/harbour.md"),
    )  # fmt: skip
    (calm / "plans").mkdir()
    (calm / "plans/harbour.md").write_text("# Harbour\n\nThe Leuchtturm first.\n")
    (calm / "notes.md").write_text("Ask for the leuchtturm key.\n")
    session(root, "260102-amber-kite", 2, "Lampenschirm", said("k1", "Grüße aus Łódź 😀"), ascii_only=True)
    (root / "sessions/260103-empty").mkdir()
    for number in range(40):
        session(
            root, f"260201-many-{number + 2}", 10 + number, f"Many {number}", said("n1", f"counting {number} squares")
        )
    for ignored in (".gitignore", ".ignore", ".rgignore"):
        (root / ignored).write_text("sessions/*\n")
    skill = root / "skills/lighthouse"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: Lighthouse\ndescription: Lamps\n---\n\nPolish the leuchtturm lamp.\n")


@pytest.fixture(scope="module", params=["ripgrep", "alone"])
def daemon(
    request: pytest.FixtureRequest, make_daemon: Callable[..., Daemon], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    if request.param == "ripgrep" and shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    daemon = make_daemon()
    root, golden = daemon.base / "ws", daemon.base / "golden"
    fill(root)
    shutil.copytree(GOLDEN / "workspace", golden)
    daemon.register(ws=root, golden=golden)
    if request.param == "alone":
        daemon.environment["PATH"] = str(tmp_path_factory.mktemp("nothing"))
    daemon.start()
    yield daemon
    daemon.end()


@pytest.fixture
async def client(daemon: Daemon, connect: Connect) -> Wire:
    return await connect(daemon, "ws")


async def search(client: Wire, query: str, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await client.call("search/query", {"workspace": "ws", "query": query, **params})
    return answer


async def places(client: Wire, query: str, **params: Any) -> list[tuple[str, Any, str]]:
    """(noun, id, what was found) of every match shown."""
    answer = await search(client, query, matches=20, **params)
    shown = []
    for item in answer["items"]:
        for match in item["matches"]:
            units = match["snippet"].encode("utf-16-le")
            length = match["end"] - match["start"]
            text = units[2 * match["at"] : 2 * (match["at"] + length)].decode("utf-16-le")
            shown.append((match["noun"], match["id"], text))
    return shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("strasse", [("sessions", "260101-calm-river", "Straße"), ("messages", "m1", "STRASSE")]),
        ("日本語", [("messages", "m2", "日本語")]),
        ("AND\nA SECOND", [("messages", "m2", "and\na second")]),
        ('"ahoi"', [("messages", "m3", '"Ahoi"')]),
        ("c:\\temp", [("messages", "m3", "C:\\Temp")]),
        ("łódź 😀", [("messages", "k1", "Łódź 😀")]),
        ("lampenschirm", [("sessions", "260102-amber-kite", "Lampenschirm"), ("messages", "m4", "lampenschirm"),
                          ("messages", "m1", "Lampenschirm")]),
        ("leuchtturm", [("plans", "harbour.md", "Leuchtturm"), ("notes", "260101-calm-river", "leuchtturm")]),
        ("-river/plans/harb", [("messages", "m5", "-river/plans/harb")]),
        ("{{session", []),
    ],
)  # fmt: skip
async def test_texts_are_found_wherever_they_are(client: Wire, query: str, found: list[tuple[str, str, str]]) -> None:
    assert await places(client, query) == found


@pytest.mark.parametrize(
    "query", ["timestamp", "toolUseId", "toolu_ahoi", "isIntermediate", "UhEU", "m1", "260102", "true"]
)
async def test_keys_ids_and_base64_never_match(client: Wire, query: str) -> None:
    assert (await search(client, query))["items"] == []


async def test_what_was_found_says_where(client: Wire) -> None:
    (item,) = (await search(client, "second line"))["items"]
    text = "日本語のテキスト and\na second line"
    assert item == {
        "noun": "sessions",
        "id": "260101-calm-river",
        "title": "Plan the Straße",
        "count": 1,
        "matches": [
            {"noun": "messages", "id": "m2", "field": "content", "start": 15, "end": 26, "snippet": text, "at": 15,
             "type": "assistant", "timestamp": START}
        ],
    }  # fmt: skip


async def test_only_the_nouns_that_were_asked_for_are_searched(client: Wire) -> None:
    assert [place[0] for place in await places(client, "leuchtturm", **{"in": ["notes"]})] == ["notes"]
    assert await places(client, "leuchtturm", **{"in": ["skills"]}) == [("skills", "lighthouse", "leuchtturm")]
    assert await places(client, "many 7", **{"in": ["messages"]}) == []


async def test_memory_and_guides_are_searched_when_asked_for(client: Wire, daemon: Daemon) -> None:
    project = (await client.call("projects/create", {"value": {"name": "Pier"}}))["item"]["id"]
    await client.call("memory/update", {"project": project, "text": "The pilot knows."})
    source = {
        "name": "Tide",
        "type": "api",
        "provider": "t",
        "api": {"baseUrl": "https://t.example", "authType": "none"},
        "guide": "Ask the pilot.",
    }
    made = await client.call("sources/create", {"value": source})
    assert await places(client, "pilot", **{"in": ["memory", "sources", "projects"]}) == [
        ("memory", project, "pilot"),
        ("sources", made["item"]["id"], "pilot"),
    ]
    assert await places(client, "pier", **{"in": ["projects"]}) == [("projects", project, "Pier")]
    await client.call("projects/delete", {"id": project})
    await client.call("sources/delete", {"id": made["item"]["id"]})


async def test_the_newest_session_comes_first_and_a_limit_can_be_gone_beyond(client: Wire) -> None:
    ids: list[str] = []
    more: dict[str, Any] = {}
    for _ in range(6):
        answer = await search(client, "squares", limit=9, **more)
        ids += [item["id"] for item in answer["items"]]
        if "nextCursor" not in answer:
            break
        assert answer["stopped"] == "limit"
        more = {"cursor": answer["nextCursor"]}
    assert ids == [f"260201-many-{number + 2}" for number in reversed(range(40))]
    assert "stopped" not in answer
    with pytest.raises(Failed) as failed:
        await search(client, "circles", **more)
    assert failed.value.error["data"]["issues"][0]["path"] == "cursor"


async def test_a_filter_narrows_the_sessions(client: Wire) -> None:
    answer = await search(client, "squares", filter={"text": "Many 7"})
    assert [item["id"] for item in answer["items"]] == ["260201-many-9"]
    assert answer["of"] == 1
    with pytest.raises(Failed, match="InvalidParams"):
        await search(client, "squares", filter={"nmae": "x"})


async def test_expressions_are_searched_for(client: Wire) -> None:
    assert await places(client, r"counting [78]\b", regex=True) == [
        ("messages", "n1", "counting 8"),
        ("messages", "n1", "counting 7"),
    ]
    with pytest.raises(Failed, match="no regular expression"):
        await search(client, "(", regex=True)


async def test_an_expression_may_match_in_the_path_of_the_session(client: Wire) -> None:
    assert await places(client, r"calm-river/plans/\w+", regex=True) == [("messages", "m5", "calm-river/plans/harbour")]


async def test_an_expression_that_takes_for_ever_ends_with_its_time(client: Wire) -> None:
    long = {"id": "long", "type": "user", "content": "a" * 5000 + "b"}
    made = (await client.call("sessions/create", {"value": {"name": "Long"}}))["item"]["id"]
    await client.call("messages/append", {"session": made, "messages": [long]})
    answer = await search(client, "(a+a+)+c", regex=True, budgetMs=100)
    assert answer["stopped"] == "time"
    await client.call("sessions/delete", {"id": made})


async def test_parts_are_told_in_order_before_the_answer(client: Wire) -> None:
    whole = await search(client, "squares")
    answer = await search(client, "squares", partialResultToken="p", workDoneToken="w")
    told = [one["value"] for one in client.notifications("$/progress") if one["token"] == "p"]
    assert len(told) > 1
    assert [item for part in told for item in part["items"]] == whole["items"]
    assert answer == {**whole, "items": []}
    work = [one["value"] for one in client.notifications("$/progress") if one["token"] == "w"]
    assert (work[0]["kind"], work[-1]["kind"]) == ("begin", "end")
    assert [one["percentage"] for one in work[1:-1]] == sorted(one["percentage"] for one in work[1:-1])


async def test_one_search_is_cancelled_and_that_of_another_client_goes_on(
    client: Wire, daemon: Daemon, connect: Connect
) -> None:
    long = {"id": "long", "type": "user", "content": "a" * 20_000 + "b"}
    made = (await client.call("sessions/create", {"value": {"name": "Long"}}))["item"]["id"]
    await client.call("messages/append", {"session": made, "messages": [long]})
    other = await connect(daemon, "ws")
    slow = client.ask("search/query", {"query": "(a+a+)+c", "regex": True, "budgetMs": 2000})
    second = other.ask("search/query", {"workspace": "ws", "query": "squares", "limit": 500})
    client.send("$/cancelRequest", {"id": slow})
    with pytest.raises(Failed, match="Cancelled"):
        await client.answer(slow)
    assert len((await other.answer(second))["items"]) == 40
    await client.call("sessions/delete", {"id": made})


async def test_searches_that_were_taken_back_leave_room_for_everything_else(
    client: Wire, daemon: Daemon, connect: Connect
) -> None:
    long = {"id": "long", "type": "user", "content": "a" * 20_000 + "b"}
    made = (await client.call("sessions/create", {"value": {"name": "Long"}}))["item"]["id"]
    await client.call("messages/append", {"session": made, "messages": [long]})
    slow = [client.ask("search/query", {"query": "(a+a+)+c", "regex": True, "budgetMs": 60_000}) for _ in range(20)]
    for id_ in slow:
        client.send("$/cancelRequest", {"id": id_})
    other = await connect(daemon, "ws")
    listed = other.ask("files/list", {"workspace": "ws", "path": "skills"})
    searched = other.ask("search/query", {"workspace": "ws", "query": "squares", "limit": 1})
    assert (await other.answer(listed))["total"] == 1
    assert len((await other.answer(searched))["items"]) == 1
    for id_ in slow:
        with pytest.raises(Failed, match="Cancelled"):
            await client.answer(id_)
    await client.call("sessions/delete", {"id": made})


async def test_blanks_find_nothing(client: Wire) -> None:
    for query in ("", "  \n"):
        answer = await search(client, query)
        assert (answer["items"], answer["searched"]) == ([], 0)


async def test_a_long_result_is_found_in_its_file_once(client: Wire) -> None:
    made = (await client.call("sessions/create", {"value": {"name": "Log"}}))["item"]["id"]
    result = "needle-a at the beginning\n" + "word " * 20_000 + "needle-b"
    message = {"id": "t1", "type": "tool", "content": "", "toolName": "Bash", "toolResult": result}
    await client.call("messages/append", {"session": made, "messages": [message]})
    for query in ("needle-a", "needle-b"):
        (item,) = (await search(client, query))["items"]
        (match,) = item["matches"]
        assert (match["id"], match["field"], match["start"]) == ("t1", "toolResult", result.index(query))
        read = await client.call("files/read", {"path": match["path"], "offset": match["start"], "length": len(query)})
        assert read["data"] == query
    await client.call("sessions/delete", {"id": made})


@pytest.mark.parametrize(
    ("query", "sessions"),
    [
        ("squared", ["260304-bold-river"]),
        ("forty-two", ["260302-calm-cedar"]),
        ("timestamp", []),
        ("テキスト", ["260303-misty-harbor"]),
        ("Working on", ["260304-bold-river"]),
    ],
)
async def test_recorded_sessions_are_searched_without_the_faults_of_the_app(
    daemon: Daemon, connect: Connect, query: str, sessions: list[str]
) -> None:
    client = await connect(daemon, "golden")
    answer = await search(client, query, workspace="golden", **{"in": ["messages"]})
    assert sorted(item["id"] for item in answer["items"]) == sessions
