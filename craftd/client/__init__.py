"""The client library: `from craftd.client import connect`.  Nothing is imported before it is used: an editor waits."""

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from typing import Any

    from craftd.client.client import Client as Client
    from craftd.client.client import connect as connect
    from craftd.client.events import Events as Events
    from craftd.client.events import Lapsed as Lapsed
    from craftd.client.events import Position as Position
    from craftd.client.events import Reconnected as Reconnected
    from craftd.client.failures import CallFailed as CallFailed
    from craftd.client.failures import ConnectionLost as ConnectionLost
    from craftd.client.files import Changed as Changed
    from craftd.client.files import download as download
    from craftd.client.files import upload as upload
    from craftd.client.launch import NotReached as NotReached
    from craftd.client.mirror import Mirror as Mirror

_WHERE = {
    "client": ("Client", "connect"),
    "events": ("Events", "Lapsed", "Position", "Reconnected"),
    "failures": ("CallFailed", "ConnectionLost"),
    "files": ("Changed", "download", "upload"),
    "launch": ("NotReached",),
    "mirror": ("Mirror",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> "list[str]":
    return [*globals(), *_MODULES]
