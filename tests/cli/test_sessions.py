from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from craftd.cli import commands

Behave = Callable[..., None]
Capture = pytest.CaptureFixture[str]

WORKSPACES = {"items": [{"id": "ws_1", "value": {"name": "Notes", "path": "/home/ann/notes"}}]}
AT = {"epoch": "k3f9", "revision": 10}
SUBSCRIBED = {"workspaces/get": {"item": WORKSPACES["items"][0], **AT}, "events/subscribe": {**AT, "replay": "none"}}


def session(id: str, **value: Any) -> dict[str, Any]:
    return {"id": id, "version": "9c1e", "value": {"id": id, **value}}


def message(id: str, content: str, **value: Any) -> dict[str, Any]:
    return {"id": id, "version": "1", "value": {"id": id, "type": "user", "content": content, **value}}


def event(method: str, revision: int, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"workspace": "ws_1", "epoch": "k3f9", "revision": revision, **params}}


def test_ls_prints_one_session_a_line_with_its_marks(fake: Behave, capsys: Capture) -> None:
    flagged = session("260102-calm-river", name="Plan\nthe move", sessionStatus="todo", messageCount=3, isFlagged=True)
    damaged = session("260102-amber-kite", preview="first words") | {"info": {"damage": [{"code": "torn-tail"}]}}
    fake(answers={"workspaces/list": WORKSPACES, "sessions/list": {"items": [flagged, damaged], **AT}})
    assert commands.run(["ls"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "260102-calm-river\t\t3\ttodo\tflagged\tPlan the move",
        "260102-amber-kite\t\t\t\tdamaged\tfirst words",
    ]


def test_ls_as_json_names_the_workspace_of_each(fake: Behave, capsys: Capture) -> None:
    item = session("260102-calm-river", name="\ud800")
    fake(answers={"workspaces/list": WORKSPACES, "sessions/list": {"items": [item], **AT}})
    assert commands.run(["ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"workspace": "ws_1", **item}


def test_ls_puts_the_sessions_of_several_workspaces_in_one_order(fake: Behave, capsys: Capture) -> None:
    both = {"items": [*WORKSPACES["items"], {"id": "ws_2", "value": {"name": "Attic", "path": "/home/ann/attic"}}]}
    fake(
        answers={"workspaces/list": both},
        byWorkspace={
            "ws_1": {"items": [session("new", lastMessageAt=3), session("old", lastMessageAt=1)], **AT},
            "ws_2": {"items": [session("middle", lastUsedAt=2), session("damaged")], **AT},
        },
    )
    assert commands.run(["ls"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["new", "middle", "old", "damaged"]


def test_show_prints_the_session_its_damage_and_its_last_messages(fake: Behave, capsys: Capture) -> None:
    item = session("260102-calm-river", name="Plan the move", sessionStatus="todo", labels=["home"], messageCount=2)
    item["info"] = {"damage": [{"code": "line-unreadable", "line": 4, "message": "no JSON"}]}
    messages = [message("m1", "one\ntwo"), message("m2", "", type="tool", toolName="Read")]
    fake(
        answers={
            "workspaces/list": WORKSPACES,
            "sessions/get": {"item": item, **AT},
            "messages/list": {"items": messages, **AT},
        }
    )
    assert commands.run(["show", "260102-calm-river"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "260102-calm-river  Plan the move",
        "workspace  ws_1",
        "status     todo, damaged",
        "labels     home",
        "messages   2",
        "damage     line-unreadable in line 4 no JSON",
        "",
        "user",
        "  one",
        "  two",
        "",
        "tool Read",
    ]


def test_what_has_another_type_than_it_should_is_shown_all_the_same(fake: Behave, capsys: Capture) -> None:
    item = session("odd", name=["a"], sessionStatus={"x": 1}, labels=5, lastMessageAt=10**400)
    fake(
        answers={
            "workspaces/list": WORKSPACES,
            "sessions/list": {"items": [item], **AT},
            "sessions/get": {"item": item, **AT},
            "messages/list": {"items": [message("m1", "", type="tool", toolName=["Read"])], **AT},
        }
    )
    assert commands.run(["ls"]) == 0
    assert capsys.readouterr().out == "odd\t\t\t{'x': 1}\t\t['a']\n"
    assert commands.run(["show", "odd"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "odd  ['a']",
        "workspace  ws_1",
        "status     {'x': 1}",
        "labels     5",
        "",
        "tool ['Read']",
    ]


def test_a_session_that_no_workspace_has_is_not_found(fake: Behave, capsys: Capture) -> None:
    fake(answers={"workspaces/list": {"items": []}})
    assert commands.run(["show", "260102-calm-river"]) == 1
    assert "no workspace is registered" in capsys.readouterr().err


def test_tail_prints_each_message_once_and_fetches_what_an_event_left_out(fake: Behave, capsys: Capture) -> None:
    fake(
        answers={
            "workspaces/list": WORKSPACES,
            **SUBSCRIBED,
            "sessions/get": {"item": session("s"), **AT},
            "messages/list": {"items": [message("m1", "old"), message("m2", "listed and announced")], **AT},
            "messages/get": {"item": message("m3", "too large for an event"), **AT},
        },
        events=[
            event("messages/didAppend", 10, session="s", index=1, messages=[{"id": "m2", "type": "user"}], count=2),
            event("messages/didAppend", 11, session="s", index=2, messages=[{"id": "m3", "omitted": 300_000}], count=3),
            event("sessions/didChange", 12, changes=[], patch={}),
            event("messages/didAppend", 13, session="s", index=3, messages=[message("m4", "new")["value"]], count=4),
            event("sessions/didDelete", 14, id="s"),
        ],
    )
    assert commands.run(["tail", "s", "-n", "1"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == ["user", "  listed and announced", "user", "  too large for an event", "user", "  new"]
    assert err == "craftd: session s was deleted\n"


def test_tail_goes_on_after_a_lapse_with_what_came_since(fake: Behave, capsys: Capture) -> None:
    fake(
        answers={
            "workspaces/list": WORKSPACES,
            **SUBSCRIBED,
            "sessions/get": {"item": session("s"), **AT},
            "messages/list": {"items": [message("m1", "old"), message("m2", "last")], **AT},
        },
        events=[event("events/didLapse", 10, reason="overflow"), event("sessions/didDelete", 14, id="s")],
    )
    assert commands.run(["tail", "s"]) == 1
    assert capsys.readouterr().out.split() == ["user", "old", "user", "last"]


def test_listen_prints_one_json_object_a_line_until_the_daemon_ends(fake: Behave, capsys: Capture) -> None:
    change = event("sessions/didCreate", 11, item=session("s", name="é"))
    fake(answers={"workspaces/list": WORKSPACES, **SUBSCRIBED}, events=[change], hangUp=True)
    assert commands.run(["listen", "-w", "ws_1", "-t", "sessions"]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [change]
    assert err == "craftd: Unavailable (1014): the daemon closed the connection\n"


def test_workspaces_are_listed_and_added_by_folder(fake: Behave, capsys: Capture) -> None:
    item = WORKSPACES["items"][0]
    fake(answers={"workspaces/list": WORKSPACES, "workspaces/create": {"item": item, **AT}})
    assert commands.run(["workspaces"]) == 0
    assert commands.run(["workspaces", "add", "/home/ann/notes"]) == 0
    assert capsys.readouterr().out.splitlines() == ["ws_1\tNotes\t/home/ann/notes", "ws_1  /home/ann/notes"]


def test_a_folder_with_other_files_is_told_with_the_option_that_takes_it(fake: Behave, capsys: Capture) -> None:
    refused = {"code": 1004, "message": "say adopt: true",
               "data": {"code": "InvalidState", "state": "not-empty", "allowed": ["adopt"]}}  # fmt: skip
    fake(errors={"workspaces/create": refused})
    assert commands.run(["workspaces", "add", "/home/ann/music"]) == 1
    assert "--adopt makes it one" in capsys.readouterr().err


def test_an_empty_path_is_not_the_working_directory(fake: Behave, capsys: Capture) -> None:
    assert commands.run(["workspaces", "add", ""]) == 2
    assert "PATH is empty" in capsys.readouterr().err
