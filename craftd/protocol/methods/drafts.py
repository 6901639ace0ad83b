"""Drafts: what was typed for a session and not sent. Their events belong to no workspace, like their file."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Committed, DidCreate, Got, List, Mutation, Page, Ref, Updated
from craftd.protocol.registry import method, notification


@method("drafts/list", result=Page, right="read")
@frozen(kw_only=True)
class ListDrafts(List):
    """One page of the drafts of a workspace's sessions, without attachments unless they are asked for."""


@method("drafts/get", result=Got, right="read")
@frozen(kw_only=True)
class GetDraft(Ref):
    """The draft of a session: `value.text`, "" where there is none."""

    session: str


@method("drafts/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateDraft(Mutation):
    """Change the draft of a session; one that has neither text nor attachments any more is gone."""

    session: str
    text: str | None = None
    attachments: tuple[Record, ...] | None = None
    """All of them: `{path, name, content?}`."""
    expected_version: str | None = None
    """"": there must be none."""


@method("drafts/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteDraft(Mutation):
    """Forget the draft of a session."""

    session: str
    expected_version: str | None = None
    missing_ok: bool = False


@notification("drafts/didCreate")
@frozen(kw_only=True)
class DraftsDidCreate(DidCreate):
    """A draft is there."""
