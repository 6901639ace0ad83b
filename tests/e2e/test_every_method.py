"""Every method of the registry by every way in: carried out once well, and refused for each kind of mistake.

A method that is added must get its line in `WELL`; what can be wrong with its params follows from its class.
"""

from __future__ import annotations

import json
import types
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin
from urllib.parse import parse_qsl, urlsplit

import attrs
import pytest

from craftd.model.nouns import NOUNS
from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol.codec import camel
from craftd.protocol.registry import METHODS, Method
from tests.authorisation_server import AuthorisationServer, serving
from tests.daemon import WAYS, Daemon
from tests.wire import PATIENCE, Failed, Wire

Connect = Callable[..., Awaitable[Wire]]
Params = dict[str, Any]
Prepare = Callable[["Scene"], Awaitable[Params]]

_numbers = count(1)
sign_in: AuthorisationServer
EXECUTOR = {"experimental": {"craft": {"roles": ["executor"]}}}
EARLY = {"daemon/hello", "daemon/stop"}
"""Served before `initialize` on the local socket."""


@attrs.define
class Scene:
    """Makes what a call is about. client: works with the workspace `ws`."""

    client: Wire
    daemon: Daemon
    name: str = attrs.field(factory=lambda: f"x-{next(_numbers)}")

    @property
    def key(self) -> str:
        return f"{self.name:->16}"

    def id_of(self, noun: str) -> Params:
        return {"id": self.name.replace("x-", "proj_")} if noun == "projects" else {"id": self.name}

    async def record(self, noun: str) -> str:
        """A new record of *noun*; its id."""
        made = await self.client.call(f"{noun}/create", {"value": VALUES[noun](self), **self.id_of(noun)})
        id: str = made["item"]["id"]
        return id

    async def session(self) -> str:
        return await self.record("sessions")

    async def transcript(self) -> str:
        """A new session with three messages, m1 to m3."""
        session = await self.session()
        messages = [{"id": f"m{n}", "type": "user", "content": f"number {n}"} for n in (1, 2, 3)]
        await self.client.call("messages/append", {"session": session, "messages": messages})
        return session


VALUES: dict[str, Callable[[Scene], Params]] = {
    "sessions": lambda scene: {"name": "Plan the move"},
    "projects": lambda scene: {"name": f"Garden {scene.name}"},
    "sources": lambda scene: {
        "name": scene.name,
        "type": "api",
        "provider": "p",
        "api": {"baseUrl": "https://x.test/", "authType": "none"},
    },
    "skills": lambda scene: {"name": scene.name, "description": "Says when", "content": "Do it.\n"},
    "statuses": lambda scene: {"label": scene.name, "category": "open"},
    "labels": lambda scene: {"name": scene.name},
    "views": lambda scene: {"name": scene.name, "expression": "hasUnread"},
    "connections": lambda scene: {"name": scene.name, "providerType": "anthropic", "authType": "api_key"},
    "workspaces": lambda scene: {"name": scene.name, "path": str(scene.daemon.base / scene.name)},
}
PATCHES: dict[str, Params] = {
    "sessions": {"set": {"name": "Another"}},
    "skills": {"set": {"description": "Another"}},
    "statuses": {"set": {"label": "Another"}},
}


async def nothing(scene: Scene) -> Params:
    return {}


async def position(scene: Scene) -> Params:
    return dict(await scene.client.call("daemon/sync", {"workspace": "ws"}))


def five(noun: str) -> dict[str, Prepare]:
    """What the five verbs of *noun* take."""

    async def create(scene: Scene) -> Params:
        return {"value": VALUES[noun](scene), "key": scene.key, **scene.id_of(noun)}

    async def one(scene: Scene) -> Params:
        return {"id": await scene.record(noun)}

    async def update(scene: Scene) -> Params:
        patch = PATCHES.get(noun, {"set": {"name": f"Another {scene.name}"}})
        return {"id": await scene.record(noun), "patch": patch, "key": scene.key}

    async def delete(scene: Scene) -> Params:
        return {"id": await scene.record(noun), "key": scene.key}

    verbs: dict[str, Prepare] = {"list": nothing, "get": one, "create": create, "update": update, "delete": delete}
    return {f"{noun}/{verb}": verbs[verb] for verb in verbs if f"{noun}/{verb}" in METHODS}


async def since(scene: Scene) -> Params:
    return {"workspace": "ws", "since": await position(scene)}


async def one_message(scene: Scene) -> Params:
    return {"session": await scene.transcript(), "id": "m2"}


async def of_session(scene: Scene) -> Params:
    return {"session": await scene.transcript()}


async def append(scene: Scene) -> Params:
    message = {"id": "m1", "type": "user", "content": "Where do we begin?"}
    return {"session": await scene.session(), "messages": [message], "key": scene.key}


async def changed_message(scene: Scene) -> Params:
    return {**await one_message(scene), "patch": {"set": {"content": "another"}}, "key": scene.key}


async def old_message(scene: Scene) -> Params:
    return {**await one_message(scene), "key": scene.key}


async def shorter(scene: Scene) -> Params:
    return {**await of_session(scene), "keep": 1, "key": scene.key}


def mark(scene: Scene) -> Params:
    return {"target": {"selectors": [{"type": "text-quote", "exact": scene.name}]}}


async def new_annotation(scene: Scene) -> Params:
    return {"session": await scene.transcript(), "message": "m2", "value": mark(scene), "key": scene.key}


async def old_annotation(scene: Scene) -> Params:
    place = {"session": await scene.transcript(), "message": "m2"}
    await scene.client.call("annotations/create", {**place, "id": "a1", "value": mark(scene)})
    return {**place, "id": "a1", "key": scene.key}


async def other_annotation(scene: Scene) -> Params:
    return {**await old_annotation(scene), "patch": {"set": {"status": "resolved"}}}


async def another_session(scene: Scene) -> Params:
    return {"session": await scene.transcript(), "value": {"name": "Same"}, "key": scene.key}


async def a_deleted_session(scene: Scene) -> Params:
    id = await scene.session()
    await scene.client.call("sessions/delete", {"id": id})
    return {"id": id, "key": scene.key}


async def some_trash(scene: Scene) -> Params:
    id = (await a_deleted_session(scene))["id"]
    items = (await scene.client.call("sessions/listTrash"))["items"]
    return {"ids": [item["id"] for item in items if item["info"]["session"] == id], "key": scene.key}


async def what_is_old(scene: Scene) -> Params:
    await scene.client.call("sessions/create", {"id": scene.name, "value": {"isArchived": True, "archivedAt": 10**12}})
    return {"olderThanDays": 3000, "key": scene.key}


async def some_sessions(scene: Scene) -> Params:
    return {"sessions": [await scene.session()]}


async def read_sessions(scene: Scene) -> Params:
    return {**await some_sessions(scene), "key": scene.key}


async def one_session(scene: Scene) -> Params:
    return {"id": await scene.session(), "key": scene.key}


async def one_workspace(scene: Scene) -> Params:
    return {"rights": ["read"], "name": scene.name, "workspaces": ["ws"]}


async def old_token(scene: Scene) -> Params:
    return {"id": (await scene.client.call("tokens/create", {"rights": ["read"]}))["token"]["id"]}


async def relayed(scene: Scene) -> Params:
    return {"session": await scene.session(), "event": {"type": "text_delta", "delta": "We"}}


async def blob(scene: Scene) -> Params:
    return {"blob": (await scene.client.call("blobs/create", {"size": 3}))["blob"]}


async def some_bytes(scene: Scene) -> Params:
    made = await blob(scene)
    await scene.client.call("blobs/write", {**made, "offset": 0, "data": "YWJj"})
    return made


async def some_resources(scene: Scene) -> Params:
    return {"sources": [await scene.record("sources")], "skills": "all", "automations": "all"}


async def a_bundle(scene: Scene) -> Params:
    text = json.dumps({"version": 1, "exportedAt": 1, "resources": {"skills": []}, "sourceWorkspace": scene.name})
    return {"content": {"text": text}, "key": scene.key}


async def credential(scene: Scene) -> Params:
    id = f"llm_api_key::{scene.name}"
    await scene.client.call("credentials/set", {"id": id, "value": {"value": "hush"}})
    return {"id": id}


async def new_credential(scene: Scene) -> Params:
    return {"id": f"llm_oauth::{scene.name}", "value": {"value": "hush"}, "key": scene.key}


async def old_credential(scene: Scene) -> Params:
    return {**await credential(scene), "key": scene.key}


async def piece(scene: Scene) -> Params:
    return {**await blob(scene), "offset": 0, "data": "YWJj"}


async def file(scene: Scene) -> Params:
    path = f"{scene.name}.txt"
    await scene.client.call("files/write", {"path": path, "content": {"text": "Where do we begin?"}})
    return {"path": path}


async def new_file(scene: Scene) -> Params:
    return {"path": f"{scene.name}.txt", "content": {"text": "Here."}, "key": scene.key}


async def old_file(scene: Scene) -> Params:
    return {**await file(scene), "key": scene.key}


async def a_sign_in(scene: Scene) -> Params:
    declared = {"authorizationUrl": f"{sign_in.url}/authorize", "tokenUrl": f"{sign_in.url}/token", "clientId": "known"}
    block = {"baseUrl": sign_in.url, "authType": "oauth", "oauth": declared}
    value = {"name": scene.name, "type": "api", "provider": "p", "api": block}
    made = await scene.client.call("sources/create", {"value": value, "id": scene.name})
    return {"source": made["item"]["id"], "callbackPort": 6477}


async def signed_out(scene: Scene) -> Params:
    return {"source": (await a_sign_in(scene))["source"]}


async def a_folder_to_try(scene: Scene) -> Params:
    value = {"name": scene.name, "type": "local", "provider": "p", "local": {"path": "/"}}
    made = await scene.client.call("sources/create", {"value": value, "id": scene.name})
    return {"id": made["item"]["id"]}


async def a_flow(scene: Scene) -> Params:
    return {"flow": (await scene.client.call("oauth/start", await a_sign_in(scene)))["flow"]}


async def an_agreement(scene: Scene) -> Params:
    begun = await scene.client.call("oauth/start", await a_sign_in(scene))
    sign_in.codes["agreed"] = dict(parse_qsl(urlsplit(begun["authUrl"]).query))
    return {"flow": begun["flow"], "code": "agreed", "state": begun["state"]}


async def a_question(scene: Scene) -> Params:
    return {"mode": "safe", "tool": "Bash", "input": {"command": "ls"}}


async def rules(scene: Scene) -> Params:
    return {"workspace": "ws", "id": "workspace"}


async def other_rules(scene: Scene) -> Params:
    return {**await rules(scene), "patch": {"set": {"version": scene.name}}, "key": scene.key}


def another_id(noun: str) -> Prepare:
    async def prepare(scene: Scene) -> Params:
        return {"id": await scene.record(noun), "newId": f"new-{scene.name}", "key": scene.key}

    return prepare


def order(noun: str) -> Prepare:
    async def prepare(scene: Scene) -> Params:
        await scene.record(noun)
        items = (await scene.client.call(f"{noun}/list", {"limit": 500}))["items"]
        level = [item["id"] for item in items if "parent" not in item["value"]]
        return {"ids": level[::-1], "key": scene.key}

    return prepare


async def a_skill(scene: Scene) -> Params:
    return {"text": "---\nname: N\n---\n", "folder": scene.name}


async def some_automations(scene: Scene) -> Params:
    return {"text": "{}"}


async def a_task(scene: Scene) -> Params:
    return {"text": "id: a", "folder": scene.name}


async def of_project(scene: Scene) -> Params:
    return {"project": await scene.record("projects")}


async def new_memory(scene: Scene) -> Params:
    return {**await of_project(scene), "prepend": "- noted", "key": scene.key}


async def new_asset(scene: Scene) -> Params:
    asset = {"value": {"name": "plan.md"}, "content": {"text": "the plan"}}
    return {**await of_project(scene), **asset, "key": scene.key}


async def old_asset(scene: Scene) -> Params:
    new = await new_asset(scene)
    made = await scene.client.call("assets/create", {name: new[name] for name in ("project", "value", "content")})
    return {"project": new["project"], "id": made["item"]["id"], "key": scene.key}


async def new_attachment(scene: Scene) -> Params:
    attachment = {"value": {"name": "plan.md"}, "content": {"text": "the plan"}}
    return {"session": await scene.session(), **attachment, "key": scene.key}


async def one_attachment(scene: Scene) -> Params:
    new = await new_attachment(scene)
    made = await scene.client.call("attachments/create", {name: new[name] for name in ("session", "value", "content")})
    return {"session": new["session"], "id": made["item"]["id"]}


async def old_attachment(scene: Scene) -> Params:
    return {**await one_attachment(scene), "key": scene.key}


async def new_draft(scene: Scene) -> Params:
    return {"session": await scene.session(), "text": "half a", "key": scene.key}


async def old_draft(scene: Scene) -> Params:
    params = {"session": await scene.session()}
    await scene.client.call("drafts/update", {**params, "text": "half a"})
    return {**params, "key": scene.key}


async def one_plan(scene: Scene) -> Params:
    params = {"session": await scene.session(), "id": f"{scene.name}.md"}
    await scene.client.call("plans/create", {**params, "value": {"title": "Plan"}})
    return params


async def new_plan(scene: Scene) -> Params:
    return {"session": await scene.session(), "value": {"title": "Plan"}, "key": scene.key}


async def old_plan(scene: Scene) -> Params:
    return {**await one_plan(scene), "key": scene.key}


async def other_plan(scene: Scene) -> Params:
    return {**await one_plan(scene), "patch": {"set": {"text": "# Other"}}, "key": scene.key}


async def new_notes(scene: Scene) -> Params:
    return {"session": await scene.session(), "text": "noted", "key": scene.key}


async def moved(scene: Scene) -> Params:
    """The folder lies somewhere else already."""
    id, root = await scene.record("workspaces"), scene.daemon.base / scene.name
    root.rename(root.with_name(f"{scene.name}-moved"))
    return {"id": id, "path": f"{root}-moved", "key": scene.key}


async def other_settings(scene: Scene) -> Params:
    return {"workspace": "ws", "patch": {"set": {"later": scene.name}}, "key": scene.key}


async def other_preferences(scene: Scene) -> Params:
    return {"patch": {"set": {"notes": scene.name}}, "key": scene.key}


async def a_mention(scene: Scene) -> Params:
    return {"text": f"[skill:{scene.name}]", "session": await scene.session()}


async def of_a_session(scene: Scene) -> Params:
    return {"session": await scene.session()}


async def some_steps(scene: Scene) -> Params:
    return {"steps": [{"mention": ["/x/SKILL.md"]}, {"call": "Grep"}]}


async def an_expression(scene: Scene) -> Params:
    return {"expression": "hasUnread == true"}


async def a_file_name(scene: Scene) -> Params:
    return {"query": "config", "limit": 3}


async def a_text_for_people(scene: Scene) -> Params:
    return {"id": await scene.session(), "redact": True, "inline": True}


async def a_search(scene: Scene) -> Params:
    return {"query": "begin", "regex": True, "in": ["messages"], "matches": 2, "budgetMs": 1000}


WELL: dict[str, Prepare] = {
    "automations/validate": some_automations,
    **{name: prepare for noun in (*NOUNS, "workspaces") if noun in VALUES for name, prepare in five(noun).items()},
    "annotations/create": new_annotation,
    "annotations/delete": old_annotation,
    "annotations/update": other_annotation,
    "assets/create": new_asset,
    "assets/delete": old_asset,
    "assets/list": of_project,
    "attachments/create": new_attachment,
    "attachments/delete": old_attachment,
    "attachments/get": one_attachment,
    "attachments/list": of_session,
    "blobs/create": nothing,
    "blobs/delete": blob,
    "blobs/read": some_bytes,
    "blobs/write": piece,
    "bundles/export": some_resources,
    "bundles/import": a_bundle,
    "credentials/delete": old_credential,
    "credentials/list": nothing,
    "credentials/reveal": credential,
    "credentials/set": new_credential,
    "credentials/status": credential,
    "daemon/hello": nothing,
    "daemon/release": nothing,
    "daemon/status": nothing,
    "daemon/stop": nothing,
    "daemon/sync": nothing,
    "drafts/delete": old_draft,
    "drafts/get": of_session,
    "drafts/list": nothing,
    "drafts/update": new_draft,
    "events/read": since,
    "events/subscribe": nothing,
    "events/unsubscribe": nothing,
    "files/delete": old_file,
    "files/list": nothing,
    "files/read": file,
    "files/search": a_file_name,
    "files/write": new_file,
    "issues/list": nothing,
    "labels/rename": another_id("labels"),
    "labels/reorder": order("labels"),
    "memory/get": of_project,
    "memory/update": new_memory,
    "mentions/resolve": a_mention,
    "messages/append": append,
    "messages/delete": old_message,
    "messages/get": one_message,
    "messages/list": of_session,
    "messages/truncate": shorter,
    "messages/update": changed_message,
    "notes/get": of_session,
    "notes/update": new_notes,
    "oauth/cancel": a_flow,
    "oauth/complete": an_agreement,
    "oauth/revoke": signed_out,
    "oauth/start": a_sign_in,
    "permissions/check": a_question,
    "permissions/get": rules,
    "permissions/list": nothing,
    "permissions/update": other_rules,
    "plans/create": new_plan,
    "plans/delete": old_plan,
    "plans/get": one_plan,
    "plans/list": of_session,
    "plans/update": other_plan,
    "preferences/get": nothing,
    "preferences/update": other_preferences,
    "prerequisites/check": some_steps,
    "sessions/duplicate": another_session,
    "search/query": a_search,
    "sessions/emptyTrash": some_trash,
    "sessions/listTrash": nothing,
    "sessions/exportMarkdown": a_text_for_people,
    "sessions/markRead": read_sessions,
    "sessions/publish": relayed,
    "sessions/purge": what_is_old,
    "sessions/repair": one_session,
    "sessions/restore": a_deleted_session,
    "sessions/unread": nothing,
    "sessions/view": some_sessions,
    "skills/resolve": of_a_session,
    "settings/get": nothing,
    "settings/update": other_settings,
    "skills/validate": a_skill,
    "sources/test": a_folder_to_try,
    "statuses/rename": another_id("statuses"),
    "statuses/reorder": order("statuses"),
    "tasks/validate": a_task,
    "tokens/create": one_workspace,
    "tokens/list": nothing,
    "tokens/revoke": old_token,
    "views/evaluate": an_expression,
    "workspaces/move": moved,
}
"""What a call takes to be carried out."""


def test_every_method_is_here() -> None:
    assert set(WELL) == set(METHODS)


# What can be wrong


def wrong(type_: Any) -> Any:
    """A JSON value that is no *type_*; None where every value is one."""
    choices = get_args(type_) if get_origin(type_) in (Union, types.UnionType) else (type_,)
    kinds = {get_origin(choice) or choice for choice in choices}
    if Any in kinds:
        return None
    taken_by: list[tuple[Any, set[Any]]] = [
        ("5", {str, Literal}),
        (5, {int, float}),
        (False, {bool}),
        ({"x": 1}, {dict, *(kind for kind in kinds if attrs.has(kind))}),
        ([5], {tuple, list}),
    ]
    if Literal in kinds and str not in kinds:
        return "none of them"
    for value, takers in taken_by:
        if not kinds & takers:
            return value
    return None


NOBODY = {"projects": "proj_nobody", "permissions": "source:nobody", "plans": "nobody.md"}
"""Ids that no record has, of nouns whose ids have a form of their own."""


def mistakes(row: Method, well: Params) -> Iterator[tuple[Any, str, str | None]]:
    """Params that are wrong in one way: them, the error, and the path that it names (a prefix; None = no matter)."""
    attrs.resolve_types(row.params)
    yield "text", "InvalidParams", None
    yield [1], "InvalidParams", None
    yield {**well, "mispelt": 1}, "InvalidParams", "mispelt"
    for member in attrs.fields(row.params):
        name = camel(member.name)
        if (bad := wrong(member.type)) is not None:
            yield {**well, name: bad}, "InvalidParams", name
        if member.default is attrs.NOTHING:
            yield {key: value for key, value in well.items() if key != name}, "InvalidParams", name
            yield {**well, name: None}, "InvalidParams", name
    members = attrs.fields_dict(row.params)
    if row.scope == "global" and "workspace" in members:
        yield {**well, "workspace": "ws"}, "InvalidParams", "workspace"
    elif "workspace" in members:
        yield {**well, "workspace": "nowhere"}, "NotFound", None
    for parent in ("id", "session"):
        if parent in well and row.verb not in ("create", "set"):
            yield {**well, parent: NOBODY.get(row.noun, "nobody") if parent == "id" else "nobody"}, "NotFound", None
            if not (row.noun == "messages" and parent == "id"):
                yield {**well, parent: "../../etc"}, "NotFound InvalidParams", None
    if "expected_version" in members:
        yield {**well, "expectedVersion": "0123456789abcdef"}, "VersionConflict", None
    if "expected_tail" in members:
        yield {**well, "expectedTail": "another"}, "VersionConflict", None
    if row.mutates:
        yield {**well, "key": "short"}, "InvalidParams", "key"
    if "cursor" in members:
        yield {**well, "cursor": "?"}, "InvalidParams StaleCursor", None
        yield {**well, "filter": {"mispelt": 1}}, "InvalidParams", "filter"
        yield {**well, "sort": "-mispelt"}, "InvalidParams", "sort"
        yield {**well, "limit": 0}, "InvalidParams", "limit"
    if "patch" in members:
        yield {**well, "patch": {"mispelt": {}}}, "InvalidParams", "patch"
        yield {**well, "patch": {"unset": ["no pointer"]}}, "InvalidParams", "patch"


def another(well: Params) -> Params:
    """What makes another change of *well*."""
    if "value" in well:
        return {"value": {**well["value"], "name": "Another"}}
    if set(well) == {"content", "key"}:
        return {"content": {"text": "another"}}
    lists = ("sessions", "ids")
    if "olderThanDays" in well:
        return {"olderThanDays": 2 * well["olderThanDays"]}
    if "id" not in well and "patch" in well and "session" not in well:
        return {"patch": {"set": {"another": True}}}
    name = next(name for name in ("id", "session", "path", "prepend", *lists) if name in well)
    return {name: ["another"] if name in lists else "another"}


async def refused(client: Wire, method: str, params: Any) -> tuple[str, list[str]]:
    """The name of the error, and the paths it names."""
    try:
        answer = await client.call(method, params)
    except Failed as failure:
        return failure.name, [issue["path"] for issue in failure.error["data"].get("issues", ())]
    pytest.fail(f"{params} was answered: {answer}")


# The ways in


@pytest.fixture(scope="module", autouse=True)
def authorisation() -> Iterator[None]:
    global sign_in
    with serving() as sign_in:
        yield


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    root = daemon.base / "ws"
    root.mkdir()
    (root / "config.json").write_text('{"id": "ws_00000001", "name": "Every", "slug": "every"}')
    daemon.register(ws=root)
    daemon.start(*LISTENERS)
    return daemon


LISTENERS = ("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
every_way = pytest.mark.parametrize("way", WAYS)
every_method = pytest.mark.parametrize("method", sorted(WELL))


@every_way
@every_method
async def test_a_method_refuses_every_mistake_and_then_works(
    daemon: Daemon, connect: Connect, way: str, method: str
) -> None:
    row = METHODS[method]
    client = await connect(daemon, "ws", over=way, capabilities=EXECUTOR)
    well = await WELL[method](Scene(client, daemon))
    before = await client.call("daemon/sync", {"workspace": "ws"})
    for params, errors, path in mistakes(row, well):
        name, paths = await refused(client, method, params)
        assert name in errors.split(), params
        assert path is None or any(named.startswith(path) for named in paths), (params, paths)
    if not row.notification and method != "daemon/stop":
        client.send(method, well)  # without an id: nothing is done, nothing answered
    assert await client.call("daemon/sync", {"workspace": "ws"}) == before
    if method == "daemon/stop":
        return
    answer = await client.call(method, well)
    assert answer is None if row.result is None else isinstance(answer, dict)
    if "key" in well:
        again = await client.call(method, well)
        assert again["revision"] == answer["revision"]
        assert await refused(client, method, {**well, **another(well)}) == ("InvalidParams", ["key"])


@every_method
async def test_an_editor_gets_at_it_by_its_one_command(daemon: Daemon, connect: Connect, method: str) -> None:
    if method == "daemon/stop":
        return
    client = await connect(daemon, "ws", over="bridge", capabilities=EXECUTOR)
    well = await WELL[method](Scene(client, daemon))
    answer = await client.call("workspace/executeCommand", {"command": "craft.call", "arguments": [method, well]})
    assert answer is None if METHODS[method].result is None else isinstance(answer, dict)


@every_way
async def test_nothing_but_a_greeting_comes_before_initialize(daemon: Daemon, way: str) -> None:
    client = await daemon.dial(way)
    shown = {"token": daemon.token} if way == "tcp" else {}
    assert (await client.call("daemon/hello", shown))["configDir"] == str(Path(daemon.places.config).resolve())
    for method in WELL:
        if method not in EARLY:
            assert (await refused(client, method, {}))[0] == "NotInitialized", method
    await client.close()


@every_way
async def test_the_daemon_can_be_stopped(make_daemon: Callable[..., Daemon], way: str) -> None:
    daemon = make_daemon()
    daemon.register()
    daemon.start(*LISTENERS)
    client = await daemon.connect(over=way)
    assert await client.call("daemon/stop") is None
    await client.close()
    assert daemon.process is not None
    assert daemon.process.wait(PATIENCE) == 0
    daemon.process = None
