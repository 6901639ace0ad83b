"""Settings: what holds for a session, and which level says so.  App 0.11.1, which forgets some levels after a restart.

A level that says nothing, or nothing that can hold (a mode nobody knows, a connection that is gone), is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from attrs import field, frozen

from craftd.errors import Issue
from craftd.model import portable, sessions
from craftd.model.app_records import connections_of
from craftd.model.records import Record

NAMES = ("llmConnection", "model", "thinkingLevel", "permissionMode", "workingDirectory", "enabledSourceSlugs")
"""What is resolved, named as line 1 of a session names it."""

NO_DIRECTORY = "none"
DEFAULT_DIRECTORY = "user_default"

ANTHROPIC = "anthropic"
ANTHROPIC_MODEL = "claude-opus-4-8"
"""Where neither a level nor the connection names one."""

RETIRED = {"claude-opus-4-6": ANTHROPIC_MODEL, "claude-opus-4-5-20251101": ANTHROPIC_MODEL}

_NOTHING: list[str] = []

T = TypeVar("T")


@frozen(kw_only=True)
class Above:
    """What counts for all sessions of a workspace. workspace: its `config.json`; shared: that of the configuration
    folder; defaults: `config-defaults.json` there."""

    workspace: Record = field(factory=dict)
    shared: Record = field(factory=dict)
    defaults: Record = field(factory=dict)


@frozen(kw_only=True)
class Levels:
    """All that decides about one session. session: its value as clients see it. root: the workspace's folder.

    explicit: what a caller wants to use for once.
    """

    root: str
    home: str
    above: Above
    session: Record = field(factory=dict)
    project: Record = field(factory=dict)
    explicit: Record = field(factory=dict)


@frozen
class Effective:
    """What holds. level: explicit, session, project, workspace, global, connection (its default model), built-in.

    missing: it is a connection that is not there, and the session is bound to it.
    """

    value: Any
    level: str
    missing: bool = False

    def as_json(self) -> dict[str, Any]:
        members = {"value": self.value, "level": self.level}
        return {**members, "missing": True} if self.missing else members


def resolve(levels: Levels) -> dict[str, Effective]:
    """What holds for a session, by NAMES."""
    connection = _connection(levels)
    found = connections_of(levels.above.shared).get(connection.value) if connection.value is not None else None
    above, defaults = levels.above, _object(levels.above.defaults, "workspaceDefaults")
    own = _object(above.workspace, "defaults")
    chosen = [("explicit", levels.explicit), ("session", levels.session), ("workspace", own)]
    # What an automation started has nobody to ask, and does not inherit what was allowed to people.
    unattended = isinstance(levels.session.get("triggeredBy"), dict)
    modes = chosen[:2] if unattended else [*chosen, ("built-in", defaults)]
    thinking = [
        *((level, record.get("thinkingLevel")) for level, record in chosen),
        ("global", above.shared.get("defaultThinkingLevel")),
        ("built-in", defaults.get("thinkingLevel")),
    ]
    return {
        "llmConnection": connection,
        "model": _model([(level, record.get("model")) for level, record in chosen], found, connection),
        "thinkingLevel": _first(thinking, thinking_level, "medium"),
        "permissionMode": _first(
            ((level, record.get("permissionMode")) for level, record in modes),
            sessions.permission_mode,
            "safe" if unattended else "ask",
        ),
        "workingDirectory": _directory(levels),
        "enabledSourceSlugs": _first(
            ((level, record.get("enabledSourceSlugs")) for level, record in chosen), _slugs, _NOTHING
        ),
    }


def thinking_level(raw: object) -> str | None:
    """The level meant; None for anything else."""
    if raw == "think":
        return "medium"
    return raw if isinstance(raw, str) and raw in sessions.THINKING_LEVELS else None


def explicit_issues(explicit: Record) -> list[Issue]:
    """What is wrong with what a caller wants to use for once."""
    unknown = sorted(explicit.keys() - set(NAMES))
    if unknown:
        return [Issue(path=name, message=f"is none of {', '.join(NAMES)}") for name in unknown]
    judged = dict(explicit)
    if judged.get("workingDirectory") in (NO_DIRECTORY, DEFAULT_DIRECTORY):
        del judged["workingDirectory"]
    return sessions.validate(judged, {})


def with_directory(value: Record, levels: Levels) -> Record:
    """*value* of a new session with the working directory it is born with: of its project, else of its workspace.

    `user_default` is the same as saying nothing; `none` is none.
    """
    wanted = value.get("workingDirectory", DEFAULT_DIRECTORY)
    if wanted not in (NO_DIRECTORY, DEFAULT_DIRECTORY):
        return value
    placed = {name: member for name, member in value.items() if name != "workingDirectory"}
    if wanted == DEFAULT_DIRECTORY:
        paths = (_absolute(record.get("workingDirectory"), levels.home) for _, record in _inherited(levels))
        if (path := next(filter(None, paths), None)) is not None:
            placed["workingDirectory"] = path
    return placed


def _connection(levels: Levels) -> Effective:
    known = connections_of(levels.above.shared)
    stored = levels.session.get("llmConnection")
    if levels.session.get("connectionLocked") is True and isinstance(stored, str) and stored:
        return Effective(stored, "session", missing=stored not in known)
    wanted = (
        ("explicit", levels.explicit.get("llmConnection")),
        ("session", stored),
        ("workspace", _object(levels.above.workspace, "defaults").get("defaultLlmConnection")),
        ("global", levels.above.shared.get("defaultLlmConnection")),
        ("global", next(iter(known), None)),
    )
    return _first(wanted, lambda slug: slug if isinstance(slug, str) and slug in known else None, None)


def _model(wanted: list[tuple[str, Any]], connection: Record | None, chosen: Effective) -> Effective:
    """connection: the entry of the one that was *chosen*; without any it is Anthropic's own."""
    connection = {} if connection is None else connection
    provider = connection.get("providerType", None if chosen.missing else ANTHROPIC)
    default = connection.get("defaultModel")
    default = default if isinstance(default, str) and default else None
    listed = _models(connection)

    def usable(raw: object) -> str | None:
        if raw == "default":
            return default
        if raw == "fast":
            return next((id for id in listed if "haiku" in id), listed[-1] if listed else None)
        if not isinstance(raw, str) or not raw:
            return None
        if provider == ANTHROPIC:
            return None if raw.startswith("pi/") else RETIRED.get(raw, raw)
        return raw if not listed or raw in listed else None

    built_in = ANTHROPIC_MODEL if provider == ANTHROPIC else None
    return _first([*wanted, ("connection", default)], usable, built_in)


def _models(connection: Record) -> list[str]:
    models = connection.get("models")
    ids = (one.get("id") if isinstance(one, dict) else one for one in (models if isinstance(models, list) else ()))
    return [id for id in ids if isinstance(id, str)]


def _directory(levels: Levels) -> Effective:
    wanted = levels.explicit.get("workingDirectory")
    if wanted == NO_DIRECTORY:
        return Effective(levels.root, "explicit")
    own = () if wanted == DEFAULT_DIRECTORY else (("explicit", levels.explicit), ("session", levels.session))
    for level, record in (*own, *_inherited(levels)):
        if (path := _absolute(record.get("workingDirectory"), levels.home)) is not None:
            return Effective(path, level)
    return Effective(levels.root, "built-in")


def _inherited(levels: Levels) -> tuple[tuple[str, Record], ...]:
    """Where a session that has none gets its working directory from."""
    return ("project", levels.project), ("workspace", _object(levels.above.workspace, "defaults"))


def _absolute(raw: object, home: str) -> str | None:
    path = portable.expand_home(raw, home) if isinstance(raw, str) else ""
    return path if path.startswith("/") else None


def _slugs(raw: object) -> list[str] | None:
    return raw if isinstance(raw, list) and all(isinstance(slug, str) for slug in raw) else None


def _object(record: Record, name: str) -> Record:
    member = record.get(name)
    return member if isinstance(member, dict) else {}


def _first(wanted: Iterable[tuple[str, Any]], usable: Callable[[object], T | None], built_in: T | None) -> Effective:
    """The first of (level, raw value) that is usable."""
    for level, raw in wanted:
        if (value := usable(raw)) is not None:
            return Effective(value, level)
    return Effective(built_in, "built-in")
