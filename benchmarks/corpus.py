"""Workspaces to measure on: sessions and messages as the Craft Agents app writes them, the same in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from craftd.model import json_text

LINE = 500
"""Bytes of a message line with its LF."""

START = 1_767_225_600_000
"""Milliseconds since 1970 of the first message; one follows every three seconds."""

_WORDS = "the tide table says that high water is at noon so the crane moves first and the pilot waits for the berth "


def message(number: int, kind: str = "assistant", *, size: int = LINE) -> dict[str, Any]:
    """Message *number* of a session; *size*: bytes of its line."""
    record: dict[str, Any] = {"id": f"msg-{number:08}", "content": "", "timestamp": START + number * 3000}
    if kind == "tool":
        record |= {"toolName": "Bash", "toolUseId": f"toolu_{number:08}", "toolStatus": "completed"}
        record |= {"toolInput": {"command": f"ls berth-{number}"}, "turnId": f"turn-{number // 22}"}
    record["type"] = kind
    room = size - 1 - len(json_text.dumps(record))
    text = (_WORDS * (room // len(_WORDS) + 1))[:room]
    return {**record, "content": text}


def header(id: str, count: int, number: int = 0) -> dict[str, Any]:
    """Line 1 of a session with *count* messages, about 1 KB."""
    last = START + max(count - 1, number) * 3000
    value: dict[str, Any] = {
        "id": id,
        "workspaceRootPath": "~/harbour",
        "sdkSessionId": f"5b1f0b0e-1c53-4e3c-9c1e-{number:012}",
        "sdkCwd": "{{SESSION_PATH}}",
        "createdAt": START,
        "lastUsedAt": last,
        "lastMessageAt": last,
        "name": f"Plan the move of berth {number}",
        "isFlagged": number % 7 == 0,
        "sessionStatus": ("todo", "needs-review", "done")[number % 3],
        "labels": ["harbour", f"priority::{number % 5}"],
        "hasUnread": False,
        "enabledSourceSlugs": ["port-register", "weather"],
        "permissionMode": "ask",
        "workingDirectory": "~/harbour/berths/north",
        "model": "claude-sonnet-4",
        "llmConnection": "default",
        "connectionLocked": True,
        "thinkingLevel": "medium",
        "projectId": f"proj_{number % 40:08}",
        "messageCount": count,
    }
    if count:
        value |= {"lastMessageRole": "assistant", "preview": _WORDS.strip()}
    value["tokenUsage"] = {
        "inputTokens": 120_000 + number, "outputTokens": 8_000, "totalTokens": 128_000 + number,
        "contextTokens": 64_000, "costUsd": 1.25, "cacheReadTokens": 90_000, "cacheCreationTokens": 12_000,
    }  # fmt: skip
    if count:
        value["lastFinalMessageId"] = f"msg-{count - 1:08}"
    return value


def records(count: int) -> list[dict[str, Any]]:
    """The first *count* messages: a user's, then the agent's."""
    return [message(number, "assistant" if number else "user") for number in range(count)]


def session(root: Path, id: str, count: int, number: int = 0) -> Path:
    """Make a session with *count* messages; its transcript."""
    folder = root / "sessions" / id
    folder.mkdir(parents=True)
    path = folder / "session.jsonl"
    lines = [json_text.dumps(header(id, count, number)), *map(json_text.dumps, records(count)), b""]
    path.write_bytes(b"\n".join(lines))
    return path


def sessions(root: Path, count: int, messages: int) -> None:
    """Make *count* sessions with the same few messages each."""
    body = b"".join(json_text.dumps(record) + b"\n" for record in records(messages))
    (root / "sessions").mkdir(parents=True)
    for number in range(count):
        id = session_id(number)
        folder = root / "sessions" / id
        folder.mkdir()
        head = json_text.dumps(header(id, messages, number))
        (folder / "session.jsonl").write_bytes(head + b"\n" + body)


def session_id(number: int) -> str:
    return f"260101-calm-river-{number + 2}"


def configuration(folder: Path, root: Path) -> None:
    """A configuration folder whose registry knows the workspace at *root* by the id `harbour`."""
    folder.mkdir(parents=True)
    root.mkdir(parents=True, exist_ok=True)
    settings = {"id": "ws_00000001", "name": "Harbour", "slug": "harbour", "createdAt": START, "updatedAt": START}
    (root / "config.json").write_text(json.dumps(settings, indent=2))
    entry = {"id": "harbour", "name": "Harbour", "rootPath": str(root), "createdAt": START}
    registry = {"workspaces": [entry], "activeWorkspaceId": "harbour", "activeSessionId": None}
    (folder / "config.json").write_text(json.dumps(registry, indent=2))
