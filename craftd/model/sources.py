"""Sources: what a session may draw on; one of three types, each with its block.  App 0.11.1."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from craftd.errors import Issue
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
from craftd.model.ids import choose_slug
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record

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
    validate=validator(check),
    new=new,
    touch=touch,
)  # fmt: skip
