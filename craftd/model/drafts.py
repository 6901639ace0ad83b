"""Drafts: what was typed for a session and not sent. The app keeps those of all workspaces in one file, by session."""

from __future__ import annotations

from typing import Any, Final

from craftd.model.app_config import check_draft
from craftd.model.checks import validator
from craftd.model.ids import SESSION_ID
from craftd.model.noun import Noun
from craftd.model.records import Record


def is_draft(entry: Any) -> bool:
    """Whether the app would take it for one."""
    return not list(check_draft(entry, ""))


def is_empty(draft: Record) -> bool:
    return not draft.get("text") and not draft.get("attachments")


DRAFTS: Final = Noun(
    name="drafts",
    verbs=frozenset({"list", "get", "update", "delete"}),
    id_pattern=SESSION_ID,
    id_member=None,
    light=("text",),
    fields=("text",),
    validate=validator(check_draft),
)
