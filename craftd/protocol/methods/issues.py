"""Everything that is wrong with files of a workspace."""

from __future__ import annotations

from attrs import frozen

from craftd.errors import Issue
from craftd.model.records import Record
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method, notification


@frozen(kw_only=True)
class Issues(Position):
    """path: relative to the workspace."""

    items: tuple[Issue | Record, ...]


@method("issues/list", result=Issues, right="read", scope="either")
@frozen(kw_only=True)
class ListIssues(Ref):
    """What is wrong with the files of a workspace, or with one of them."""

    path: str | None = None
    partial_result_token: int | str | None = None


@frozen(kw_only=True)
class Validated:
    """issues: what `issues/list` would have if the text were the file; ranges are those of the text."""

    issues: tuple[Issue, ...]


@notification("issues/didChange")
@frozen(kw_only=True)
class IssuesDidChange(Position):
    """The complete list of one file."""

    workspace: str | None = None
    path: str
    issues: tuple[Issue, ...]
