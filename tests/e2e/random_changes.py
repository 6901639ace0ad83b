"""Clients and a foreign program that change the sessions of one workspace at random."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.strict_reader import USAGE, Number, Reader, Session, counted_of, parsed, saved
from tests.wire import Failed, Wire

WORKSPACE = "work"
EXPECTED = {
    "AlreadyExists", "Busy", "InvalidState", "NotFound", "ValidationFailed", "VersionConflict", "TooLarge", "Forbidden",
}  # fmt: skip
"""What may be answered to a change that another one forestalled."""

LABELS = ("bug", "writing", "content", "priority::1", "project::x")
STATUSES = ("backlog", "todo", "needs-review", "done", "cancelled", "of-another-workspace")
TEXTS = (
    "", "plain", "two\nlines\r\nand\ttabs", "\u6f22\u5b57\u3068\u304b\u306a",
    "e\u0301 \U0001f469\u200d\U0001f680 \u2028\u2029\ufeff\x7f\x85",
    "half a character \ud83d", "{{SESSION_PATH}}/plans/typed.md and {{SESSION_PATH}}}", "\\u007b{SESSION_PATH}}",
    "<edit_request>no\nmore</edit_request> a < b and c > d [skill:a:b] [source:x] [file:/etc/hosts] end",
    '{"a": 1, "b": "quoted \\" and \\\\ back"}', "\x00\x01\x1f\x08\x0c", "x" * 149 + "\U0001f600 behind the cut",
    "{folder}/plans/a.md", "see {folder}-2/a and {folder}, {folder}.", '"{folder}"', "x" * 140 + " {folder}/deep/path",
)  # fmt: skip
TITLES = ("Ship it", "\u8a08\u753b", "a: b/c?", "..", "x" * 60)
NOTES = ("", "noted", "# \u6f22\u5b57\n\n- [x] a\r\n", "no end")
FILES = ("rooms.txt", "a/b:c?.md", "..", "\u6f22\u5b57 \U0001f600.csv", "no end", "x" * 300 + ".json")
NUMBERS = (0, -1, 0.5, 1e21, 1e-7, 123456789012345678901234567890, 5e-324, 1.7976931348623157e308, -0.0)

Change = Callable[[], tuple[str, dict[str, Any]] | None]


class World:
    """root: the workspace's folder. sessions: message ids by session, as far as anybody has heard."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.sessions: dict[str, list[str]] = {}
        self.deleted: list[str] = []
        self.appended: list[tuple[str, dict[str, Any]]] = []
        """Messages to append for what was stored."""
        self.answered: dict[str, int] = {}
        """How often each method did something."""
        self._made = 0

    # What is drawn

    def session(self) -> str:
        return self.random.choice(list(self.sessions) or ["260101-never-there"])

    def text(self, session: str) -> str:
        return self.random.choice(TEXTS).replace("{folder}", str(self.root / "sessions" / session))

    def long_text(self, session: str) -> str:
        return self.text(session) * self.random.choice((1, 1, 1, 40))

    def new_id(self) -> str:
        self._made += 1
        return f"msg-{self._made}-{self.random.randrange(36**6)}"

    def message(self, session: str) -> dict[str, Any]:
        kind = self.random.choice(("user", "assistant", "tool", "error", "status", "info", "warning"))
        made: dict[str, Any] = {"id": self.new_id(), "type": kind, "content": self.long_text(session)}
        if self.random.random() < 0.9:
            made["timestamp"] = 1_780_000_000_000 + self._made
        if kind == "tool":
            made |= {
                "toolName": self.random.choice(("Bash", "mcp__x/y", "Read")),
                "toolUseId": f"toolu_{self._made}",
                "toolInput": {"7": self.text(session), "path": "./a", "1": None, "n": self.random.choice(NUMBERS)},
                "toolResult": self.random.choice((self.long_text(session), "line of output\n" * 6_000)),
                "toolStatus": "completed",
            }
        if kind == "assistant":
            made["isIntermediate"] = self.random.random() < 0.5
        return made

    def member(self, session: str) -> tuple[str, Any]:
        """A field of line 1 with a value that it may have."""
        return self.random.choice(
            (
                ("name", self.text(session)),
                ("isFlagged", self.random.random() < 0.5),
                ("isArchived", self.random.random() < 0.3),
                ("labels", self.random.sample(LABELS, self.random.randrange(4))),
                ("sessionStatus", self.random.choice(STATUSES)),
                ("permissionMode", self.random.choice(("safe", "ask", "allow-all"))),
                ("thinkingLevel", self.random.choice(("off", "max"))),
                ("model", self.text(session)),
                ("kanbanColumn", self.random.choice(("todo", "later"))),
                ("workingDirectory", self.random.choice(("~", "~/code", "/tmp", str(self.root)))),
                ("tokenUsage", dict(zip(USAGE, self.random.choices(NUMBERS[:3], k=5), strict=True))),
                ("somethingNew", {"7": 1, "b": self.text(session), "0": [None, self.random.choice(NUMBERS)]}),
            )
        )

    # Changes: method and params

    def create(self) -> tuple[str, dict[str, Any]]:
        return "sessions/create", {"value": dict([self.member("260101-not-yet") for _ in range(3)])}

    def update(self) -> tuple[str, dict[str, Any]]:
        session = self.session()
        members = dict(self.member(session) for _ in range(self.random.randrange(1, 4)))
        if self.random.random() < 0.3:
            return "sessions/update", {"id": session, "patch": {"unset": [f"/{name}" for name in members]}}
        return "sessions/update", {"id": session, "patch": {"set": members}}

    def append(self) -> tuple[str, dict[str, Any]]:
        if self.appended:
            session, message = self.appended.pop()
            return "messages/append", {"session": session, "messages": [message]}
        session = self.session()
        messages = [self.message(session) for _ in range(self.random.randrange(1, 6))]
        more = {"set": dict([self.member(session)])} if self.random.random() < 0.2 else {}
        return "messages/append", {"session": session, "messages": messages, **more}

    def some_message(self) -> tuple[str, str] | None:
        session = self.session()
        known = self.sessions.get(session)
        return (session, self.random.choice(known)) if known else None

    def edit(self) -> tuple[str, dict[str, Any]] | None:
        if (place := self.some_message()) is None:
            return None
        session, id = place
        members = {"content": self.long_text(session), "somethingNew": self.random.choice(NUMBERS)}
        return "messages/update", {"session": session, "id": id, "patch": {"set": members}}

    def take_out(self) -> tuple[str, dict[str, Any]] | None:
        if (place := self.some_message()) is None:
            return None
        return "messages/delete", {"session": place[0], "id": place[1]}

    def truncate(self) -> tuple[str, dict[str, Any]] | None:
        if (place := self.some_message()) is None:
            return None
        if self.random.random() < 0.2:
            return "messages/truncate", {"session": place[0], "keep": 0}
        return "messages/truncate", {"session": place[0], "afterMessage": place[1]}

    def read(self) -> tuple[str, dict[str, Any]]:
        return "sessions/markRead", {"sessions": [self.session(), self.session()]}

    def delete(self) -> tuple[str, dict[str, Any]]:
        return "sessions/delete", {"id": self.session(), "permanent": self.random.random() < 0.5}

    def annotate(self) -> tuple[str, dict[str, Any]] | None:
        if (place := self.some_message()) is None:
            return None
        session, message = place
        selector = {"type": "text-quote", "exact": self.text(session)}
        body = [{"type": "note", "text": self.text(session)}, {"type": "highlight"}]
        return "annotations/create", {
            "session": session,
            "message": message,
            "value": {"target": {"selectors": [selector]}, "body": body, "meta": {"7": self.random.choice(NUMBERS)}},
        }

    def plan(self) -> tuple[str, dict[str, Any]]:
        session = self.session()
        return "plans/create", {
            "session": session,
            "value": {"title": self.random.choice(TITLES), "text": self.random.choice(NOTES)},
        }

    def note(self) -> tuple[str, dict[str, Any]]:
        session = self.session()
        return "notes/update", {"session": session, "text": self.random.choice(NOTES)}

    def branch(self) -> tuple[str, dict[str, Any]] | None:
        if (place := self.some_message()) is None:
            return None
        origin = {"session": place[0], "message": place[1]}
        return "sessions/create", {"value": {"name": self.text(place[0])}, "from": origin}

    def duplicate(self) -> tuple[str, dict[str, Any]]:
        return "sessions/duplicate", {"session": self.session()}

    def attach(self) -> tuple[str, dict[str, Any]]:
        about = {"name": self.random.choice(FILES)}
        return "attachments/create", {"session": self.session(), "value": about, "content": {"text": "12 rooms"}}

    def restore(self) -> tuple[str, dict[str, Any]] | None:
        return ("sessions/restore", {"id": self.random.choice(self.deleted)}) if self.deleted else None

    def empty(self) -> tuple[str, dict[str, Any]]:
        return "sessions/emptyTrash", {}

    CHANGES = (
        (append, 12), (update, 8), (edit, 4), (take_out, 2), (truncate, 1), (read, 2), (create, 3), (delete, 1),
        (annotate, 4), (plan, 1), (note, 1), (attach, 2), (restore, 0.5), (empty, 0.1),
        (branch, 0.5), (duplicate, 0.3),
    )  # fmt: skip

    # Those who change

    async def client(self, wire: Wire, changes: int) -> None:
        methods, weights = zip(*self.CHANGES, strict=True)
        for _ in range(changes):
            drawn = self.random.choices(methods, weights)[0](self)
            if drawn is None:
                continue
            method, params = drawn
            key = str(UUID(int=self.random.getrandbits(128)))
            try:
                result = await wire.call(method, {"workspace": WORKSPACE, "key": key, **params})
            except Failed as failure:
                if failure.name not in EXPECTED:
                    raise AssertionError(f"{method} {params}: {failure}") from failure
                if failure.name == "NotFound" and "session" not in params:
                    self.sessions.pop(params.get("id", ""), None)
                continue
            self.answered[method] = self.answered.get(method, 0) + 1
            self._heard(method, params, result)

    def _heard(self, method: str, params: dict[str, Any], result: dict[str, Any]) -> None:
        if method == "attachments/create":
            made = {"id": self.new_id(), "content": "", "type": "user", "attachments": [result["attachment"]]}
            self.appended.append((params["session"], made))
        elif (
            method in ("sessions/create", "sessions/duplicate", "sessions/restore", "sessions/update")
            and "item" in result
        ):
            self.sessions.setdefault(result["item"]["id"], [])
        elif method == "messages/append":
            known = self.sessions.setdefault(params["session"], [])
            known += [one["id"] for one in result["messages"]]
            del known[:-30]
        elif method == "sessions/delete":
            self.sessions.pop(params["id"], None)
            if not params["permanent"]:
                self.deleted.append(params["id"])

    async def somebody_else(self, saves: int) -> None:
        """A program that reads a file, changes something and saves it whole over the old one."""
        for _ in range(saves):
            await asyncio.sleep(self.random.random() / 20)
            file = self.root / "sessions" / self.session() / "session.jsonl"
            try:
                header, *messages = [parsed(line) for line in file.read_text("utf-8").split("\n")[:-1]]
            except OSError:
                continue
            if self.random.random() < 0.5:
                header["name"] = f"by hand {self.random.randrange(1000)}"
            else:
                made = {"id": self.new_id(), "content": "by hand", "timestamp": Number("1780000000000"), "type": "user"}
                messages.append(made)
            fresh = file.with_name(f".by-hand-{os.getpid()}")
            try:
                fresh.write_bytes(saved(header, messages, str(file.parent)))
                os.replace(fresh, file)
            except OSError:
                continue


async def as_listed(wire: Wire) -> dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every session's value and messages, as a client reads them."""
    found = {}
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = await wire.call("sessions/list", {"workspace": WORKSPACE, "fields": ["*"], **more})
        for item in page["items"]:
            found[item["id"]] = (item["value"], await _messages(wire, item["id"]))
        if (cursor := page.get("nextCursor")) is None:
            return found


async def _messages(wire: Wire, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = await wire.call("messages/list", {"workspace": WORKSPACE, "session": session, **more})
        found += [item["value"] for item in page["items"]]
        if (cursor := page.get("nextCursor")) is None:
            return found


def compared(read: dict[str, Session], listed: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]) -> list[str]:
    """Where a strict reading of the files and what a client was told differ."""
    problems = [f"{id}: only in one of them" for id in read.keys() ^ listed.keys()]
    for id in read.keys() & listed.keys():
        session, (value, messages) = read[id], listed[id]
        stored = [one["id"] for one in session.messages]
        if stored != [one["id"] for one in messages]:
            problems.append(f"{id}: messages {stored}, not {[one['id'] for one in messages]}")
        for name in ("name", "isFlagged", "isArchived", "labels", "sessionStatus", "permissionMode", "kanbanColumn"):
            if name != "name" and session.header.get(name) != value.get(name):
                problems.append(f"{id}: {name} {session.header.get(name)!r}, not {value.get(name)!r}")
        if value["messageCount"] != counted_of(session.messages)["messageCount"]:
            problems.append(f"{id}: messageCount {value['messageCount']}")
    return problems


def deviations(root: Path, home: Path) -> tuple[list[str], dict[str, Session]]:
    reader = Reader(root, home)
    return reader.deviations, reader.read()
