"""The one table of methods and notifications: dispatch, `initialize`, schema, command line and docs follow from it.

A method is its params class; the row says what the class cannot.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from attrs import fields_dict, frozen

FIRST = "1.0"
"""The protocol version of everything that has been there from the start."""

Right: TypeAlias = Literal["none", "read", "write", "execute", "secrets", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "write", "execute", "secrets", "admin")

Scope: TypeAlias = Literal["workspace", "global", "either", "none"]
"""Where a method works: one workspace (omitted: the only one of the connection), the configuration shared by all,
either (omitted: the shared configuration), or nowhere."""

_NAME = re.compile(r"[a-z]+/[a-z][A-Za-z]*")

_Class = TypeVar("_Class", bound=type)


@frozen(kw_only=True)
class Method:
    """One row. right: what a connection needs. mutates: takes its turn among the changes of its connection.

    result: class of the answer, None = null. notification: a client may send it without an id.
    """

    name: str
    params: type
    result: Any
    right: Right
    mutates: bool
    scope: Scope
    since: str
    notification: bool = False

    @property
    def noun(self) -> str:
        return self.name.partition("/")[0]

    @property
    def verb(self) -> str:
        return self.name.partition("/")[2]

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.params.__doc__ or "")


@frozen(kw_only=True)
class Notification:
    """One message that the daemon sends by itself."""

    name: str
    params: type
    since: str

    @property
    def noun(self) -> str:
        return self.name.partition("/")[0]

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.params.__doc__ or "")


class Registry:
    """Rows by name. Filled while modules are imported, read-only afterwards."""

    def __init__(self) -> None:
        self._methods: dict[str, Method] = {}
        self._notifications: dict[str, Notification] = {}
        self.methods: Mapping[str, Method] = MappingProxyType(self._methods)
        self.notifications: Mapping[str, Notification] = MappingProxyType(self._notifications)

    def method(
        self,
        name: str,
        *,
        result: Any,
        right: Right,
        since: str = FIRST,
        scope: Scope | None = None,
        notification: bool = False,
    ) -> Callable[[_Class], _Class]:
        """Class decorator: this attrs class is what the params of *name* look like.

        Whether it mutates is a matter of its class (`contract.Mutation`); scope: "workspace" when it has a member
        of that name, else "none".
        """

        def add(params: _Class) -> _Class:
            self._check(name, self._methods)
            self._methods[name] = Method(
                name=name,
                params=params,
                result=result,
                right=right,
                mutates=getattr(params, "mutates", False),
                scope=scope or ("workspace" if "workspace" in fields_dict(params) else "none"),
                since=since,
                notification=notification,
            )
            return params

        return add

    def notification(self, name: str, *, since: str = FIRST) -> Callable[[_Class], _Class]:
        """Class decorator: this attrs class is what the params of the notification *name* look like."""

        def add(params: _Class) -> _Class:
            self._check(name, self._notifications)
            self._notifications[name] = Notification(name=name, params=params, since=since)
            return params

        return add

    @staticmethod
    def _check(name: str, rows: Mapping[str, Any]) -> None:
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not <noun>/<verb>")
        if name in rows:
            raise ValueError(f"{name} is there already")


REGISTRY = Registry()
"""The protocol. Complete after `import craftd.protocol.methods`."""

METHODS = REGISTRY.methods
NOTIFICATIONS = REGISTRY.notifications
method = REGISTRY.method
notification = REGISTRY.notification
