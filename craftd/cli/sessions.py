"""Sessions for people: a list, one of them, and one as it goes on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from craftd.cli import door, text

STATES = ("all", "active", "inbox", "completed", "archived")

Item = dict[str, Any]


@click.command("ls")
@click.option("--state", type=click.Choice(STATES), default="active", help="Which ones (active: not archived).")
@door.in_workspace
@door.as_json
def ls(state: str, workspace: str | None, json: bool) -> None:
    """List sessions, the latest first."""
    params = {"filter": {"state": state}, "limit": 500}
    with door.connected() as client:
        scopes = door.scopes(client, workspace)
        found = [
            (scope, item) for scope in scopes for item in client.pages("sessions/list", {**params, "workspace": scope})
        ]
    if len(scopes) > 1:  # each came in its order
        found.sort(key=lambda pair: _last_used(pair[1]), reverse=True)
    if json:
        for scope, item in found:
            text.emit({"workspace": scope, **item}, one_line=True)
    else:
        text.table(("ID", "LAST", "MESSAGES", "STATUS", "", "NAME"), (_row(item) for _, item in found))


def _last_used(item: Item) -> float:
    """Milliseconds since 1970; 0 where the file has no time."""
    value = item["value"]
    at = value.get("lastMessageAt", value.get("lastUsedAt"))
    return at if isinstance(at, int | float) else 0


def _row(item: Item) -> tuple[str, ...]:
    value = item["value"]
    return (
        str(item["id"]),
        text.ago(value.get("lastMessageAt", value.get("lastUsedAt"))),
        str(value.get("messageCount", "")),
        str(value.get("sessionStatus", "")),
        " ".join(_marks(item)),
        str(value.get("name") or value.get("preview") or ""),
    )


def _marks(item: Item) -> Iterable[str]:
    value = item["value"]
    marks = {"isFlagged": "flagged", "hasUnread": "unread", "isArchived": "archived", "hidden": "hidden"}
    yield from (word for key, word in marks.items() if value.get(key) is True)
    if item.get("info", {}).get("damage"):
        yield "damaged"


@click.command()
@click.argument("id")
@click.option(
    "-n", "--messages", "count", type=click.IntRange(0, 500), default=20, help="How many of the last messages (20)."
)
@door.in_workspace
@door.as_json
def show(id: str, count: int, workspace: str | None, json: bool) -> None:
    """Show one session and its last messages."""
    with door.connected() as client:
        scope, answer = door.find_session(client, workspace, id, fields=["*"])
        item = answer["item"]
        messages = _last(client, scope, id, count)["items"] if count else []
    if json:
        text.emit({**item, "messages": messages}, one_line=True)
        return
    value = item["value"]
    labels = value.get("labels") or []
    text.say(f"{item['id']}  {value.get('name') or value.get('preview') or ''}")
    text.facts(
        [
            ("workspace", str(value.get("workspaceRootPath", scope))),
            ("status", ", ".join(filter(None, [str(value.get("sessionStatus") or ""), *_marks(item)]))),
            ("labels", ", ".join(map(str, labels)) if isinstance(labels, list) else str(labels)),
            ("messages", str(value.get("messageCount", ""))),
            ("last", text.clock(value.get("lastMessageAt"))),
            *(("damage", _damage(found)) for found in item.get("info", {}).get("damage", [])),
        ]
    )
    for message in messages:
        text.say()
        _print_message(message)


def _damage(found: Item) -> str:
    line = f" in line {found['line']}" if "line" in found else ""
    return f"{found.get('code')}{line} {found.get('message', '')}".rstrip()


@click.command()
@click.argument("id")
@click.option(
    "-n", "--messages", "count", type=click.IntRange(0, 500), default=10, help="How many of the last messages (10)."
)
@door.in_workspace
@door.as_json
def tail(id: str, count: int, workspace: str | None, json: bool) -> None:
    """Print the last messages of a session and then every new one, as it comes."""
    with door.connected() as client:
        scope, _ = door.find_session(client, workspace, id)
        # Subscribed first, then listed: what comes in between comes twice and is dropped by its revision.
        client.subscribe(scope, topics=["messages", "sessions"], sessions=[id])
        page = _last(client, scope, id, max(count, 1))
        seen = page["revision"]
        shown = page["items"][-count:] if count else []
        last = page["items"][-1]["id"] if page["items"] else None
        _print_messages(shown, json)
        for event in client.notifications():
            method, params = event["method"], event.get("params", {})
            if method == "events/didLapse":
                missed = _last(client, scope, id, 500)
                items, seen = _after(missed["items"], last), missed["revision"]
            elif params.get("revision", 0) <= seen:
                continue
            elif method == "messages/didAppend":
                items = [_whole(client, scope, id, message) for message in params["messages"]]
            elif method == "sessions/didDelete" and params.get("id") == id:
                raise click.ClickException(f"session {id} was deleted")
            else:
                continue
            _print_messages(items, json)
            last = items[-1]["id"] if items else last


def _last(client: door.Door, scope: str, id: str, count: int) -> Any:
    """The last *count* messages in the order of the transcript, as one page."""
    return client.call("messages/list", {"workspace": scope, "session": id, "direction": "backward", "limit": count})


def _after(items: list[Item], last: str | None) -> list[Item]:
    """Those of *items* that come after the one called *last*; all, if it is not among them."""
    ids = [item["id"] for item in items]
    return items[ids.index(last) + 1 :] if last in ids else items


def _whole(client: door.Door, scope: str, id: str, message: Item) -> Item:
    """The message of an event as an item; fetched if the event left its body out because of its size."""
    if "omitted" not in message.get("value", message):
        return message if "value" in message else {"id": message.get("id"), "value": message}
    found: Item = client.call("messages/get", {"workspace": scope, "session": id, "id": message["id"]})["item"]
    return found


def _print_messages(items: list[Item], json: bool) -> None:
    for item in items:
        if json:
            text.emit(item, one_line=True)
        else:
            _print_message(item)


def _print_message(item: Item) -> None:
    value = item["value"]
    tool = value.get("toolDisplayName") or value.get("toolName")
    text.say(" ".join(filter(None, [text.clock(value.get("timestamp")), str(value.get("type", "?")), str(tool or "")])))
    content = value.get("content")
    body = content if isinstance(content, str) else "" if content is None else repr(content)
    for found in item.get("info", {}).get("damage", []):
        text.say(f"  [{_damage(found)}]")
    for line in body.removesuffix("\n").split("\n") if body else ():
        text.say(f"  {line}")
