"""Projects: what their verbs take beyond the contract."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Committed, Created, Delete, Get, Got, List, Mutation, Page, Ref, Updated
from craftd.protocol.methods.blobs import Content
from craftd.protocol.methods.statuses import Removed
from craftd.protocol.registry import method


@method("projects/delete", result=Removed, right="write")
@frozen(kw_only=True)
class DeleteProject(Delete):
    """Move a project to the trash; the sessions that belong to it are unbound first and stay."""

    work_done_token: int | str | None = None


@method("projects/get", result=Got, right="read")
@frozen(kw_only=True)
class GetProject(Get):
    """One project."""

    context: bool = False
    """Answer `info.context` too: what its sessions are told of it. It is read from the disk."""


@method("memory/get", result=Got, right="read")
@frozen(kw_only=True)
class GetMemory(Ref):
    """What the MEMORY.md of a project says: `value.text`, "" where there is none."""

    project: str


@method("memory/update", result=Updated, right="write")
@frozen(kw_only=True)
class UpdateMemory(Mutation):
    """Write the MEMORY.md of a project: the whole text, or something new on top of it."""

    project: str
    text: str | None = None
    prepend: str | None = None
    expected_version: str | None = None
    """"": there must be none."""


@method("assets/list", result=Page, right="read")
@frozen(kw_only=True)
class ListAssets(List):
    """One page of the uploads of a project, the newest first."""

    project: str


@method("assets/create", result=Created, right="write")
@frozen(kw_only=True)
class CreateAsset(Mutation):
    """Store an upload; a name that is taken gets a number. `value: {name}`."""

    project: str
    value: Record
    content: Content


@method("assets/delete", result=Committed, right="write")
@frozen(kw_only=True)
class DeleteAsset(Mutation):
    """Remove an upload."""

    project: str
    id: str
    """Its name."""
    expected_version: str | None = None
    missing_ok: bool = False
