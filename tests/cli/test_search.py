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


def item(**more: Any) -> dict[str, Any]:
    name = {
        "noun": "sessions",
        "id": "260102-calm-river",
        "field": "name",
        "start": 8,
        "end": 12,
        "snippet": "Plan the move",
        "at": 9,
    }
    said = {"noun": "messages", "id": "m7", "field": "content", "type": "user", "start": 90, "end": 94, "at": 51}
    said["snippet"] = "😀" + "a" * 29 + "b" * 15 + "\nwe move\nthe berth"
    return {
        "noun": "sessions",
        "id": "260102-calm-river",
        "title": "Plan the move",
        "matches": [name, said],
        "count": 2,
        **more,
    }


def test_what_was_found_stands_below_its_session(fake: Behave, capsys: Capture) -> None:
    answer = {"items": [item(count=5)], "searched": 3, "of": 9, "stopped": "time", **AT}
    fake(answers={"workspaces/list": WORKSPACES, "search/query": answer})
    assert commands.run(["search", "move"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "260102-calm-river  Plan the move",
        "  sessions: Plan the move",
        f"  user m7: …{'a' * 10}{'b' * 15} we move the berth",
        "  and 3",
    ]
    assert printed.err == "craftd: ws_1: looked into 3 of 9 (time)\n"


def test_for_programs_it_is_one_item_a_line(fake: Behave, capsys: Capture) -> None:
    fake(
        answers={
            "workspaces/list": WORKSPACES,
            "search/query": {"items": [item(), item()], "searched": 2, "of": 2, **AT},
        }
    )
    assert commands.run(["search", "--json", "-r", "--in", "messages", "mo.e"]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line) for line in printed.out.splitlines()] == [{"workspace": "ws_1", **item()}] * 2
    assert printed.err == ""
