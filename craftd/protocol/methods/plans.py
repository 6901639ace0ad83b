"""Plans of a session: Markdown files. To subscribers they are files: `files/didChange`."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Create, Created, Delete, Get, Got, List, Page, Update, Updated
from craftd.protocol.registry import method


@method("plans/list", result=Page, right="read")
@frozen(kw_only=True)
class ListPlans(List):
    """One page of a session's plans without their texts, the newest first."""

    session: str


@method("plans/get", result=Got, right="read")
@frozen(kw_only=True)
class GetPlan(Get):
    """One plan with its text."""

    session: str


@method("plans/create", result=Created, right="write")
@frozen(kw_only=True)
class CreatePlan(Create):
    """Write a plan down: `value: {title?, text?}`. Without an id the day and the title make its file name."""

    session: str


@method("plans/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdatePlan(Update):
    """Change the title or the text of a plan."""

    session: str


@method("plans/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeletePlan(Delete):
    """Remove a plan; if the session waits to carry it out, it waits no more."""

    session: str
