"""Every field of a session's header over the wire: what is stored, what follows, what null does, what is refused."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from craftd.model.header_rules import ONCE
from craftd.model.sessions import PERSISTENT
from tests.daemon import Daemon
from tests.e2e.places import WORKSPACE, set_up
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Value = dict[str, Any]

PLAN = {"planPath": "/ws/p.md", "awaitingCompaction": True, "executionDispatched": False}
FREE: dict[str, tuple[Any, Any, Any]] = {
    "sdkSessionId": ("p-1", "p-2", 1),
    "sdkCwd": ("/srv/one", "/srv/two", 1),
    "lastUsedAt": (5, 6, "5"),
    "lastMessageAt": (5, 6, 5.5),
    "name": ("One", "Two", 1),
    "isFlagged": (True, False, "yes"),
    "sessionStatus": ("todo", "retired", 1),
    "labels": (["bug"], ["area", "bug"], "bug"),
    "lastReadMessageId": ("a1", "a2", 1),
    "hasUnread": (True, False, 1),
    "enabledSourceSlugs": (["one"], [], [1]),
    "permissionMode": ("safe", "allow-all", "execute"),
    "previousPermissionMode": ("safe", "ask", "explore"),
    "workingDirectory": ("/srv/one", "/srv/two", "srv"),
    "model": ("m-1", "m-2", 1),
    "llmConnection": ("hub", "", 1),
    "thinkingLevel": ("low", "xhigh", "think"),
    "sharedUrl": ("https://x.test/1", "https://x.test/2", 1),
    "sharedId": ("s1", "s2", 1),
    "pendingPlanExecution": (PLAN, {**PLAN, "executionDispatched": True}, []),
    "isArchived": (True, False, 0),
    "branchFromSdkSessionId": ("p-1", "p-2", 1),
    "branchFromSdkCwd": ("/srv/one", "/srv/two", 1),
    "branchFromSdkTurnId": ("t-1", "t-2", 1),
    "transferredSessionSummaryApplied": (False, True, "no"),
    "kanbanColumn": ("todo", "anything", 1),
    "taskNodeCount": (3, 4, "3"),
    "taskDraft": (True, False, 0),
}
"""Fields that a client may set, change and take away: a value, another one, and one that is none."""

NEVER = {
    "id": "another",
    "workspaceRootPath": "/elsewhere",
    "createdAt": 1,
    "taskRunId": "r-1",
    "taskNodeId": "n-1",
    **dict.fromkeys(ONCE, "x"),
    "hidden": True,
    "triggeredBy": {"automationName": "A"},
}
ELSEWHERE = {"connectionLocked", "archivedAt", "projectId", "parentSessionId"}
"""Have a test of their own."""


@pytest.fixture(scope="module")
def shared(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    set_up(daemon)
    daemon.start()
    return daemon


@pytest.fixture
async def client(shared: Daemon, connect: Connect) -> Wire:
    return await connect(shared, WORKSPACE)


@pytest.fixture
def line_one(shared: Daemon) -> Callable[[str], Value]:
    def read(session: str) -> Value:
        path = shared.base / "ws" / "sessions" / session / "session.jsonl"
        first: Value = json.loads(path.read_bytes().partition(b"\n")[0])
        return first

    return read


async def create(client: Wire, **value: Any) -> str:
    return str((await client.call("sessions/create", {"value": value}))["item"]["id"])


async def update(client: Wire, id: str, **patch: Any) -> Value:
    answer: Value = await client.call("sessions/update", {"id": id, "patch": patch})
    return answer


async def refused(client: Wire, method: str, params: Value) -> list[str]:
    """Paths of what is wrong."""
    with pytest.raises(Failed, match="ValidationFailed") as failed:
        await client.call(method, params)
    return [issue["path"].partition(".")[0] for issue in failed.value.error["data"]["issues"]]


def test_every_field_is_here() -> None:
    assert FREE.keys() | NEVER.keys() | ELSEWHERE == set(PERSISTENT)
    assert len(FREE) + len(NEVER) + len(ELSEWHERE) == len(PERSISTENT)


@pytest.mark.parametrize("name", FREE)
async def test_a_field_is_stored_changed_and_taken_away(
    client: Wire, line_one: Callable[[str], Value], name: str
) -> None:
    first, second, bad = FREE[name]
    session = await create(client, **{name: first})
    assert line_one(session)[name] == first
    changed = await update(client, session, set={name: second}, unset=[f"/{name}"])
    assert changed["item"]["value"][name] == line_one(session)[name] == second
    assert (await update(client, session, set={name: second}))["changed"] is False
    assert await refused(client, "sessions/update", {"id": session, "patch": {"set": {name: bad}}}) == [name]
    assert await refused(client, "sessions/create", {"value": {name: bad}}) == [name]
    await update(client, session, set={name: None})
    if name == "sdkCwd":
        return  # the view shows the working directory's
    assert name not in line_one(session), "null clears"
    assert (await update(client, session, unset=[f"/{name}"]))["changed"] is False


@pytest.mark.parametrize("name", NEVER)
async def test_a_fixed_field_refuses_another_value_and_null(
    client: Wire, line_one: Callable[[str], Value], name: str
) -> None:
    at_birth = {name: NEVER[name]} if name in ONCE or name.startswith("task") else {}
    session = await create(client, **at_birth)
    before = line_one(session)
    assert before.get(name) == at_birth.get(name, before.get(name))
    odd: Value = {"triggeredBy": {"automationName": "B"}, "createdAt": 2, "hidden": False}
    other = odd.get(name, "y")
    for wanted in (other, None):
        patch = {"set": {name: wanted}}
        assert await refused(client, "sessions/update", {"id": session, "patch": patch}) == [name]
    assert await refused(client, "sessions/update", {"id": session, "patch": {"unset": [f"/{name}"]}}) == [name]
    assert line_one(session) == before


async def test_archiving_says_when_and_bringing_back_forgets_it(client: Wire, line_one: Callable[[str], Value]) -> None:
    session = await create(client, name="One")
    await client.call("events/subscribe", {"workspace": WORKSPACE, "sessions": [session]})
    item = (await update(client, session, set={"isArchived": True}))["item"]
    at = item["value"]["archivedAt"]
    assert line_one(session)["archivedAt"] == at
    assert (await update(client, session, set={"isArchived": True}))["changed"] is False
    wrong = {"id": session, "patch": {"set": {"isArchived": False, "archivedAt": 7}}}
    assert await refused(client, "sessions/update", wrong) == ["archivedAt"]
    await update(client, session, set={"isArchived": False})
    assert line_one(session)["isArchived"] is False
    assert "archivedAt" not in line_one(session)
    told = [params["patch"] for params in client.notifications("sessions/didChange")]
    assert told == [
        {"set": {"isArchived": True, "archivedAt": at}},
        {"unset": ["/archivedAt"], "set": {"isArchived": False}},
    ]
    assert await refused(client, "sessions/create", {"value": {"archivedAt": 7}}) == ["archivedAt"]
    born = await create(client, isArchived=True, archivedAt=7)
    assert line_one(born)["archivedAt"] == 7


async def test_the_mode_before_is_kept_also_when_it_was_only_inherited(
    client: Wire, line_one: Callable[[str], Value]
) -> None:
    session = await create(client, name="One")
    inherited = (await client.call("sessions/get", {"id": session}))["item"]["info"]["effective"]["permissionMode"]
    other = "safe" if inherited["value"] != "safe" else "ask"
    await update(client, session, set={"permissionMode": other})
    assert line_one(session)["previousPermissionMode"] == inherited["value"]
    append = {"session": session, "messages": [], "set": {"permissionMode": "allow-all"}}
    await client.call("messages/append", append)
    assert line_one(session)["previousPermissionMode"] == other


async def test_a_session_is_marked_as_unread_and_read_by_its_field(
    client: Wire, line_one: Callable[[str], Value]
) -> None:
    session = await create(client, name="One")
    final = {"id": "a1", "type": "assistant", "content": "There."}
    await client.call("messages/append", {"session": session, "messages": [final]})
    await client.call("sessions/markRead", {"sessions": [session]})
    await update(client, session, set={"hasUnread": True})
    assert line_one(session)["hasUnread"] is True
    assert "lastReadMessageId" not in line_one(session)
    unread = await client.call("sessions/unread", {"workspace": WORKSPACE})
    assert session in unread["workspaces"][0]["sessions"]
    await update(client, session, set={"hasUnread": False})
    assert (line_one(session)["hasUnread"], line_one(session)["lastReadMessageId"]) == (False, "a1")


async def test_a_locked_connection_stays(client: Wire, line_one: Callable[[str], Value]) -> None:
    session = await create(client, connectionLocked=True, llmConnection="hub")
    for patch in ({"set": {"connectionLocked": False}}, {"set": {"llmConnection": None}}):
        [path] = await refused(client, "sessions/update", {"id": session, "patch": patch})
        assert path == next(iter(patch["set"]))
    assert line_one(session)["llmConnection"] == "hub"
    assert await refused(client, "sessions/create", {"value": {"connectionLocked": 1}}) == ["connectionLocked"]


async def test_a_pending_plan_outlives_other_changes(client: Wire, line_one: Callable[[str], Value]) -> None:
    session = await create(client, name="One")
    await update(client, session, set={"pendingPlanExecution": PLAN})
    await update(client, session, set={"isFlagged": True})
    await client.call("messages/append", {"session": session, "messages": [{"type": "user", "content": "go"}]})
    assert line_one(session)["pendingPlanExecution"] == PLAN


async def test_a_cold_session_is_not_taken_for_an_empty_one(
    make_daemon: Callable[..., Daemon], connect: Connect, client: Wire
) -> None:
    """Nobody has read its messages yet: its folder for the provider is fixed all the same."""
    daemon = make_daemon()
    root = set_up(daemon)
    path = root / "sessions" / "260301-cold-one" / "session.jsonl"
    path.parent.mkdir(parents=True)
    header = {"id": "260301-cold-one", "createdAt": 1, "lastUsedAt": 1, "sdkCwd": "/srv/one", "messageCount": 0}
    path.write_text(json.dumps(header) + '\n{"id":"m1","content":"Hello","type":"user"}\n')
    daemon.start()
    cold = await connect(daemon, WORKSPACE)
    wrong = {"id": "260301-cold-one", "patch": {"set": {"sdkCwd": "/srv/two"}}}
    assert await refused(cold, "sessions/update", wrong) == ["sdkCwd"]
    await update(cold, "260301-cold-one", set={"workingDirectory": "/srv/two"})
    assert json.loads(path.read_bytes().partition(b"\n")[0])["sdkCwd"] == "/srv/one"


@pytest.mark.parametrize("name", ["Straße", "ПЛАН", "計画", "İstanbul", 'quote " and \\'])
async def test_text_finds_what_is_written_in_any_case_of_any_script(client: Wire, name: str) -> None:
    session = await create(client, name=f"About {name} again")
    for wanted in (name, name.upper(), name.casefold()):
        page = await client.call("sessions/list", {"filter": {"text": wanted}})
        assert session in [item["id"] for item in page["items"]], wanted


async def test_a_session_is_read_by_whoever_looks_and_unread_for_all(
    shared: Daemon, connect: Connect, client: Wire
) -> None:
    """Several viewers: one mark for everybody, and one who looks elsewhere changes nothing for the others."""
    session, other = await create(client, name="One"), await create(client, name="Two")
    first, second = await connect(shared, WORKSPACE), await connect(shared, WORKSPACE)
    await first.call("sessions/view", {"sessions": [session]})
    await second.call("sessions/view", {"sessions": [session, other]})
    await second.call("sessions/view", {"sessions": [other]})
    for one in (session, other):
        final = {"id": "a1", "type": "assistant", "content": "There."}
        await client.call("messages/append", {"session": one, "messages": [final]})
    await first.call("sessions/view", {"sessions": []})
    for one in (session, other):
        await client.call("messages/append", {"session": one, "messages": [{**final, "id": "a2"}]})
    found = {}
    for one in (session, other):
        value = (await client.call("sessions/get", {"id": one}))["item"]["value"]
        found[one] = (value.get("hasUnread", False), value["lastReadMessageId"])
    assert found == {session: (True, "a1"), other: (False, "a2")}
