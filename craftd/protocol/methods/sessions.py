"""Sessions: what their five verbs take beyond the contract."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Committed, Delete, Get, Got, ItemJson
from craftd.protocol.registry import method


@frozen(kw_only=True)
class GotSession(Got):
    """messages: the last ones, if they were asked for."""

    messages: tuple[ItemJson, ...] | None = None


@method("sessions/get", result=GotSession, right="read")
@frozen(kw_only=True)
class GetSession(Get):
    """One session."""

    messages: int | None = None
    """Also give the last n messages."""


@method("sessions/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteSession(Delete):
    """Move a session to the trash."""

    permanent: bool = False
    """Remove it instead."""
