"""Files of the configuration folder that hold no records: what may stand in them.  App 0.11.1.

Members nobody knows are kept and are nobody's business, except in a theme, where the app refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import evolve

from craftd.errors import Issue
from craftd.model.checks import Check, flag, listing, nullable, one_of, shape, text, whole
from craftd.model.records import Record
from craftd.model.workspaces import LOCAL_SERVERS, mode, slug, thinking

_text = text()
_filled = text(empty=False)


def time(value: Any, path: str) -> Iterator[Issue]:
    """Milliseconds since 1970 UTC, not 1970 itself."""
    wrong = list(whole(value, path))
    yield from wrong
    if not wrong and value == 0:
        yield Issue(path=path, message="must be more than 0", code="schema")


# config.json

CONNECTION_SLUG: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?", re.ASCII)

OLD_PROVIDERS: Final = ("openai", "openai_compat", "copilot", "anthropic_compat", "bedrock", "vertex")
"""What the app makes one of the others of when it starts."""

PAIRS: Final = {
    "anthropic": ("api_key", "oauth"),
    "pi": ("api_key", "oauth", "iam_credentials", "environment", "none"),
    "pi_compat": ("api_key_with_endpoint", "none"),
}
"""How one may sign in to each kind of provider."""

AUTHS: Final = (
    "api_key", "api_key_with_endpoint", "oauth", "iam_credentials", "bearer_token", "service_account_file",
    "environment", "none",
)  # fmt: skip


def _model(value: Any, path: str) -> Iterator[Issue]:
    """A model's id, or an object that has one."""
    if not isinstance(value, str):
        yield from _described(value, path)


_described = shape(
    {
        "id": _filled, "name": _text, "shortName": _text, "description": _text, "provider": _text,
        "contextWindow": whole, "supportsThinking": flag, "supportsImages": flag,
    },
    required=("id",),
)  # fmt: skip

CONNECTION_FIELDS: Final[dict[str, Check]] = {
    "slug": text(pattern=CONNECTION_SLUG, what="must be letters, digits and inner hyphens"),
    "name": _filled,
    "providerType": one_of(*PAIRS, *OLD_PROVIDERS),
    "authType": one_of(*AUTHS),
    "baseUrl": _text,
    "piAuthProvider": _text,
    "models": listing(_model),
    "defaultModel": _text,
    "modelSelectionMode": one_of("automaticallySyncedFromProvider", "userDefined3Tier"),
    "customEndpoint": shape({"api": one_of("openai-completions", "anthropic-messages"), "supportsImages": flag}),
    "createdAt": whole,
    "lastUsedAt": whole,
}

CONNECTION: Final = shape(CONNECTION_FIELDS, required=("slug", "name", "providerType", "authType", "createdAt"))


def pair(value: Any, path: str) -> Iterator[Issue]:
    """Whether a connection signs in the way its provider knows."""
    provider, auth = value.get("providerType"), value.get("authType")
    if isinstance(provider, str) and provider in PAIRS and isinstance(auth, str) and auth not in PAIRS[provider]:
        message = f"{provider} knows {', '.join(PAIRS[provider])}, not {auth}"
        yield Issue(path=path, message=message, severity="warning", code="provider-auth-pair")


_ENTRY = shape(
    {
        "id": _filled, "name": _filled, "slug": _text, "rootPath": _filled, "createdAt": time, "lastAccessedAt": whole,
        "iconUrl": _text, "mcpUrl": _text, "mcpAuthType": one_of("workspace_oauth", "workspace_bearer", "public"),
        "remoteServer": shape({"url": _text, "token": _text, "remoteWorkspaceId": _text}),
    },
    required=("id", "name", "rootPath", "createdAt"),
)  # fmt: skip

FLAGS: Final = (
    "notificationsEnabled", "autoCapitalisation", "spellCheck", "keepAwakeWhileRunning", "richToolDescriptions",
    "browserToolEnabled", "allowRemoteEvaluate", "extendedPromptCache", "enable1MContext", "rtkEnabled",
)  # fmt: skip

SETTINGS_FIELDS: Final[dict[str, Check]] = {
    **dict.fromkeys(FLAGS, flag),
    "defaultLlmConnection": _text,
    "defaultThinkingLevel": thinking,
    "colorTheme": _text,
    "sendMessageKey": one_of("enter", "cmd-enter"),
    "networkProxy": shape({"enabled": flag, "httpProxy": _text, "httpsProxy": _text, "noProxy": _text}),
    "serverConfig": shape({"enabled": flag, "port": whole, "tlsCertPath": _text, "tlsKeyPath": _text, "token": _text}),
    "gitBashPath": _text,
    "setupDeferred": flag,
    "dismissedUpdateVersion": _text,
}
"""What a person sets; the lists of workspaces and connections are beside it."""

_REGISTRY = shape(
    {
        "workspaces": listing(_ENTRY),
        "activeWorkspaceId": nullable(_text),
        "activeSessionId": nullable(_text),
        "llmConnections": listing(CONNECTION),
        **SETTINGS_FIELDS,
    },
    required=("workspaces", "activeWorkspaceId", "activeSessionId"),
)


def check_config(value: Any) -> list[Issue]:
    """The global `config.json`."""
    return list(_REGISTRY(value, "")) or list(_names(value))


def _names(value: Record) -> Iterator[Issue]:
    """What the list and the connections say of each other; *value* has passed the schema."""
    for ids, name, member in (
        (value["workspaces"], "workspaces", "id"),
        (connections(value), "llmConnections", "slug"),
    ):
        seen: set[str] = set()
        for at, one in enumerate(ids):
            if one[member] in seen:
                message = f"{one[member]!r} stands here for the second time"
                yield Issue(path=f"{name}.{at}.{member}", message=message, code="duplicate-id")
            seen.add(one[member])
    active = value["activeWorkspaceId"]
    if active is not None and active not in {entry["id"] for entry in value["workspaces"]}:
        yield Issue(path="activeWorkspaceId", message=f"there is no workspace {active!r}", code="active-id-unknown")
    for at, connection in enumerate(connections(value)):
        yield from pair(connection, f"llmConnections.{at}")
    chosen = value.get("defaultLlmConnection")
    if chosen is not None and chosen not in {connection["slug"] for connection in connections(value)}:
        yield Issue(
            path="defaultLlmConnection",
            message=f"there is no connection {chosen!r}",
            severity="warning",
            code="default-connection-unknown",
        )


def connections(value: Record) -> list[Record]:
    """Of a file that has passed the schema."""
    found: list[Record] = value.get("llmConnections", [])
    return found


# config-defaults.json

_DEFAULTS = shape(
    {
        "version": _text,
        "description": _text,
        "defaults": shape(
            {**dict.fromkeys(FLAGS, flag), "colorTheme": _text, "sendMessageKey": SETTINGS_FIELDS["sendMessageKey"]}
        ),
        "workspaceDefaults": shape(
            {
                "thinkingLevel": thinking,
                "permissionMode": mode,
                "cyclablePermissionModes": listing(mode),
                "localMcpServers": LOCAL_SERVERS,
            }
        ),
    }
)


def check_defaults(value: Any) -> list[Issue]:
    """`config-defaults.json`."""
    return list(_DEFAULTS(value, ""))


# preferences.json

LANGUAGES: Final = ("en", "es", "zh-Hans", "ja", "hu", "de", "pl")

PREFERENCE_FIELDS: Final[dict[str, Check]] = {
    "name": _text,
    "timezone": _text,
    "location": shape({"city": _text, "region": _text, "country": _text}),
    "notes": _text,
    "diffViewer": shape({"diffStyle": one_of("unified", "split"), "disableBackground": flag}),
    "includeCoAuthoredBy": flag,
    "uiLanguage": one_of(*LANGUAGES),
    "updatedAt": whole,
}

_PREFERENCES = shape(PREFERENCE_FIELDS)


def check_preferences(value: Any) -> list[Issue]:
    """`preferences.json`."""
    return list(_PREFERENCES(value, ""))


# drafts.json

_ATTACHMENT = shape(
    {
        "path": _filled,
        "name": _text,
        "content": shape({"type": one_of("image", "pdf", "text", "office", "audio", "unknown")}, required=("type",)),
    },
    required=("path", "name"),
)


def _attachment(value: Any, path: str) -> Iterator[Issue]:
    wrong = list(_ATTACHMENT(value, path))
    yield from wrong
    if not wrong and "content" not in value and not value["path"].startswith("/"):
        yield Issue(path=f"{path}.path", message="must be absolute where there is no content", code="schema")


check_draft = shape({"text": _text, "attachments": listing(_attachment)}, required=("text",))
"""One of `drafts.json`."""


def check_drafts(value: Any) -> Iterator[Issue]:
    """`drafts.json`: what was typed and not sent, by session. The app drops a draft of another shape when it saves."""
    drafts = value.get("drafts") if isinstance(value, dict) else None
    if not isinstance(drafts, dict):
        yield Issue(path="drafts", message="must be an object", code="schema")
        return
    for id, draft in drafts.items():
        for issue in check_draft(draft, f"drafts.{id}"):
            yield evolve(issue, severity="warning", code="draft-dropped")


# theme.json

COLOURS: Final = (
    "background", "foreground", "accent", "info", "success", "destructive", "paper", "navigator", "input", "popover",
    "popoverSolid",
)  # fmt: skip

_THEME_FIELDS: Final[dict[str, Check]] = {
    **dict.fromkeys(COLOURS, _filled),
    "mode": one_of("solid", "scenic"),
    "backgroundImage": _filled,
    "dark": shape(dict.fromkeys(COLOURS, _filled)),
}

_THEME = shape(_THEME_FIELDS)


def check_theme(value: Any) -> Iterator[Issue]:
    """`theme.json`: colours over those of the chosen theme."""
    yield from _THEME(value, "")
    if not isinstance(value, dict):
        return
    for name in value.keys() - _THEME_FIELDS.keys():
        yield Issue(path=name, message="is unknown: the app refuses the whole file", code="unknown-key")
    if not value:
        yield Issue(path="", message="says nothing; take the file away instead", code="empty-override")
    if value.get("mode") == "scenic" and "backgroundImage" not in value:
        yield Issue(path="backgroundImage", message="is needed for the mode scenic", code="image-absent")


# tool-icons/tool-icons.json

_SUFFIXES: Final = (".svg", ".png", ".jpg", ".jpeg", ".ico", ".webp", ".gif")


def _version(value: Any, path: str) -> Iterator[Issue]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        yield Issue(path=path, message="must be a whole number from 1 on", code="schema")


def _commands(value: Any, path: str) -> Iterator[Issue]:
    yield from listing(_filled)(value, path)
    if value == []:
        yield Issue(path=path, message="must name at least one command", code="schema")


_TOOL_ICONS = shape(
    {
        "version": _version,
        "tools": listing(
            shape(
                {"id": slug, "displayName": _filled, "icon": _filled, "commands": _commands},
                required=("id", "displayName", "icon", "commands"),
            )
        ),
    },
    required=("version", "tools"),
)


def check_tool_icons(value: Any) -> list[Issue]:
    """`tool-icons/tool-icons.json`."""
    return list(_TOOL_ICONS(value, "")) or list(_icons(value["tools"]))


def _icons(tools: list[Record]) -> Iterator[Issue]:
    ids: set[str] = set()
    commands: set[str] = set()
    for at, tool in enumerate(tools):
        if tool["id"] in ids:
            message = f"{tool['id']!r} stands here for the second time"
            yield Issue(path=f"tools.{at}.id", message=message, code="duplicate-id")
        ids.add(tool["id"])
        if not tool["icon"].lower().endswith(_SUFFIXES):
            message = f"ends with none of {', '.join(_SUFFIXES)}"
            yield Issue(path=f"tools.{at}.icon", message=message, severity="warning", code="odd-extension")
        for place, command in enumerate(tool["commands"]):
            if command in commands:
                message = f"{command!r} has an icon already"
                path = f"tools.{at}.commands.{place}"
                yield Issue(path=path, message=message, severity="warning", code="duplicate-command")
            commands.add(command)
