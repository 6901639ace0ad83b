"""A session as people read it."""

from __future__ import annotations

from typing import Any

import pytest

from craftd.model.markdown import fenced, head, message

AT = 1772874000000


def shown(type: str, content: str = "hello", *, tools: bool = False, **more: Any) -> str:
    return message({"id": "m", "content": content, "timestamp": AT, **more, "type": type}, tools=tools)


def test_a_document_begins_with_what_the_session_is() -> None:
    value = {"name": "Tides\nand ebbs", "createdAt": AT, "sessionStatus": "done", "labels": ["a", "b::2"]}
    assert head(value, "260307-a-b") == (
        "# Tides and ebbs\n\nSession `260307-a-b`, begun 2026-03-07 09:00 UTC, status done, labels a, b::2\n"
    )
    assert head({"preview": "see"}, "x").startswith("# see\n")
    assert head({"createdAt": 1e300}, "x") == "# x\n\nSession `x`\n"


def test_what_was_said_stands_under_who_said_it() -> None:
    assert shown("user", "*why*?\n") == "\n## User · 2026-03-07 09:00 UTC\n\n*why*?\n"
    assert shown("assistant", timestamp=None) == "\n## Assistant\n\nhello\n"
    assert shown("assistant", isIntermediate=True).startswith("\n### Assistant")
    assert shown("plan").startswith("\n## Plan")
    assert shown("info", "a\nb") == "\n> a\n> b\n"
    assert "### Error: No key · " in shown("error", errorTitle="No key", errorDetails=["one", 2])
    assert "- one" in shown("error", errorDetails=["one", 2])
    assert "Signing in to Tracker: pending" in shown("auth-request", authSourceName="Tracker", authStatus="pending")
    assert "### future" in shown("future")


@pytest.mark.parametrize(("type", "more"), [("status", {}), ("user", {"hidden": True}), ("info", {"content": " "})])
def test_what_nobody_sees_is_left_out(type: str, more: Any) -> None:
    assert shown(type, **more) == ""


def test_a_tool_is_named_and_told_whole_if_that_is_wanted() -> None:
    call = {
        "toolName": "Read", "toolStatus": "completed", "toolIntent": "look", "toolInput": {"path": "a"},
        "toolResult": "x ``` y",
    }  # fmt: skip
    brief, full = shown("tool", "", **call), shown("tool", "", tools=True, **call)
    assert brief == "\n### Tool Read: completed · 2026-03-07 09:00 UTC\n\nlook\n"
    assert full.startswith(brief.rstrip("\n"))
    assert '```json\n{\n  "path": "a"\n}\n```' in full
    assert "````\nx ``` y\n````" in full
    assert "Tool Read: failed" in shown("tool", "", **{**call, "isError": True})


def test_notes_and_attachments_come_with_their_message() -> None:
    target = {"selectors": [{"type": "text-quote", "exact": "hel\nlo"}]}
    notes = [
        {"body": [{"type": "note", "text": "why?"}], "target": target},
        {"body": [{"type": "highlight"}]},
        {"body": [{"type": "note", "text": "gone"}], "deletedAt": 1},
        "odd",
    ]
    text = shown("user", attachments=[{"name": "a.png", "storedPath": "./attachments/a.png"}, 3], annotations=notes)
    assert text.endswith("\nhello\n\n- Attachment: a.png (`./attachments/a.png`)\n\n> **Note** on “hel lo”: why?\n")


def test_a_code_block_holds_any_text() -> None:
    assert fenced("a") == "```\na\n```"
    assert fenced("`````") == "``````\n`````\n``````"


@pytest.mark.parametrize("value", [None, 3, [], {}, "x"])
def test_odd_members_harm_nothing(value: Any) -> None:
    for type in ("user", "tool", "error", "auth-request", "info", "plan", "odd"):
        record = dict.fromkeys(
            (
                "content",
                "timestamp",
                "attachments",
                "annotations",
                "toolInput",
                "toolResult",
                "errorDetails",
                "toolName",
            ),
            value,
        )
        message({**record, "type": type}, tools=True)
