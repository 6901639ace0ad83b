"""What a call can fail with. The classes by name are in `craftd.client.errors`."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from typing import Any


class CallFailed(Exception):
    """The daemon answered a request with an error: `code`, `message` and `data` as sent.

    Members of `data` are attributes too, by their Python names: `failure.current`, `failure.retry_after_ms`; None where
    the daemon did not say.
    """

    def __init__(self, code: int, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def name(self) -> str:
        """What a program branches on where it knows no class: `data.code`."""
        return str(self.data.get("code", "Error"))

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.data.get("retryable") is True

    @property
    def resource(self) -> dict[str, Any] | None:
        """Which record is meant: `{noun, id, workspace?}`."""
        found: dict[str, Any] | None = self.data.get("resource")
        return found

    if not TYPE_CHECKING:  # type checkers read what the classes declare

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not any(name in cls.__annotations__ for cls in type(self).__mro__[:-3]):
                raise AttributeError(name)
            first, *rest = name.split("_")
            return self.data.get(first + "".join(map(str.title, rest)))


class ConnectionLost(Exception):
    """The connection ended before the answer came.

    maybe_done: the request may have been carried out; False: it never was.
    """

    def __init__(self, why: str = "the daemon closed the connection", *, maybe_done: bool = False) -> None:
        super().__init__(why)
        self.maybe_done = maybe_done


def failure_of(error: Any) -> CallFailed:
    """The exception for the `error` member of an answer."""
    from craftd.client.errors import ERRORS  # there is a failure: time for the classes

    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    return ERRORS.get(str(data.get("code")), CallFailed)(error.get("code"), error.get("message"), data)
