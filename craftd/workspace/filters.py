"""Filter keys that sessions have beside their fields (protocol.md, Method list)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from craftd.errors import InvalidParams
from craftd.model import sessions
from craftd.model.expressions import ExpressionError
from craftd.model.labels import descendants
from craftd.workspace.index import Special, Test
from craftd.workspace.live import ACTIVITIES
from craftd.workspace.views import sieve

if TYPE_CHECKING:
    from craftd.workspace.workspace import Workspace


def session_filters(workspace: Workspace) -> dict[str, Special]:
    """key -> the test it makes of a wanted value. A damaged session matches every `state`."""
    return {
        "state": lambda wanted: _state(workspace, wanted),
        "label": lambda wanted: _label(workspace, wanted),
        "status": _status,
        "view": lambda wanted: _view(workspace, wanted),
        "project": lambda wanted: _field("project", "projectId", wanted),
        "parent": lambda wanted: _field("parent", "parentSessionId", wanted),
        "text": _text,
        "unread": lambda wanted: _flag("unread", "hasUnread", wanted),
        "flagged": lambda wanted: _flag("flagged", "isFlagged", wanted),
        "activity": lambda wanted: _activity(workspace, wanted),
        "hidden": lambda wanted: _flag("hidden", "hidden", wanted),
    }


def _strings(name: str, wanted: Any) -> set[str]:
    options = wanted if isinstance(wanted, list) else [wanted]
    if not all(isinstance(option, str) for option in options):
        raise InvalidParams.of(f"filter.{name}", "must be text or a list of texts")
    return set(options)


def _state(workspace: Workspace, wanted: Any) -> Test:
    states = _strings("state", wanted)
    unknown = states - set(sessions.STATES)
    if unknown:
        raise InvalidParams.of("filter.state", f"must be one of {', '.join(sessions.STATES)}")
    closed = {row.id for row in workspace.tables["statuses"].index if row.value.get("category") == "closed"}

    def test(row: Any) -> bool:
        return not row.readable or any(sessions.matches_state(row.value, state, closed) for state in states)

    return test


def _label(workspace: Workspace, wanted: Any) -> Test:
    """A label also stands for those below it; entries with a value (`id::value`) count by their id."""
    tree = workspace.labels()
    ids: set[str] = set()
    for id in _strings("label", wanted):
        ids |= {id, *descendants(id, tree)}

    def test(row: Any) -> bool:
        entries = row.value.get("labels")
        return isinstance(entries, list) and any(
            isinstance(entry, str) and entry.partition("::")[0] in ids for entry in entries
        )

    return test


def _status(wanted: Any) -> Test:
    ids = _strings("status", wanted)
    return lambda row: sessions.status_of(row.value) in ids


def _view(workspace: Workspace, wanted: Any) -> Test:
    """Sessions of any of these views; one for which an expression fails does not match it."""
    sieves = []
    for id in sorted(_strings("view", wanted)):
        row = workspace.tables["views"].index.get(id)
        if row is None:
            raise InvalidParams.of("filter.view", f"there is no view {id!r}")
        try:
            sieves.append(sieve(workspace, row.value.get("expression", "")))
        except ExpressionError as error:
            raise InvalidParams.of("filter.view", f"the expression of {id!r} cannot be used: {error}") from None
    return lambda row: any(matches(row) for matches in sieves)


def _field(name: str, field: str, wanted: Any) -> Test:
    ids = _strings(name, wanted)
    return lambda row: isinstance(id := row.value.get(field), str) and id in ids


def _flag(name: str, field: str, wanted: Any) -> Test:
    if not isinstance(wanted, bool):
        raise InvalidParams.of(f"filter.{name}", "must be true or false")
    return lambda row: (row.value.get(field) is True) == wanted


def _activity(workspace: Workspace, wanted: Any) -> Test:
    """A session of which nobody says anything is idle."""
    activities = _strings("activity", wanted)
    if not activities <= set(ACTIVITIES):
        raise InvalidParams.of("filter.activity", f"must be one of {', '.join(ACTIVITIES)}")
    live = workspace.place.live
    return lambda row: (live.activity(row.id) or "idle") in activities


def _text(wanted: Any) -> Test:
    if not isinstance(wanted, str):
        raise InvalidParams.of("filter.text", "must be text")
    needle = wanted.casefold()

    def test(row: Any) -> bool:
        return any(needle in str(row.value.get(name, "")).casefold() for name in ("name", "preview", "id"))

    return test
