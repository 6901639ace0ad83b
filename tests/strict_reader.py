"""Reads the sessions of a workspace as strictly as their format says it, and knows nothing of craftd.

Written from the description of the format alone, so that a fault which craftd's writing and its reading share is seen
here. What is looked at is a workspace at rest: nobody writes, line 1 counts everything.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOKEN = "{{SESSION_PATH}}"
MARK = "\ue0f0" * len(TOKEN)
"""Stands for a token while the text is parsed, so that one which somebody typed is not taken for it."""

FOLDER = re.compile(r"\d{6}-[a-z]+-[a-z]+(-\d+)?|[A-Za-z0-9_-]+")
STANDARD = ("attachments", "plans", "long_responses", "data", "downloads")
BESIDE = {"session.jsonl", "notes.md", "meta", "tool-metadata.json", "api-error.json", "tmp", *STANDARD}
LINE_ONE = 8192

STRING, BOOLEAN, INTEGER, STRINGS, OBJECT = "string", "boolean", "integer", "strings", "object"
MODES = ("safe", "ask", "allow-all")
LEVELS = ("off", "low", "medium", "high", "xhigh", "max")
HEADER: dict[str, Any] = {
    "id": STRING, "workspaceRootPath": STRING, "sdkSessionId": STRING, "sdkCwd": STRING, "createdAt": INTEGER,
    "lastUsedAt": INTEGER, "lastMessageAt": INTEGER, "name": STRING, "isFlagged": BOOLEAN, "sessionStatus": STRING,
    "labels": STRINGS, "hidden": BOOLEAN, "lastReadMessageId": STRING, "hasUnread": BOOLEAN,
    "enabledSourceSlugs": STRINGS, "permissionMode": MODES, "previousPermissionMode": MODES,
    "workingDirectory": STRING, "model": STRING, "llmConnection": STRING, "connectionLocked": BOOLEAN,
    "thinkingLevel": LEVELS, "sharedUrl": STRING, "sharedId": STRING, "pendingPlanExecution": OBJECT,
    "isArchived": BOOLEAN, "archivedAt": INTEGER, "branchFromMessageId": STRING, "branchFromSdkSessionId": STRING,
    "branchFromSessionPath": STRING, "branchFromSdkCwd": STRING, "branchFromSdkTurnId": STRING,
    "transferredSessionSummary": STRING, "transferredSessionSummaryApplied": BOOLEAN, "triggeredBy": OBJECT,
    "projectId": STRING, "parentSessionId": STRING, "kanbanColumn": STRING, "taskSlug": STRING, "taskRunId": STRING,
    "taskNodeId": STRING, "taskNodeCount": INTEGER, "taskDraft": BOOLEAN,
}  # fmt: skip
COMPUTED = ("messageCount", "lastMessageRole", "preview", "tokenUsage", "lastFinalMessageId")
ROLES = ("user", "assistant", "plan", "tool", "error")
TYPES = ("user", "assistant", "tool", "error", "status", "info", "warning", "plan", "auth-request")
USAGE = ("inputTokens", "outputTokens", "totalTokens", "contextTokens", "costUsd")
MESSAGE: dict[str, Any] = {
    **dict.fromkeys(
        [
            "toolName",
            "toolUseId",
            "toolResult",
            "toolIntent",
            "toolDisplayName",
            "parentToolUseId",
            "turnId",
            "statusType",
            "planPath",
        ],
        STRING,
    ),
    **dict.fromkeys(["isIntermediate", "isError", "hidden", "isQueued"], BOOLEAN),
    "toolInput": OBJECT,
    "timestamp": INTEGER,
    "toolStatus": ("pending", "executing", "completed", "error", "backgrounded"),
}
NEVER_STORED = ("isStreaming", "isPending", "role")
MOST_UNITS = 200_000
MOST_ANNOTATIONS, ANNOTATION_BYTES = 200, 32_768
ATTACHMENT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}_.+")
GOES_ON = r"[\w-]|\.\w"
"""What makes a name longer than the one that ends there."""
BLANK = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
WORD = "[A-Za-z0-9_-]+"


@dataclass
class Session:
    """header and messages: parsed, MARK for each token."""

    folder: Path
    header: dict[str, Any]
    messages: list[dict[str, Any]]


@dataclass
class Reader:
    """root: the workspace; home: what `~` is. deviations: all that is not as the format says."""

    root: Path
    home: Path
    deviations: list[str] = field(default_factory=list)
    _where: str = ""

    def read(self) -> dict[str, Session]:
        """All sessions by id."""
        found = {}
        for folder in sorted((self.root / "sessions").iterdir()):
            self._where = folder.name
            if not self._says(stat.S_ISDIR(folder.lstat().st_mode), "is no folder"):
                continue
            self._says(FOLDER.fullmatch(folder.name), "is no id")
            session = self._session(folder)
            if session is not None:
                found[folder.name] = session
        return found

    def _says(self, true: object, otherwise: str) -> bool:
        if not true:
            self.deviations.append(f"{self._where}: {otherwise}")
        return bool(true)

    def _session(self, folder: Path) -> Session | None:
        for name in STANDARD:
            self._says((folder / name).is_dir(), f"{name}/ is missing")
        for entry in folder.iterdir():
            self._says(entry.name in BESIDE or entry.name.startswith("."), f"{entry.name} does not belong there")
        if not self._says((folder / "session.jsonl").is_file(), "there is no session.jsonl"):
            return None
        data = (folder / "session.jsonl").read_bytes()
        self._says(data.endswith(b"\n"), "the last line does not end")
        self._says(not data.startswith(b"\xef\xbb\xbf"), "begins with a byte order mark")
        lines = data.removesuffix(b"\n").split(b"\n")
        self._says(len(lines[0]) <= LINE_ONE, f"line 1 has {len(lines[0])} bytes, the app would not list it")
        objects = [self._line(number, line, str(folder)) for number, line in enumerate(lines, 1)]
        if any(one is None for one in objects):
            return None
        header, *messages = [one for one in objects if one is not None]
        session = Session(folder, header, messages)
        self._where = folder.name
        self._messages(session)
        self._where = f"{folder.name} line 1"
        self._header(session)
        self._where = folder.name
        self._files(session)
        return session

    def _line(self, number: int, line: bytes, directory: str) -> dict[str, Any] | None:
        self._where = f"{Path(directory).name} line {number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            self._says(False, str(error))
            return None
        self._says(MARK[0] not in text, "holds what stands for a token here")
        twice: list[str] = []
        try:
            found = parsed(text, twice)
        except ValueError as error:
            self._says(False, f"is no JSON: {error}")
            return None
        if not self._says(isinstance(found, dict), "is no object"):
            return None
        self._says(not twice, f"has members twice: {twice}")
        self._says(stringify(found) == text, "is not written as the app writes JSON")
        for where, string in strings_of(found, ""):
            self._paths(where, string, directory)
        return plain(found)  # type: ignore[no-any-return]

    def _paths(self, where: str, text: str, directory: str) -> None:
        for end in (match.end() for match in re.finditer(MARK, text)):
            self._says(not re.match(GOES_ON, text[end:]), f"{where}: a token within a name")
        for match in re.finditer(re.escape(directory), text):
            beginning = match.start() == 0 or not re.match(r"[\w.-]", text[match.start() - 1])
            self._says(
                not beginning or re.match(GOES_ON, text[match.end() :]),
                f"{where}: the session's folder without a token",
            )

    def _header(self, session: Session) -> None:
        header = session.header
        order = [name for name in header if name in HEADER]
        self._says(order == [name for name in HEADER if name in header], f"members in the order {list(header)}")
        rest = [name for name in header if name not in HEADER and name not in COMPUTED]
        self._says(
            list(header) == order + rest + [name for name in COMPUTED if name in header],
            "computed members are not last",
        )
        for name, kind in HEADER.items():
            if name in header:
                self._kind(name, header[name], kind)
        for name in ("id", "workspaceRootPath", "sdkCwd", "createdAt", "lastUsedAt", "messageCount"):
            self._says(name in header, f"{name} is missing")
        self._says(header.get("id") == session.folder.name, f"id {header.get('id')}")
        for name in ("workspaceRootPath", "workingDirectory", "sdkCwd"):
            if isinstance(path := header.get(name), str):
                self._says(path.startswith(("/", "~/", MARK)) or path == "~", f"{name} {path} is relative")
                self._says(not _below(path, str(self.home)), f"{name} {path} does not begin with ~")
        root = header.get("workspaceRootPath", "").replace("~", str(self.home), 1)
        self._says(root == str(self.root), f"workspaceRootPath {root}")
        if header.get("isArchived") is True:
            self._says("archivedAt" in header, "isArchived without archivedAt")
        else:
            self._says("archivedAt" not in header, "archivedAt without isArchived")
        if "tokenUsage" in header:
            self._usage(header["tokenUsage"])
        counted = counted_of(session.messages)
        for name in ("messageCount", "lastMessageRole", "lastFinalMessageId"):
            self._says(header.get(name) == counted.get(name), f"{name} {header.get(name)}, not {counted.get(name)}")
        # Where it was cut, a longer name may have become that of the folder.
        expected, there = (
            None if text is None else text.replace(MARK, str(session.folder))
            for text in (preview_of(session.messages), header.get("preview"))
        )
        self._says(there == expected, f"preview {there!r}, not {expected!r}")
        ids = {message.get("id") for message in session.messages}
        if "lastReadMessageId" in header:
            self._says(header["lastReadMessageId"] in ids, "lastReadMessageId points at nothing")

    def _usage(self, usage: Any) -> None:
        if not self._says(isinstance(usage, dict), "tokenUsage is no object"):
            return
        self._says(all(name in usage for name in USAGE), f"tokenUsage has {list(usage)}")
        self._says(all(isinstance(value, int | float) for value in usage.values()), "tokenUsage counts no numbers")

    def _messages(self, session: Session) -> None:
        seen: set[str] = set()
        for number, message in enumerate(session.messages, 2):
            self._where = f"{session.folder.name} line {number}"
            for name in ("id", "type", "content"):
                self._says(isinstance(message.get(name), str), f"{name} is no string")
            self._says(message.get("id") not in seen, f"id {message.get('id')} for the second time")
            seen.add(str(message.get("id")))
            self._says(message.get("type") in TYPES, f"type {message.get('type')}")
            self._says(next(reversed(message), None) == "type", "type is not last")
            for name, kind in MESSAGE.items():
                if name in message:
                    self._kind(name, message[name], kind)
            for name in NEVER_STORED:
                self._says(name not in message, f"{name} is stored")
            for name in ("toolResult", "content"):
                if isinstance(text := message.get(name), str):
                    self._says(units(text) <= MOST_UNITS, f"{name} has {units(text)} units")
            self._annotations(session, message)
            self._pointed_at(session, message)

    def _annotations(self, session: Session, message: dict[str, Any]) -> None:
        annotations = message.get("annotations", [])
        if not self._says(isinstance(annotations, list), "annotations is no array"):
            return
        self._says(len(annotations) <= MOST_ANNOTATIONS, f"{len(annotations)} annotations")
        ids = [one.get("id") for one in annotations]
        self._says(len(ids) == len(set(ids)), "annotations with one id")
        for one in annotations:
            self._says(one.get("schemaVersion") == 1, "schemaVersion is not 1")
            target = one.get("target", {})
            source = target.get("source", {})  # a branch keeps what its annotations say of the session they are from
            self._says(source.get("messageId") == message.get("id"), f"an annotation of {source}")
            self._says(FOLDER.fullmatch(source.get("sessionId", "")), f"an annotation in {source}")
            self._says(bool(target.get("selectors")), "an annotation without a selector")
            self._says(isinstance(one.get("createdAt"), int), "createdAt of an annotation")
            self._says(
                len(json.dumps(one, ensure_ascii=False).encode("utf-8", "surrogatepass")) <= ANNOTATION_BYTES, ""
            )

    def _pointed_at(self, session: Session, message: dict[str, Any]) -> None:
        named = [one.get(name) for one in message.get("attachments", []) for name in ("storedPath", "thumbnailPath")]
        if message.get("type") == "plan":
            named.append(message.get("planPath"))
        named += re.findall(rf"Full data saved to: ({MARK}\S+)", message.get("toolResult") or "")
        for path in named:
            if isinstance(path, str) and path.startswith(MARK):
                there = session.folder / path.removeprefix(MARK).lstrip("/")
                self._says(os.path.lexists(there), f"{there.relative_to(session.folder)} is not there")
        for one in message.get("attachments", []):
            for name in ("thumbnailBase64", "resizedBase64"):
                self._says(name not in one, f"{name} in a line")

    def _files(self, session: Session) -> None:
        for entry in (session.folder / "attachments").glob("*"):
            self._says(ATTACHMENT.fullmatch(entry.name), f"attachments/{entry.name}: the name")
        for entry in (session.folder / "plans").glob("*"):
            self._says(entry.is_file() and entry.name.endswith(".md"), f"plans/{entry.name} is no plan")
        notes = session.folder / "notes.md"
        if notes.exists():
            notes.read_bytes().decode()

    def _kind(self, name: str, value: Any, kind: Any) -> None:
        if isinstance(kind, tuple):
            self._says(value in kind, f"{name} {value!r}")
        elif kind == STRINGS:
            self._says(isinstance(value, list) and all(isinstance(one, str) for one in value), f"{name} {value!r}")
        else:
            accepted = {STRING: str, BOOLEAN: bool, INTEGER: int, OBJECT: dict}[kind]
            self._says(type(value) is accepted, f"{name} is no {kind}: {value!r}")


class Number:
    """A number with the text that stands for it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def value(self) -> int | float:
        return float(self.text) if re.search("[.eE]", self.text) else int(self.text)


def parsed(text: str, twice: list[str] | None = None) -> Any:
    """*text* with MARK for tokens and `Number` for numbers; members that are there *twice* are added to it.

    Raises: ValueError.
    """

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in members]
        if twice is not None:
            twice.extend(name for name in names if names.count(name) > 1)
        return dict(members)

    return json.loads(text.replace(TOKEN, MARK), object_pairs_hook=pairs, parse_int=Number, parse_float=Number)


def plain(value: Any) -> Any:
    """What `parsed` answered, its numbers as such."""
    if isinstance(value, Number):
        return value.value
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list) else value


def strings_of(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Every string, members' names too, with its place."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield f"{where}.{name}", name
            yield from strings_of(member, f"{where}.{name}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from strings_of(member, f"{where}.{index}")


def stringify(value: Any) -> str:
    """JSON text as ECMAScript writes it; integers with all their digits."""
    if isinstance(value, dict):
        indexes = sorted(
            (name for name in value if re.fullmatch("0|[1-9][0-9]*", name) and int(name) < 2**32 - 1), key=int
        )
        names = [*indexes, *(name for name in value if name not in indexes)]
        return "{" + ",".join(f"{_quoted(name)}:{stringify(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(stringify, value)) + "]"
    if isinstance(value, Number):
        return _digits(value.text)
    return _quoted(value) if isinstance(value, str) else {None: "null", True: "true", False: "false"}[value]


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    quoted = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half.group()):04x}", quoted)
    return quoted.replace(TOKEN, "\\u007b" + TOKEN[1:]).replace(MARK, TOKEN)


def _digits(text: str) -> str:
    """The number *text* as ECMAScript writes it."""
    if re.fullmatch("-?[0-9]+", text):
        return str(int(text))
    number = float(text)
    if number == 0:
        return "0"
    sign, shortest = ("-" if number < 0 else ""), repr(abs(number))
    mantissa, _, exponent = shortest.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def saved(header: dict[str, Any], messages: list[dict[str, Any]], directory: str) -> bytes:
    """A file in *directory* of what `parsed` answered, counted anew."""
    simple = [plain(one) for one in messages]
    preview = preview_of(simple)
    counted = {**counted_of(simple), "tokenUsage": header.get("tokenUsage")}
    counted["preview"] = None if preview is None else preview.replace(directory, MARK)
    counted["messageCount"] = Number(str(counted["messageCount"]))
    order = [name for name in HEADER if name in header]
    order += [name for name in header if name not in HEADER and name not in COMPUTED]
    line_one = {name: header[name] for name in order}
    line_one |= {name: counted[name] for name in COMPUTED if counted.get(name) is not None}
    return "".join(stringify(one) + "\n" for one in (line_one, *messages)).encode()


def counted_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    counted: dict[str, Any] = {"messageCount": len(messages)}
    if messages and messages[-1]["type"] in ROLES:
        counted["lastMessageRole"] = messages[-1]["type"]
    finals = [one["id"] for one in messages if one["type"] == "assistant" and not one.get("isIntermediate")]
    return counted | ({"lastFinalMessageId": finals[-1]} if finals else {})


def preview_of(messages: list[dict[str, Any]]) -> str | None:
    """150 units of the first user message without mark-up; a path and a character stay whole, unlike the app's."""
    text = next((one["content"] for one in messages if one["type"] == "user"), "")
    text = re.sub("(?s)<edit_request>.*?</edit_request>", "", text)
    text = re.sub("<[^>]+>", "", text)
    for mention in (rf"\[skill:(?:{WORD}:)?{WORD}\]", rf"\[source:{WORD}\]", r"\[file:[^\]]+\]", r"\[folder:[^\]]+\]"):
        text = re.sub(mention, "", text)
    text = re.sub(f"[{BLANK}]+", " ", text).strip(" ")
    kept = ""
    for part in re.findall(f"(?s){MARK}|.", text):
        if units(kept) + units(part) > 150:
            break
        kept += part
    return kept or None


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
