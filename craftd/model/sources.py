"""Sources: what a session may draw on; one of three types, each with its block.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model.checks import (
    Check,
    anything,
    colour,
    flag,
    listing,
    mapping,
    one_of,
    shape,
    text,
    validator,
    web_address,
    whole,
)
from craftd.model.credentials import slots
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.model.secret_places import secrets_in

TYPES = ("mcp", "api", "local")

SLUG = re.compile(r"[a-z0-9-]+", re.ASCII)

_words = listing(text())
_headers = mapping(text())

MCP = shape(
    {
        "transport": one_of("http", "sse", "stdio"),
        "url": web_address,
        "authType": one_of("oauth", "bearer", "none"),
        "clientId": text(),
        "command": text(),
        "args": _words,
        "env": _headers,
        "headers": _headers,
        "headerNames": _words,
    }
)

API = shape(
    {
        "baseUrl": web_address,
        "authType": one_of("bearer", "header", "query", "basic", "oauth", "none"),
        "headerName": text(),
        "headerNames": _words,
        "queryParam": text(),
        "authScheme": text(),
        "defaultHeaders": _headers,
        "testEndpoint": shape(
            {"method": one_of("GET", "POST"), "path": text(), "headers": _headers}, required=("method", "path")
        ),
        "oauth": shape(
            {
                "authorizationUrl": web_address,
                "tokenUrl": web_address,
                "clientId": text(empty=False),
                "clientSecret": text(),
                "scopes": _words,
                "audience": text(),
                "extraParams": _headers,
            },
            required=("authorizationUrl", "tokenUrl", "clientId"),
        ),
        "googleService": one_of("gmail", "calendar", "drive", "docs", "sheets", "youtube", "searchconsole"),
        "googleScopes": _words,
        "googleOAuthClientId": text(),
        "googleOAuthClientSecret": text(),
        "slackService": one_of("messaging", "channels", "users", "files", "full"),
        "slackUserScopes": _words,
        "microsoftService": one_of("outlook", "microsoft-calendar", "onedrive", "teams", "sharepoint"),
        "microsoftScopes": _words,
    },
    required=("baseUrl", "authType"),
)

FIELDS: dict[str, Check] = {
    "id": text(empty=False),
    "name": text(empty=False),
    "slug": text(pattern=SLUG, what="must be lower-case letters, digits and hyphens"),
    "enabled": flag,
    "provider": text(empty=False),
    "type": one_of(*TYPES),
    "mcp": MCP,
    "api": API,
    "local": shape({"path": text(empty=False), "format": text()}, required=("path",)),
    "icon": anything,
    "tagline": anything,
    "connectionStatus": anything,
    "connectionError": anything,
    "brand": shape({"color": colour}),
    "isAuthenticated": flag,
    "lastTestedAt": whole,
    "createdAt": whole,
    "updatedAt": whole,
    "guide": text(),
}

SCHEMA = shape(FIELDS, required=("id", "name", "slug", "enabled", "provider", "type"))

_FORMAT_ONLY = frozenset({"bad-url", "bad-slug", "bad-color"})


def check(value: Any, path: str) -> Iterator[Issue]:
    """The schema and then, where all types are right, whether the block fits the type."""
    found = list(SCHEMA(value, path))
    yield from found
    if isinstance(value, dict) and all(issue.code in _FORMAT_ONLY or issue.path == "slug" for issue in found):
        yield from _block(value)


def _block(value: Record) -> Iterator[Issue]:
    kind = value["type"]
    if kind not in value:
        yield Issue(path="type", message=f"says {kind}, but there is no {kind!r} block", code="schema")
    elif kind == "mcp":
        mcp = value["mcp"]
        stdio = mcp.get("transport") == "stdio"
        for name in ("command",) if stdio else ("url", "authType"):
            if not mcp.get(name):
                yield Issue(path="mcp", message=f"needs {name!r} for this transport", code="schema")


SECRET = "secret-in-config"

_check_schema = validator(check)


def validate(value: Record, old: Record | None) -> list[Issue]:
    """The schema; secrets that *old* does not show in the same place; and hints at what loads but is not meant."""
    known = {} if old is None else secrets_in(old)
    return [
        *_check_schema(value, old),
        *(_shown(path) for path, secret in secrets_in(value).items() if known.get(path) != secret),
        *_hints(value),
    ]


def _shown(path: str) -> Issue:
    return Issue(
        path=path,
        message="holds a secret in plain text, which every client and export would see",
        severity="warning",
        code=SECRET,
        suggestion="take it out and store it with `credentials/set`; a name like ${NAME} may stand here",
    )


def _hints(value: Record) -> Iterator[Issue]:
    def hint(path: str, message: str, code: str = "unused") -> Issue:
        return Issue(path=path, message=message, severity="warning", code=code)

    slug, kind = value.get("slug"), value.get("type")
    if isinstance(slug, str) and slug != slug.strip("-"):
        yield hint("slug", "begins or ends with a hyphen", "bad-slug")
    for name in ("icon", "tagline"):
        if name in value and not isinstance(value[name], str):
            yield hint(name, "is no text, so nothing is shown", "schema")
    for name in TYPES:
        if name in value and name != kind and kind in TYPES and kind in value:
            yield hint(name, f"does not count, as the type is {kind}")
    mcp, api = (value.get(name) if kind == name else None for name in ("mcp", "api"))
    for path, block, name in (("mcp.url", mcp, "url"), ("api.baseUrl", api, "baseUrl")):
        address = block.get(name) if isinstance(block, dict) else None
        if isinstance(address, str) and ":" in address and not re.match(r"\s*https?:", address, re.IGNORECASE):
            yield hint(path, "is no http or https address", "odd-url")
    if isinstance(mcp, dict) and mcp.get("transport") == "stdio":
        if "url" in mcp:
            yield hint("mcp.url", "does not count for a program")
        if mcp.get("authType", "none") != "none":
            yield hint("mcp.authType", "does not count for a program")
    if isinstance(api, dict) and api.get("authType") == "none":
        for name in ("headerName", "headerNames", "queryParam"):
            if name in api:
                yield hint(f"api.{name}", "does not count, as authType is none")
        if value.get("provider") in ("google", "slack", "microsoft"):
            yield hint("api.authType", f"is none, but {value['provider']} wants a sign-in")
    renewal = api.get("renewEndpoint") if isinstance(api, dict) else None
    if renewal is not None and not (isinstance(renewal, dict) and isinstance(renewal.get("path"), str)):
        yield hint("api.renewEndpoint", "needs a path that is text", "schema")


def new(value: Record, facts: Facts) -> tuple[str, Record]:
    """A source as the app creates it; its id is the folder's name, its member `id` that name and 8 hex digits."""
    name = value.get("name", "New Source")
    wanted = value.get("slug")
    slug = facts.id or choose_slug(wanted if isinstance(wanted, str) else str(name), facts.taken, "source")
    made: Record = {
        "id": value.get("id") or f"{slug}_" + "".join(f"{facts.pick(16):x}" for _ in range(8)),
        "name": name,
        "slug": slug,
        "enabled": value.get("enabled", True),
        "provider": value.get("provider", "custom"),
        "type": value.get("type", "mcp"),
    }
    rest = {key: member for key, member in value.items() if key not in made}
    return slug, {**made, **rest, "createdAt": facts.now, "updatedAt": facts.now}


def touch(value: Record, facts: Facts) -> Record:
    return {**value, "updatedAt": facts.now}


def authentication(config: Record) -> str | None:
    """`authType` of the block that counts, the one of its type; None where nothing has to be shown."""
    kind = config.get("type")
    block = config.get(kind) if kind in ("mcp", "api") and isinstance(kind, str) else None
    if not isinstance(block, dict) or (kind == "mcp" and block.get("transport") == "stdio"):
        return None
    wanted = block.get("authType")
    return None if wanted == "none" or not isinstance(wanted, str) or not wanted else wanted


def why_unusable(config: Record) -> str | None:
    """disabled, or needs-authentication; None = a session can use it."""
    if config.get("enabled") in (None, False, 0, ""):
        return "disabled"
    return "needs-authentication" if needs_authentication(config) else None


def to_enable(
    required: Iterable[str], enabled: Container[str], sources: Mapping[str, Record]
) -> tuple[list[str], dict[str, str]]:
    """Of what skills require: the sources to switch on in a session, and why others are not.

    sources: all there are, by slug. Reasons: missing, and those of `why_unusable`.
    """
    chosen: list[str] = []
    skipped: dict[str, str] = {}
    for slug in dict.fromkeys(required):
        if slug in enabled:
            continue
        reason = why_unusable(sources[slug]) if slug in sources else "missing"
        if reason is None:
            chosen.append(slug)
        else:
            skipped[slug] = reason
    return chosen, skipped


def needs_authentication(config: Record) -> bool:
    """Whether somebody has to sign in, or to give a secret, before it can be used."""
    return authentication(config) is not None and config.get("isAuthenticated") is not True


def sign_in(config: Record) -> str | None:
    """Who is signed in to: google, slack, microsoft, generic, mcp; None where that is not how a secret is got."""
    block, provider = config.get(str(config.get("type"))), config.get("provider")
    auth = block.get("authType") if isinstance(block, dict) else None
    if config.get("type") == "mcp":
        return "mcp" if authentication(config) == "oauth" else None
    if config.get("type") != "api" or auth == "none":
        return None
    if isinstance(provider, str) and provider in ("google", "slack", "microsoft"):
        return provider
    return "generic" if auth == "oauth" else None


_SECTIONS = {"scope": "scope", "guidelines": "guidelines", "context": "context", "api notes": "apiNotes"}
_FENCED = re.compile(r"```json\n(.*?)\n?```", re.DOTALL)


def guide_sections(guide: str) -> Record:
    """What stands below `## Scope`, `Guidelines`, `Context`, `API Notes` (text) and `Cache` (its JSON).

    A section ends where the next heading of level 1 or 2 outside a fence begins; of two of a name the last counts.
    """
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    fenced = False
    for line in guide.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and line.startswith(("# ", "## ")):
            lines = []
            if line.startswith("## "):
                found[line[3:].lower()] = lines
        else:
            lines.append(line)
    sections: Record = {
        member: "\n".join(found[title]).strip() for title, member in _SECTIONS.items() if title in found
    }
    if (match := _FENCED.search("\n".join(found.get("cache", [])))) is not None:
        try:
            sections["cache"] = json_text.loads(match[1].encode())
        except ValueError:
            pass
    return sections


def info(value: Record) -> Record:
    """Whether a session can use it, and what of: computed, never stored."""
    told: Record = {
        "usable": why_unusable(value) is None,
        "needsAuthentication": needs_authentication(value),
        "credentials": list(slots(value)) if authentication(value) is not None else [],
    }
    if (service := sign_in(value)) is not None:
        told["signIn"] = service
    if isinstance(guide := value.get("guide"), str):
        told["guide"] = guide_sections(guide)
    return told


SOURCES = Noun(
    name="sources",
    id_pattern=re.compile(r"[a-z0-9][a-z0-9-]{0,199}", re.ASCII),
    id_member=None,
    light=(
        "id", "name", "slug", "enabled", "provider", "type", "icon", "tagline", "brand", "isAuthenticated",
        "connectionStatus", "lastTestedAt", "createdAt", "updatedAt",
    ),
    volatile=frozenset({"updatedAt"}),
    immutable=frozenset({"id", "slug", "createdAt"}),
    fields=tuple(FIELDS),
    validate=validate,
    info=info,
    refused=frozenset({SECRET}),
    new=new,
    touch=touch,
)  # fmt: skip
