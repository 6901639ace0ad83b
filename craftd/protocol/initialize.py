"""craftd's part of `initialize`: `initializationOptions.craft`, and `capabilities.experimental.craft` of both sides."""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, fields, frozen

from craftd.errors import InvalidRequest
from craftd.protocol import codec
from craftd.protocol.rendezvous import PROTOCOL


@frozen(kw_only=True)
class Choice:
    """A workspace by registry id or by folder."""

    id: str | None = None
    path: str | None = None


@frozen(kw_only=True)
class Options:
    """What a client asks for. open: existing, register (add a workspace folder to the known ones), never."""

    workspaces: tuple[Choice, ...] | None = None
    open: Literal["existing", "register", "never"] = "existing"
    token: str | None = field(default=None, repr=False)


@frozen(kw_only=True)
class Abilities:
    """What a client can do. protocol: major.minor; roles: viewer, executor."""

    protocol: str | None = None
    approvals: bool = False
    roles: tuple[str, ...] = ("viewer",)


@frozen(kw_only=True)
class Wishes:
    """All that decides which workspaces a connection works with. folders: paths that an editor has open."""

    options: Options
    abilities: Abilities
    folders: tuple[str, ...] = ()


@frozen(kw_only=True)
class OpenWorkspace:
    """One workspace of the connection and where it stands."""

    id: str
    name: str
    path: str
    epoch: str
    revision: int
    read_only: bool


@frozen(kw_only=True)
class Opened:
    """What the wishes led to. epoch: of the global scope. features: name -> what is on."""

    epoch: str
    read_only: bool
    workspaces: tuple[OpenWorkspace, ...] = ()
    features: dict[str, Any]


@frozen(kw_only=True)
class Welcome(Opened):
    """What the daemon announces. methods, notifications: complete, to be tested for membership."""

    protocol: str
    client_id: str
    pid: int
    rights: tuple[str, ...]
    methods: tuple[str, ...]
    notifications: tuple[str, ...]
    limits: dict[str, int]


def token_of(params: Any) -> str | None:
    """The token in params of `initialize`, whatever else is in them."""
    for name in ("initializationOptions", "craft", "token"):
        params = params.get(name) if isinstance(params, dict) else None
    return params if isinstance(params, str) else None


def options_of(initialization_options: Any) -> Options:
    """Strict: a misspelt option is refused.  Raises: InvalidParams."""
    given = initialization_options.get("craft") if isinstance(initialization_options, dict) else None
    return codec.structure(Options, given)


def abilities_of(experimental: Any) -> Abilities:
    """Lenient about members of newer clients.

    Raises: InvalidParams; InvalidRequest for another major version.
    """
    given = experimental.get("craft") if isinstance(experimental, dict) else None
    if isinstance(given, dict):
        known = {codec.camel(member.name) for member in fields(Abilities)}
        given = {name: value for name, value in given.items() if name in known}
    abilities = codec.structure(Abilities, given)
    check_major(abilities.protocol)
    return abilities


def check_major(protocol: str | None) -> None:
    """Raises: InvalidRequest when *protocol* is of another major version than ours; None is whatever we speak."""
    if protocol is not None and protocol.partition(".")[0] != PROTOCOL.partition(".")[0]:
        raise InvalidRequest(f"protocol {protocol} is not spoken here", {"supported": [PROTOCOL]})
