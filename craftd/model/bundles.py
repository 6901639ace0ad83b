"""Resource bundles: sources, skills and automations in one JSON value, as the app exchanges them.  App 0.11.1.

`{version: 1, exportedAt, sourceWorkspace?, resources: {sources?, skills?, automations?}}`. A bundle comes from
anywhere: it is judged whole before a byte of it is used, and no path in it leads out of the folder of its resource.
What goes out has no secrets: places made for them are emptied, and each is told.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

from craftd.errors import Issue
from craftd.model import automations, json_text
from craftd.model.records import Record
from craftd.model.secret_text import could_be_secret, names_a_secret

VERSION: Final = 1
LARGEST: Final = 100 * 1024 * 1024
"""Bytes of a bundle as JSON."""
MOST_FILES: Final = 10_000
"""Of all resources together."""
DEEPEST_PATH: Final = 16
"""Names in the path of a file."""

SLUG: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,99}", re.ASCII)

OnConflict = Literal["skip", "overwrite", "rename"]

_MAIN: Final = {"sources": "config.json", "skills": "SKILL.md"}
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f\\]")


@frozen
class Folder:
    """A source or a skill. config: of a source, without its file. files: content by path."""

    slug: str
    config: Record | None = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)


@frozen
class Automation:
    """One matcher and the event it stands under."""

    id: str
    event: str
    matcher: Record = field(repr=False)


@frozen(kw_only=True)
class Bundle:
    sources: tuple[Folder, ...] = ()
    skills: tuple[Folder, ...] = ()
    automations: tuple[Automation, ...] = ()


# -- in --


def wrong_path(path: Any, *, dots: bool = False) -> str | None:
    """Why *path* is not one of a file inside a resource's folder; None if it is. dots: a name may have `..` in it."""
    if not isinstance(path, str) or not path:
        return "must be text that is not empty"
    if _UNFIT.search(path):
        return "has a backslash or a control character"
    names = path.split("/")
    if any(name in ("", ".", "..") or (".." in name and not dots) for name in names):
        return "must be relative, without empty names, `.` and `..`"
    if any(name.startswith(".") for name in names):
        return "is hidden"
    if len(names) > DEEPEST_PATH:
        return f"has more than {DEEPEST_PATH} names"
    try:
        if any(len(name.encode()) > 255 for name in names):
            return "has a name of more than 255 bytes"
    except UnicodeEncodeError:
        return "has half a character"
    return None


def read(value: Any) -> tuple[Bundle, list[Issue]]:
    """What a bundle holds, and what is wrong with it as a whole: then nothing of it may be used. Never raises."""
    reader = _Reader()
    bundle = reader.bundle(value)
    return bundle, reader.issues


@frozen
class _Reader:
    issues: list[Issue] = field(factory=list)

    def wrong(self, path: str, message: str, code: str = "schema") -> None:
        self.issues.append(Issue(path=path, message=message, code=code))

    def bundle(self, value: Any) -> Bundle:
        if value is None or not isinstance(value, (dict, list)):
            self.wrong("", "must be an object")
            return Bundle()
        members: Record = value if isinstance(value, dict) else {}
        version, at = members.get("version"), members.get("exportedAt")
        if type(version) is not int or version != VERSION:
            self.wrong("version", f"must be {VERSION}")
        if isinstance(at, bool) or not isinstance(at, (int, float)):
            self.wrong("exportedAt", "must be a number: milliseconds since 1970 UTC")
        resources = members.get("resources")
        if not isinstance(resources, dict):
            self.wrong("resources", "must be an object")
            return Bundle()
        sources = tuple(self.folders("sources", resources.get("sources", [])))
        skills = tuple(self.folders("skills", resources.get("skills", [])))
        if sum(len(one.files) for one in (*sources, *skills)) > MOST_FILES:
            self.wrong("resources", f"has more than {MOST_FILES} files", "too-many-files")
        return Bundle(
            sources=sources, skills=skills, automations=tuple(self.automations(resources.get("automations", [])))
        )

    def folders(self, noun: str, entries: Any) -> Iterator[Folder]:
        path = f"resources.{noun}"
        seen: set[str] = set()
        for index, entry in self.entries(path, entries):
            place = f"{path}.{index}"
            slug = entry.get("slug")
            if not isinstance(slug, str) or SLUG.fullmatch(slug) is None:
                self.wrong(f"{place}.slug", "must be lower-case letters, digits and hyphens", "bad-slug")
                slug = ""
            elif slug in seen:
                self.wrong(f"{place}.slug", f"{slug} is there twice", "duplicate-id")
            seen.add(slug)
            config = entry.get("config") if noun == "sources" else None
            if noun == "sources":
                if not isinstance(config, dict):
                    self.wrong(f"{place}.config", "must be an object")
                elif slug and config.get("slug", slug) != slug:
                    self.wrong(f"{place}.config.slug", f"differs from {slug}", "slug-mismatch")
            yield Folder(slug, config, self.files(noun, f"{place}.files", entry.get("files")))

    def entries(self, path: str, entries: Any) -> Iterator[tuple[int, Record]]:
        if not isinstance(entries, list):
            self.wrong(path, "must be a list")
            return
        for index, entry in enumerate(entries):
            if isinstance(entry, dict):
                yield index, entry
            else:
                self.wrong(f"{path}.{index}", "must be an object")

    def files(self, noun: str, path: str, entries: Any) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        folders: set[str] = set()
        main = _MAIN[noun]
        for index, entry in self.entries(path, entries):
            place = f"{path}.{index}"
            name: Any = entry.get("relativePath")
            why = wrong_path(name)
            if why is not None:
                self.wrong(f"{place}.relativePath", why, "bad-path")
                continue
            above = {name[:at] for at, char in enumerate(name) if char == "/"}
            if name in files or name in folders or above & files.keys():
                self.wrong(f"{place}.relativePath", f"{name} is there twice", "duplicate-file")
            elif noun == "sources" and name.casefold() == main:
                self.wrong(f"{place}.relativePath", f"{main} is what `config` says", "bad-path")
            else:
                files[name] = self.content(place, entry)
                folders |= above
        if noun == "skills" and isinstance(entries, list) and main not in files:
            self.wrong(path, f"has no {main}", "no-skill-md")
        return files

    def content(self, place: str, entry: Record) -> bytes:
        written, size = entry.get("contentBase64"), entry.get("size")
        try:
            if not isinstance(written, str):
                raise ValueError
            data = base64.b64decode(written, validate=True)
        except (binascii.Error, ValueError):
            self.wrong(f"{place}.contentBase64", "is no base64", "bad-base64")
            return b""
        if isinstance(size, bool) or size != len(data):
            self.wrong(f"{place}.size", f"is not {len(data)}, which the content has", "bad-size")
        return data

    def automations(self, entries: Any) -> Iterator[Automation]:
        path = "resources.automations"
        seen: set[str] = set()
        for index, entry in self.entries(path, entries):
            id, event, matcher = entry.get("id"), entry.get("event"), entry.get("matcher")
            if not isinstance(id, str) or not id:
                self.wrong(f"{path}.{index}.id", "must be text that is not empty")
            elif id in seen:
                self.wrong(f"{path}.{index}.id", f"{id} is there twice", "duplicate-id")
            else:
                seen.add(id)
            if not isinstance(event, str) or event not in automations.EVENTS | automations.OLD_NAMES.keys():
                self.wrong(f"{path}.{index}.event", "is no event", "unknown-event")
            if not isinstance(matcher, dict):
                self.wrong(f"{path}.{index}.matcher", "must be an object")
            elif not isinstance(matcher.get("actions"), list) or not matcher["actions"]:
                self.wrong(f"{path}.{index}.matcher.actions", "must be a list that is not empty", "no-actions")
            if isinstance(id, str) and isinstance(event, str) and isinstance(matcher, dict):
                yield Automation(id, event, {**matcher, "id": id})


@frozen
class Merged:
    """The file *value* and the ids that came in (old id to new), and those that stayed out."""

    value: Record
    imported: dict[str, str]
    skipped: tuple[str, ...]


def merge(value: Record, them: tuple[Automation, ...], on_conflict: OnConflict, new_id: Callable[[], str]) -> Merged:
    """*value* (an `automations.json` whose shape is right) with the automations of a bundle, by id."""
    events: dict[str, list[Any]] = {name: list(matchers) for name, matchers in value.get("automations", {}).items()}
    places = {one["id"]: name for name, matchers in events.items() for one in matchers if "id" in one}
    taken = {*places, *(one.id for one in them)}
    imported: dict[str, str] = {}
    skipped: list[str] = []
    for one in them:
        there = places.get(one.id)
        if there is None or on_conflict == "rename":
            id = one.id if there is None else _free(taken, new_id)
            events.setdefault(one.event, []).append({**one.matcher, "id": id})
            imported[one.id] = id
        elif on_conflict == "skip":
            skipped.append(one.id)
            continue
        else:
            imported[one.id] = one.id
            at = next(index for index, matcher in enumerate(events[there]) if matcher.get("id") == one.id)
            if there == one.event:
                events[there][at] = one.matcher
            else:
                del events[there][at]
                events.setdefault(one.event, []).append(one.matcher)
        places[imported[one.id]] = one.event
        taken.add(imported[one.id])
    return Merged({**value, "automations": events}, imported, tuple(skipped))


def _free(taken: Container[str], new_id: Callable[[], str]) -> str:
    while (id := new_id()) in taken:
        pass
    return id


# -- out --


def source(config: Record) -> tuple[Record, list[str]]:
    """*config* without what is true of this workspace alone and without secrets, and the paths left out."""
    kept = {**config, "isAuthenticated": False}
    block = kept.get(str(kept.get("type")))
    if isinstance(block, dict) and block.get("authType", "none") != "none":
        kept["connectionStatus"] = "needs_auth"
    else:
        kept.pop("connectionStatus", None)
    kept = {name: member for name, member in kept.items() if name not in ("connectionError", "lastTestedAt")}
    stripped: list[str] = []
    for path in _SECRET_PLACES:
        kept, found = _without(kept, path)
        if found:
            stripped.append(".".join(path))
    for path in _ADDRESSES:
        kept, found = _changed(kept, path, _bare)
        stripped += [".".join(path)] if found else []
    kept, found = _changed(kept, ("mcp", "args"), _without_secret_words)
    stripped += ["mcp.args"] if found else []
    kept = _without_secrets(kept, "", stripped)
    return kept, stripped


_SECRET_PLACES: Final = (
    ("googleOAuthClientSecret",),
    ("api", "googleOAuthClientSecret"),
    ("api", "oauth", "clientSecret"),
    ("mcp", "env"),
    ("mcp", "headers"),
    ("api", "defaultHeaders"),
    ("api", "testEndpoint", "headers"),
    ("api", "testEndpoint", "body"),
    ("api", "renewEndpoint", "headers"),
    ("api", "renewEndpoint", "body"),
)
_ADDRESSES: Final = (
    ("mcp", "url"),
    ("api", "baseUrl"),
    ("api", "oauth", "authorizationUrl"),
    ("api", "oauth", "tokenUrl"),
)


def _without_secrets(value: Any, path: str, stripped: list[str]) -> Any:
    """*value* without members that are called like a secret and are text; templates (`${NAME}`) are none."""
    if isinstance(value, list):
        return [_without_secrets(inner, f"{path}.{index}", stripped) for index, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, member in value.items():
        place = f"{path}.{name}" if path else name
        if isinstance(member, str) and member and "$" not in member and names_a_secret(name):
            stripped.append(place)
        else:
            kept[name] = _without_secrets(member, place, stripped)
    return kept


def _without(value: Record, path: tuple[str, ...]) -> tuple[Record, bool]:
    name, *rest = path
    if name not in value:
        return value, False
    if not rest:
        return {key: member for key, member in value.items() if key != name}, True
    if not isinstance(value[name], dict):
        return value, False
    inner, found = _without(value[name], tuple(rest))
    return {**value, name: inner}, found


def _changed(value: Record, path: tuple[str, ...], change: Callable[[Any], Any]) -> tuple[Record, bool]:
    name, *rest = path
    if name not in value:
        return value, False
    if rest:
        if not isinstance(value[name], dict):
            return value, False
        inner, found = _changed(value[name], tuple(rest), change)
    else:
        inner = change(value[name])
        found = inner != value[name]
    return {**value, name: inner}, found


def _bare(address: Any) -> Any:
    """*address* without a user and password, and without what its query calls a secret."""
    if not isinstance(address, str) or not any(char in address for char in "@?"):
        return address
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    pieces = parts.query.split("&")
    kept = [piece for piece in pieces if "$" in piece or not names_a_secret(piece.partition("=")[0])]
    host = parts.netloc.rpartition("@")[2]
    if host == parts.netloc and kept == pieces:
        return address
    return urlunsplit(parts._replace(netloc=host, query="&".join(kept)))


def _without_secret_words(words: Any) -> Any:
    """The arguments of a command; what follows `--token`, or `--token=`, is taken out."""
    if not isinstance(words, list):
        return words
    kept: list[Any] = []
    hide = False
    for word in words:
        flag = isinstance(word, str) and could_be_secret(word.partition("=")[0])
        if hide and not (isinstance(word, str) and word.startswith("-")):
            kept.append("")
            hide = False
        elif flag and "=" in word:
            kept.append(f"{word.partition('=')[0]}=")
        else:
            kept.append(word)
            hide = flag and word.startswith("-")
    return kept


def automations_of(value: Record) -> Iterator[Automation]:
    """The automations of a file that can be used; one without an id gets one from what it says."""
    events = value.get("automations")
    for event, matchers in events.items() if isinstance(events, dict) else ():
        for matcher in matchers if isinstance(matchers, list) else ():
            if isinstance(matcher, dict):
                id = matcher.get("id")
                if not isinstance(id, str) or not id:
                    id = hashlib.blake2b(json_text.canonical([event, matcher]), digest_size=3).hexdigest()
                yield Automation(id, event, matcher)


def automation(one: Automation) -> tuple[Record, list[str]]:
    """An automation as a bundle holds it, and the paths of what was left out."""
    stripped: list[str] = []
    matcher = one.matcher
    if isinstance(matcher.get("actions"), list):
        actions = []
        for index, action in enumerate(matcher["actions"]):
            kept, found = _action(action)
            actions.append(kept)
            stripped += [f"actions.{index}.{path}" for path in found]
        matcher = {**matcher, "actions": actions}
    named = {"name": matcher["name"]} if isinstance(matcher.get("name"), str) else {}
    return {"id": one.id, **named, "event": one.event, "matcher": {**matcher, "id": one.id}}, stripped


def _action(action: Any) -> tuple[Any, list[str]]:
    if not isinstance(action, dict) or action.get("type") != "webhook":
        return action, []
    stripped = ["auth"] if "auth" in action else []
    kept = {name: member for name, member in action.items() if name != "auth"}
    headers = kept.get("headers")
    if isinstance(headers, dict):
        secret = [name for name, text in headers.items() if could_be_secret(name) and "$" not in str(text)]
        if secret:
            kept["headers"] = {name: text for name, text in headers.items() if name not in secret}
            stripped += [f"headers.{name}" for name in secret]
    kept, found = _changed(kept, ("url",), _bare)
    return kept, stripped + (["url"] if found else [])


def file(path: str, data: bytes) -> Record:
    return {"relativePath": path, "contentBase64": base64.b64encode(data).decode(), "size": len(data)}


def errors_of_automations(value: Any) -> list[Issue]:
    """What must not be wrong with a file that automations are put into."""
    return [issue for issue in automations.check(value, automations.Around()) if issue.severity == "error"]
