"""Records of the configuration folder: connections to providers, settings, preferences.  App 0.11.1.

Connections and settings are parts of the global `config.json`, which the list of workspaces lies in too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from craftd.errors import Issue
from craftd.model.app_config import CONNECTION, PREFERENCE_FIELDS, SETTINGS_FIELDS, pair
from craftd.model.checks import nullable, shape, text, validator
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.model.secret_places import secrets_in
from craftd.model.secret_text import names_a_secret

SECRET: Final = "secret-in-config"

NOT_SETTINGS: Final = ("workspaces", "llmConnections")
"""Members of the global `config.json` that have methods of their own."""


def _checked_connection(value: Record, old: Record | None) -> list[Issue]:
    return [*_connection(value, old), *_pair(value), *secrets(value, old)]


_connection = validator(CONNECTION)


def _pair(value: Record) -> list[Issue]:
    return list(pair(value, "authType"))


def secrets(value: Record, old: Record | None) -> Iterator[Issue]:
    """A secret that *old* does not show in the same place: it belongs into the credential file."""
    known = {} if old is None else _shown(old)
    for path, secret in _shown(value).items():
        if secret != known.get(path):
            message = "is a secret, which every client would see: store it with credentials/set"
            yield Issue(path=path, message=message, code=SECRET)


def _shown(value: Record) -> dict[str, str]:
    named = {name: member for name, member in value.items() if names_a_secret(name)}
    return secrets_in(value) | {name: member for name, member in named.items() if isinstance(member, str) and member}


def connection_slug(name: str) -> str:
    """What the app makes of a name; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).removeprefix("-").removesuffix("-")


def new_connection(value: Record, facts: Facts) -> tuple[str, Record]:
    """The slug, and the entry with it and its time."""
    name = value.get("name")
    base = connection_slug(name if isinstance(name, str) else "") or "connection"
    wanted = facts.id or value.get("slug")
    slug = wanted if isinstance(wanted, str) else _free(base, facts)
    first = {"slug": slug, **({"name": name} if "name" in value else {})}
    return slug, {**first, **value, "slug": slug, "createdAt": value.get("createdAt", facts.now)}


def _free(base: str, facts: Facts) -> str:
    return base if base not in facts.taken else next(s for n in count(2) if (s := f"{base}-{n}") not in facts.taken)


CONNECTIONS = Noun(
    name="connections",
    scope="global",
    id_pattern=re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,198}[A-Za-z0-9])?", re.ASCII),
    id_member="slug",
    immutable=frozenset({"slug", "createdAt"}),
    sort="name",
    fields=(
        "slug", "name", "providerType", "authType", "baseUrl", "piAuthProvider", "models", "defaultModel", "createdAt",
    ),
    validate=_checked_connection,
    new=new_connection,
)  # fmt: skip


_SETTINGS = validator(
    shape({**SETTINGS_FIELDS, "activeWorkspaceId": nullable(text()), "activeSessionId": nullable(text())})
)


def _checked_settings(value: Record, old: Record | None) -> list[Issue]:
    apart = [
        Issue(path=name, message="has methods of its own", code="immutable") for name in NOT_SETTINGS if name in value
    ]
    server = value.get("serverConfig")
    if isinstance(server, dict) and "token" in server:
        apart.append(Issue(path="serverConfig.token", message="is the app's own, and is shown to nobody", code=SECRET))
    return [*apart, *_SETTINGS(value, old)]


SETTINGS = Noun(
    name="settings",
    verbs=frozenset({"get", "update"}),
    scope="either",
    id_pattern=re.compile("settings"),
    id_member=None,
    validate=_checked_settings,
)

PREFERENCES = Noun(
    name="preferences",
    verbs=frozenset({"get", "update"}),
    scope="global",
    id_pattern=re.compile("preferences"),
    id_member=None,
    volatile=frozenset({"updatedAt"}),
    fields=tuple(PREFERENCE_FIELDS),
    validate=validator(shape(PREFERENCE_FIELDS)),
    touch=lambda value, facts: {**value, "updatedAt": facts.now},
)


def connections_of(config: Record) -> dict[str, Record]:
    """Usable entries by slug, in order; the first of equal slugs is meant."""
    found: dict[str, Record] = {}
    entries = config.get("llmConnections")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(slug := entry.get("slug"), str):
            found.setdefault(slug, entry)
    return found


def default_connection(config: Record) -> str | None:
    """The slug that counts: the one that was chosen, else the first."""
    known = connections_of(config)
    chosen = config.get("defaultLlmConnection")
    return chosen if isinstance(chosen, str) and chosen in known else next(iter(known), None)


def settings_of(config: Record) -> Record:
    """What clients see of the global `config.json`: all but the lists, and no secret."""
    shown = {name: member for name, member in config.items() if name not in NOT_SETTINGS}
    server = shown.get("serverConfig")
    if isinstance(server, dict) and "token" in server:
        shown["serverConfig"] = {name: member for name, member in server.items() if name != "token"}
    return shown


def with_connection(config: Record, slug: str, entry: Record | None) -> Record:
    """*config* with another entry under *slug*; None takes it out, and what names it as the default."""
    entries = config.get("llmConnections")
    entries = entries if isinstance(entries, list) else []
    there = slug in connections_of(config)
    kept: list[Any] = []
    for one in entries:
        if isinstance(one, dict) and one.get("slug") == slug:
            if entry is None or not there:
                continue
            one, there = entry, False
        kept.append(one)
    if entry is not None and slug not in connections_of({"llmConnections": kept}):
        kept.append(entry)
    changed = {**config, "llmConnections": kept}
    if entry is None and changed.get("defaultLlmConnection") == slug:
        left = next(iter(connections_of(changed)), None)
        changed = {name: member for name, member in changed.items() if name != "defaultLlmConnection"}
        if left is not None:
            changed["defaultLlmConnection"] = left
    elif entry is not None and default_connection(config) is None:
        changed["defaultLlmConnection"] = slug
    return changed


def named_wrongly(value: Record, config: Record, old: Mapping[str, Any]) -> Iterator[Issue]:
    """What a change of settings names that is not there."""
    chosen, active = value.get("defaultLlmConnection"), value.get("activeWorkspaceId")
    if chosen is not None and chosen != old.get("defaultLlmConnection") and chosen not in connections_of(config):
        yield Issue(path="defaultLlmConnection", message=f"there is no connections/{chosen}")
    entries = config.get("workspaces")
    ids = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    if active is not None and active != old.get("activeWorkspaceId") and active not in ids:
        yield Issue(path="activeWorkspaceId", message=f"there is no workspaces/{active}")
