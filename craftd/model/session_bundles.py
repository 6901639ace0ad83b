"""One session as a JSON value, as the app exchanges it.  App 0.11.1, `formats` of its session bundles.

`{version: 1, session: {header, messages}, files: [{relativePath, contentBase64, size}], branchInfo?}`. The header is
line 1 and the messages are lines as they are stored: paths below the session's folder are tokens. The app writes
messages with the absolute paths of its machine; what they were is found out and replaced.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from craftd.errors import Issue
from craftd.model import bundles, json_text, portable, sessions
from craftd.model.conflict_copies import could_be
from craftd.model.ids import is_session_id
from craftd.model.messages import Counters
from craftd.model.records import Record

VERSION: Final = 1
FILES_BYTES: Final = 100 * 1024 * 1024
"""Of all files together, as in the app."""
MOST_FILES: Final = bundles.MOST_FILES
FOLDERS: Final = ("attachments", "plans", "long_responses", "data", "downloads")
LEFT_OUT: Final = frozenset({"tmp"})
"""Folders whose content can be made again."""

_TRANSCRIPT: Final = frozenset({"session.jsonl", "session.jsonl.tmp"})
_NOT_HERE: Final = frozenset({"sharedUrl", "sharedId"})
"""Members that belong to the session that was exported: two must not own one share."""


def is_transcript(name: str) -> bool:
    """Whether a file is called like what the session itself lies in, on whatever file system."""
    return name.casefold() in _TRANSCRIPT


def wrong_file(path: Any) -> str | None:
    """Why *path* is not one of a file that may lie in a session's folder beside the transcript; None if it is."""
    why = bundles.wrong_path(path, dots=True)
    if why is None and any(is_transcript(name) for name in path.split("/")):
        return "is what `session` says"
    return why


def wrong_header(header: Any) -> Iterator[tuple[str, str]]:
    """Member and message of what must not be wrong with the header of a bundle."""
    if not isinstance(header, dict):
        yield "", "must be an object"
        return
    id, created = header.get("id"), header.get("createdAt")
    if not is_session_id(id) or could_be(str(id)):
        yield "id", "is no session id: letters, digits, hyphens and underscores only"
    if isinstance(created, bool) or not isinstance(created, (int, float)) or not math.isfinite(created):
        yield "createdAt", "must be a number: milliseconds since 1970 UTC"


def origin_of(header: Record) -> tuple[str, str] | None:
    """What is known of the folder the session was exported from: the home folder it begins with is left out as `~`."""
    root, id = header.get("workspaceRootPath"), header.get("id")
    if not isinstance(root, str) or not root.startswith(("/", "~/")):
        return None
    start, rest = ("~", root[1:]) if root.startswith("~") else ("", root)
    return start, f"{posixpath.normpath(rest)}/sessions/{id}"


class Origin:
    """The folder that messages of one bundle name, found out from the first of them that does."""

    def __init__(self, header: Record) -> None:
        known = origin_of(header)
        self.directory: str | None = None
        self._search: re.Pattern[bytes] | None = None
        if known is not None:
            start, rest = known
            if not start:
                self.directory = rest
            else:
                written = re.escape(json_text.dumps(rest)[1:-1])
                self._search = re.compile(rb"(?=" + written + portable.END_OF_PATH.encode() + rb")")
        self._rest = "" if known is None else known[1]

    def look(self, message: bytes) -> None:
        """See whether *message*, as JSON text, names it."""
        if self.directory is None and self._search is not None:
            home = _home_before(message, (found.start() for found in self._search.finditer(message)))
            if home is not None:
                self.directory = home.decode("utf-8", "surrogateescape") + self._rest


_LAST_QUOTE: Final = re.compile(rb'(?s:.*)["\\]')
_LAST_BREAK: Final = re.compile(rb'(?s:.*)(?:["\\\s:]|//)')
_BEGIN: Final = re.compile(rb'(?<![^\s"\'(=:`\[])/')


def _home_before(text: bytes, places: Iterable[int]) -> bytes | None:
    """The path that ends at the first of *places* where one does: a string from its beginning, or a word in it.

    Between two places everything is looked at once, so that the time is linear in the text.
    """
    quote = word = seen = 0
    begin: int | None = None
    for at in places:
        if (last := _LAST_QUOTE.match(text, seen, at)) is not None:
            quote = last.end()
        if (last := _LAST_BREAK.match(text, max(seen - 1, word), at + 1)) is not None:
            word, begin = last.end(), None
        if begin is None and (found := _BEGIN.search(text, max(seen, word), at)) is not None:
            begin = found.start()
        if quote < at and text[quote - 1 : quote + 1] == b'"/':
            return text[quote:at]
        if begin is not None:
            return text[begin:at]
        seen = at
    return None


@frozen
class Here:
    """Where a session comes to be. exists: whether a folder is there. has(noun, id): whether a record is."""

    id: str
    root: str
    directory: str
    home: str
    exists: Callable[[str], bool]
    has: Callable[[str, str], bool]


@frozen
class Arriving:
    """What a bundle says of a session. header: line 1 as text. branch: `branchInfo`."""

    header: bytes
    origin: str | None
    counters: Counters
    branch: Record | None


def arrived(told: Arriving, here: Here, *, copied: bool) -> tuple[Record, list[Issue]]:
    """The stored header of a session that came in a bundle, and what somebody should know about it.

    copied: it got another id than it had, so a session of that id may go on elsewhere.
    """
    text = told.header if told.origin is None else portable.retarget(told.header, told.origin, here.directory)
    header = {name: m for name, m in sessions.parse_header(text, here.directory).items() if name not in _NOT_HERE}
    header["id"] = here.id
    header["workspaceRootPath"] = portable.contract_home(here.root, here.home)
    warnings = list(_missing(header, here))
    parent = header.get("parentSessionId")
    if isinstance(parent, str) and not here.has("sessions", parent):
        del header["parentSessionId"]  # the app shows a child below its parent alone
    directory = header.get("sdkCwd")
    if isinstance(directory, str) and not here.exists(portable.expand_home(directory, here.home)):
        header["sdkCwd"] = portable.contract_home(here.directory, here.home)
    if copied:
        header = _forked(header, told.branch)
    counted = told.counters.header_fields()
    kept = {name: m for name, m in header.items() if name not in Counters().header_fields() | _COUNTED}
    return sessions.ordered({**kept, **counted}), warnings


_COUNTED: Final = dict.fromkeys(("messageCount", "lastMessageRole", "preview", "lastFinalMessageId"))


def _forked(header: Record, branch: Record | None) -> Record:
    """*header* without the provider's conversation: it is not to be continued by two, but can be branched from."""
    header = {name: member for name, member in header.items() if name != "sdkSessionId"}
    if branch is not None and isinstance(branch.get("sdkSessionId"), str):
        names = {
            "sdkSessionId": "branchFromSdkSessionId",
            "sdkTurnId": "branchFromSdkTurnId",
            "sdkCwd": "branchFromSdkCwd",
        }
        header |= {names[name]: branch[name] for name in names if isinstance(branch.get(name), str)}
    return header


def _missing(header: Record, here: Here) -> Iterator[Issue]:
    """What the session refers to and is not here."""
    for member, noun in (("projectId", "projects"), ("parentSessionId", "sessions"), ("llmConnection", "connections")):
        name = header.get(member)
        if isinstance(name, str) and name and not here.has(noun, name):
            yield _warning(here, member, f"there is no {noun}/{name} here")
    for member, noun in (("enabledSourceSlugs", "sources"), ("labels", "labels")):
        names = header.get(member)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and not here.has(noun, name.partition("::")[0]):
                yield _warning(here, member, f"there is no {noun}/{name.partition('::')[0]} here")
    directory = header.get("workingDirectory")
    if isinstance(directory, str) and not here.exists(portable.expand_home(directory, here.home)):
        yield _warning(here, "workingDirectory", f"there is no folder {directory} here")


def _warning(here: Here, path: str, message: str) -> Issue:
    return Issue(path=path, message=message, severity="warning", code="not-here", noun="sessions", id=here.id)


def branch_info(header: Record, turn: str | None) -> Record | None:
    """From where another machine can branch the provider's conversation; *header* as it is stored."""
    session = header.get("sdkSessionId")
    if not isinstance(session, str):
        return None
    more = {"sdkTurnId": turn, "sdkCwd": header.get("sdkCwd")}
    return {"sdkSessionId": session, **{name: member for name, member in more.items() if isinstance(member, str)}}


# -- the app's remote transfer --

_GIVEN: Final = ("name", "sessionStatus", "labels", "permissionMode")


def is_transfer(names: Collection[str]) -> bool:
    """Whether a value with these members is a remote transfer and no bundle."""
    return "sourceSessionId" in names and "version" not in names


def transferred(value: Record) -> tuple[Record, list[Issue]]:
    """The value of the session that a transfer payload makes, and what is wrong with the payload."""
    summary = value.get("summary")
    issues = []
    if not isinstance(value.get("sourceSessionId"), str):
        issues.append(Issue(path="sourceSessionId", message="must be a string"))
    if not isinstance(summary, str) or not json_text.js_trim(summary):
        issues.append(Issue(path="summary", message="must be text that is not empty"))
        summary = ""
    given: Record = {name: value[name] for name in _GIVEN if value.get(name) is not None}
    summed = {"transferredSessionSummary": json_text.js_trim(summary), "transferredSessionSummaryApplied": False}
    return {**given, **summed}, issues
