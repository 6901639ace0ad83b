"""Sessions, sources, skills and automations of a workspace as one JSON value, and back; sessions for people, too."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from craftd.errors import Issue
from craftd.model.records import Record
from craftd.protocol.contract import Committed, Mutation, Ref
from craftd.protocol.methods.blobs import Content
from craftd.protocol.registry import method


@frozen(kw_only=True)
class ExportedBundle:
    """blob: for `blobs/read`; or the bundle itself. size: bytes. warnings: what is not in the bundle, and why."""

    blob: str | None = None
    bundle: Record | None = None
    size: int
    sha256: str
    warnings: tuple[Issue, ...]


@method("bundles/export", result=ExportedBundle, right="read")
@frozen(kw_only=True)
class ExportBundle(Ref):
    """Put resources into a bundle, without secrets. Sources and skills are named by their folders."""

    session: str | None = None
    """This one alone, as the app's session bundle."""
    sessions: tuple[str, ...] | Literal["all"] = ()
    """With everything in them: what was said may hold secrets."""
    sources: tuple[str, ...] | Literal["all"] = ()
    skills: tuple[str, ...] | Literal["all"] = ()
    automations: tuple[str, ...] | Literal["all"] = ()
    inline: bool = False
    """Answer the bundle instead of a blob; up to 8 MiB."""
    work_done_token: int | str | None = None


@frozen(kw_only=True)
class RenamedResource:
    """id: in the bundle. new_id: here."""

    id: str
    new_id: str


@frozen(kw_only=True)
class FailedResource:
    """error: as of an answer, by name. issues: where it is not valid."""

    id: str
    error: str
    message: str
    issues: tuple[Issue, ...] = ()


@frozen(kw_only=True)
class ImportedResources:
    """Ids as in the bundle, in its order. renamed: of those imported, which got another one."""

    imported: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    failed: tuple[FailedResource, ...] = ()
    renamed: tuple[RenamedResource, ...] = ()


@frozen(kw_only=True)
class ImportedBundle(Committed):
    sources: ImportedResources
    skills: ImportedResources
    automations: ImportedResources
    sessions: ImportedResources
    warnings: tuple[Issue, ...]
    """What sessions refer to and is not here; paths are members of the session."""


@method("bundles/import", result=ImportedBundle, right="write")
@frozen(kw_only=True)
class ImportBundle(Mutation):
    """Bring in what a bundle or a remote transfer holds: each resource whole or not at all, one after the other."""

    content: Content
    on_conflict: Literal["skip", "overwrite", "rename"] = "skip"
    """With a resource whose id is taken. What is overwritten goes into the trash, with the source's credentials."""
    work_done_token: int | str | None = None


@frozen(kw_only=True)
class ExportedMarkdown:
    """blob: for `blobs/read`; or the text itself. size: bytes. redacted: how many secrets were taken out."""

    blob: str | None = None
    text: str | None = None
    size: int
    sha256: str
    redacted: int


@method("sessions/exportMarkdown", result=ExportedMarkdown, right="read")
@frozen(kw_only=True)
class ExportMarkdown(Ref):
    """A session as Markdown for people, as it is stored at this moment."""

    id: str
    redact: bool = False
    """Take out what looks like a secret, and the name of the home folder."""
    tools: bool = False
    """Also what tools were given and what they gave."""
    inline: bool = False
    """Answer the text instead of a blob; up to 8 MiB."""
    work_done_token: int | str | None = None
