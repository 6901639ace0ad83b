"""What people note beside a session."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Got, Mutation, Ref, Updated
from craftd.protocol.registry import method


@method("notes/get", result=Got, right="read")
@frozen(kw_only=True)
class GetNotes(Ref):
    """The notes of a session: `value.text`, "" where there are none."""

    session: str


@method("notes/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateNotes(Mutation):
    """Write the notes of a session."""

    session: str
    text: str
    expected_version: str | None = None
    """"": there must be none."""
