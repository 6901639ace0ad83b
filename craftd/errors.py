"""Failures a caller can act on, one class each; the class name and its number are the wire's (protocol.md, Errors)."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import define, field, frozen


@frozen
class Ref:
    """Which record is meant: noun (plural), id, and the workspace's registry id (None = global scope)."""

    noun: str
    id: str
    workspace: str | None = None

    def __str__(self) -> str:
        return f"{self.noun}/{self.id}"


@frozen(kw_only=True)
class Issue:
    """One thing that is wrong with a value or a file; what every validator returns.

    path: dotted keys inside the value, or the file relative to the workspace. severity: error, warning, information.
    """

    path: str
    message: str
    severity: str = "error"
    code: str | None = None
    suggestion: str | None = None
    range: dict[str, Any] | None = None
    noun: str | None = None
    id: str | None = None

    def as_json(self) -> dict[str, Any]:
        names = ("path", "severity", "code", "message", "suggestion", "range", "noun", "id")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class CraftdError(Exception):
    """Base of all failures that reach a client. `str()` is for people; clients branch on the class name."""

    code: ClassVar[int]
    retryable: ClassVar[bool] = False
    within: str | None = None
    """Workspace (registry id) that was worked in: who works on files does not know it, so `ref` may lack it."""

    @property
    def name(self) -> str:
        return type(self).__name__

    def details(self) -> dict[str, Any]:
        """Members of `error.data` beside `code` and `retryable`."""
        return {}

    def data(self) -> dict[str, Any]:
        """`error.data` as sent."""
        ref: Ref | None = getattr(self, "ref", None)
        if ref is None:
            return {"code": self.name, "retryable": self.retryable, **self.details()}
        workspace = self.within if ref.workspace is None and ref.noun != "workspaces" else ref.workspace
        resource = _without_none(noun=ref.noun, id=ref.id, workspace=workspace)
        return {"code": self.name, "retryable": self.retryable, "resource": resource, **self.details()}


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@define(eq=False)
class _Said(CraftdError):
    """A failure whose text says everything."""

    message: str

    def __str__(self) -> str:
        return self.message


@define(eq=False)
class ParseError(_Said):
    """The frame holds no JSON."""

    code = -32700


@define(eq=False)
class InvalidRequest(_Said):
    """Not a request, or not at this time of the connection's life."""

    code = -32600
    extra: dict[str, Any] = field(factory=dict)

    def details(self) -> dict[str, Any]:
        return self.extra


@define(eq=False)
class MethodNotFound(CraftdError):
    """There is no such method, or this daemon does not serve it."""

    code = -32601
    method: str

    def __str__(self) -> str:
        return f"no method {self.method!r} here"

    def details(self) -> dict[str, Any]:
        return {"method": self.method}


@define(eq=False)
class InvalidParams(CraftdError):
    """Params of the wrong shape; every wrong member is named."""

    code = -32602
    issues: tuple[Issue, ...]
    reason: str | None = None

    @classmethod
    def of(cls, path: str, message: str, reason: str | None = None) -> InvalidParams:
        return cls((Issue(path=path, message=message),), reason)

    def __str__(self) -> str:
        return "; ".join(f"{issue.path}: {issue.message}" if issue.path else issue.message for issue in self.issues)

    def details(self) -> dict[str, Any]:
        issues = [{"path": issue.path, "message": issue.message} for issue in self.issues]
        return {"issues": issues, **_without_none(reason=self.reason)}


@define(eq=False)
class InternalError(CraftdError):
    """A fault of ours. The log has the traceback under *incident*; the client never does."""

    code = -32603
    incident: str

    def __str__(self) -> str:
        return f"internal error, incident {self.incident} in the daemon's log"

    def details(self) -> dict[str, Any]:
        return {"incident": self.incident}


@define(eq=False)
class NotInitialized(_Said):
    """`initialize` comes first."""

    code = -32002


@define(eq=False)
class Cancelled(_Said):
    """The client took the request back."""

    code = -32800
    retryable = True


@define(eq=False)
class ServerCancelled(_Said):
    """The daemon stops, or a lease lapsed."""

    code = -32802
    retryable = True


@define(eq=False)
class NotFound(CraftdError):
    """No record has this id."""

    code = 1001
    ref: Ref

    def __str__(self) -> str:
        return f"there is no {self.ref}"


@define(eq=False)
class AlreadyExists(CraftdError):
    """The id is taken; `current` is what is there."""

    code = 1002
    ref: Ref
    current: Any = None

    def __str__(self) -> str:
        return f"{self.ref} exists already"

    def details(self) -> dict[str, Any]:
        return _without_none(current=self.current)


@define(eq=False)
class VersionConflict(CraftdError):
    """The record changed after the caller read it: reread, rebuild the patch, try again.

    current: `{version, item?}`, for a transcript `{tail}`.
    """

    code = 1003
    retryable = True
    ref: Ref
    current: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.ref} was changed by somebody else"

    def details(self) -> dict[str, Any]:
        return {"current": self.current}


@define(eq=False)
class InvalidState(CraftdError):
    """Not in the present state: `state`, and what is `allowed` in it."""

    code = 1004
    message: str
    state: str
    allowed: tuple[str, ...] = ()
    ref: Ref | None = None

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return {"state": self.state, "allowed": list(self.allowed)}


@define(eq=False)
class ValidationFailed(CraftdError):
    """The value breaks its noun's schema or points at something that is not there."""

    code = 1005
    issues: tuple[Issue, ...]
    ref: Ref | None = None

    def __str__(self) -> str:
        return "; ".join(f"{issue.path}: {issue.message}" for issue in self.issues)

    def details(self) -> dict[str, Any]:
        return {"issues": [issue.as_json() for issue in self.issues]}


@define(eq=False)
class ReadOnly(CraftdError):
    """Somebody else holds the right to write; holder: `{pid?, name?}`."""

    code = 1006
    retryable = True
    holder: dict[str, Any] = field(factory=dict)

    def __str__(self) -> str:
        name = self.holder.get("name", "another program")
        pid = f" (pid {self.holder['pid']})" if "pid" in self.holder else ""
        return f"read-only while {name}{pid} runs"

    def details(self) -> dict[str, Any]:
        return {"holder": self.holder}


@define(eq=False)
class Forbidden(CraftdError):
    """A right is missing, or the path leads outside of what may be touched."""

    code = 1007
    message: str
    path: str | None = None
    scope: str | None = None

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return _without_none(path=self.path, scope=self.scope)


@define(eq=False)
class Unauthenticated(_Said):
    """A token is needed."""

    code = 1008


@define(eq=False)
class TooLarge(CraftdError):
    """Larger than a limit of this protocol."""

    code = 1009
    what: str
    limit: int
    actual: int | None = None

    def __str__(self) -> str:
        return f"{self.what} is larger than {self.limit} bytes"

    def details(self) -> dict[str, Any]:
        return _without_none(limit=self.limit, actual=self.actual)


@define(eq=False)
class Busy(CraftdError):
    """Too much at once; again after `retryAfterMs`."""

    code = 1010
    retryable = True
    message: str
    retry_after_ms: int = 100

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return {"retryAfterMs": self.retry_after_ms}


@define(eq=False)
class Unsupported(CraftdError):
    """Known, but not available here."""

    code = 1011
    message: str
    feature: str

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return {"feature": self.feature}


@define(eq=False)
class StaleCursor(_Said):
    """From before a restart: start the list again."""

    code = 1012
    retryable = True


@define(eq=False)
class Corrupt(CraftdError):
    """The file cannot be changed without losing what is in it: repair or delete it."""

    code = 1013
    message: str
    uri: str
    ref: Ref | None = None

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return {"uri": self.uri}


@define(eq=False)
class Unavailable(_Said):
    """Something this needs is not there now."""

    code = 1014
    retryable = True


@define(eq=False)
class Timeout(_Said):
    """It took longer than it may."""

    code = 1015
    retryable = True


@define(eq=False)
class IoError(CraftdError):
    """The disk refused. written: the new bytes are in place but perhaps not safe from a power loss.

    done, left: of a change of many records, how many are changed and how many are not.
    """

    code = 1016
    retryable = True
    errno: str
    message: str
    written: bool = False
    done: int | None = None
    left: int | None = None

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, Any]:
        return {"errno": self.errno, **_without_none(written=self.written or None, done=self.done, left=self.left)}


@define(eq=False)
class Undecryptable(_Said):
    """The credentials cannot be opened: written on another machine or by another person, or damaged. Set them anew."""

    code = 1017


ERRORS: dict[str, type[CraftdError]] = {
    cls.__name__: cls
    for cls in (
        ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError, NotInitialized, Cancelled,
        ServerCancelled, NotFound, AlreadyExists, VersionConflict, InvalidState, ValidationFailed, ReadOnly,
        Forbidden, Unauthenticated, TooLarge, Busy, Unsupported, StaleCursor, Corrupt, Unavailable, Timeout, IoError,
        Undecryptable,
    )
}  # fmt: skip
"""Every error that can reach a client, by its wire name."""
