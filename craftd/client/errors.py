"""Every failure that the daemon answers with, one class each: `except VersionConflict as failure: failure.current`.

Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.
"""

from __future__ import annotations

from craftd.client.failures import CallFailed

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from typing import Any


class ParseError(CallFailed):
    """The frame holds no JSON."""


class InvalidRequest(CallFailed):
    """Not a request, or not at this time of the connection's life."""


class MethodNotFound(CallFailed):
    """There is no such method, or this daemon does not serve it."""

    method: str


class InvalidParams(CallFailed):
    """Params of the wrong shape; every wrong member is named."""

    issues: list[dict[str, Any]]
    reason: str | None


class InternalError(CallFailed):
    """A fault of ours. The log has the traceback under *incident*; the client never does."""

    incident: str


class NotInitialized(CallFailed):
    """`initialize` comes first."""


class Cancelled(CallFailed):
    """The client took the request back."""


class ServerCancelled(CallFailed):
    """The daemon stops, or a lease lapsed."""


class NotFound(CallFailed):
    """No record has this id."""


class AlreadyExists(CallFailed):
    """The id is taken; `current` is what is there."""

    current: Any


class VersionConflict(CallFailed):
    """The record changed after the caller read it: reread, rebuild the patch, try again.

    current: `{version, item?}`, for a transcript `{tail}`.
    """

    current: dict[str, Any]


class InvalidState(CallFailed):
    """Not in the present state: `state`, and what is `allowed` in it."""

    state: str
    allowed: list[str]


class ValidationFailed(CallFailed):
    """The value breaks its noun's schema or points at something that is not there."""

    issues: list[dict[str, Any]]


class ReadOnly(CallFailed):
    """Somebody else holds the right to write; holder: `{pid?, name?}`."""

    holder: dict[str, Any]


class Forbidden(CallFailed):
    """A right is missing, or the path leads outside of what may be touched."""

    path: str | None
    scope: str | None


class Unauthenticated(CallFailed):
    """A token is needed."""


class TooLarge(CallFailed):
    """Larger than a limit of this protocol."""

    limit: int
    actual: int | None


class Busy(CallFailed):
    """Too much at once; again after `retryAfterMs`."""

    retry_after_ms: int


class Unsupported(CallFailed):
    """Known, but not available here."""

    feature: str


class StaleCursor(CallFailed):
    """From before a restart: start the list again."""


class Corrupt(CallFailed):
    """The file cannot be changed without losing what is in it: repair or delete it."""

    uri: str


class Unavailable(CallFailed):
    """Something this needs is not there now."""


class Timeout(CallFailed):
    """It took longer than it may."""


class IoError(CallFailed):
    """The disk refused. written: the new bytes are in place but perhaps not safe from a power loss.

    done, left: of a change of many records, how many are changed and how many are not.
    """

    errno: str
    written: bool
    done: int | None
    left: int | None


class Undecryptable(CallFailed):
    """The credentials cannot be opened: written on another machine or by another person, or damaged. Set them
    anew.
    """


ERRORS: dict[str, type[CallFailed]] = {
    "ParseError": ParseError,
    "InvalidRequest": InvalidRequest,
    "MethodNotFound": MethodNotFound,
    "InvalidParams": InvalidParams,
    "InternalError": InternalError,
    "NotInitialized": NotInitialized,
    "Cancelled": Cancelled,
    "ServerCancelled": ServerCancelled,
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "VersionConflict": VersionConflict,
    "InvalidState": InvalidState,
    "ValidationFailed": ValidationFailed,
    "ReadOnly": ReadOnly,
    "Forbidden": Forbidden,
    "Unauthenticated": Unauthenticated,
    "TooLarge": TooLarge,
    "Busy": Busy,
    "Unsupported": Unsupported,
    "StaleCursor": StaleCursor,
    "Corrupt": Corrupt,
    "Unavailable": Unavailable,
    "Timeout": Timeout,
    "IoError": IoError,
    "Undecryptable": Undecryptable,
}
