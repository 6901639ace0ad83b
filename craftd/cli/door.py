"""How commands reach the daemon, and which workspaces they mean."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from craftd.client import launch
from craftd.client.failures import CallFailed

if TYPE_CHECKING:
    import asyncio

    from craftd.client.client import Client, Connecting

in_workspace = click.option(
    "-w",
    "--workspace",
    metavar="ID|PATH",
    help="Work in this workspace: its id, slug or folder. Default: where you are, else all.",
)
as_json = click.option("--json", "json", is_flag=True, help="Print JSON, one value a line.")


class Door:
    """The client, for commands, which do one thing after the other.

    Its loop runs only while a command waits: a terminal that does not take what is printed holds up the daemon's
    events, which lapse there.
    """

    def __init__(self, runner: asyncio.Runner, client: Client, news: asyncio.Event) -> None:
        self._runner = runner
        self._client = client
        self._heard: deque[Any] = deque()
        self._news = news

    @property
    def hello(self) -> Mapping[str, Any]:
        return self._client.hello

    @property
    def selected(self) -> list[dict[str, Any]]:
        """The workspaces that the working directory is, contains or lies in."""
        workspaces: list[dict[str, Any]] = self._client.welcome.get("workspaces", [])
        return workspaces

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Raises: CallFailed, ConnectionLost."""
        return self._runner.run(self._client.call(method, params))

    def pages(self, method: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """All items of a `list` method."""

        async def collect() -> list[dict[str, Any]]:
            return [item async for item in self._client.pages(method, params)]

        return self._runner.run(collect())

    def subscribe(self, workspace: str | None, **wanted: Any) -> None:
        """Have what happens in a scope among the `notifications`."""
        from craftd.client.events import Lapsed, Told

        def hear(event: Any) -> None:
            if isinstance(event, Lapsed):
                scope = {} if workspace is None else {"workspace": workspace}
                event = {"method": "events/didLapse", "params": {**scope, **event._asdict()}}
            self._heard.append(event)
            self._news.set()

        self._runner.run(self._client.listen(Told(hear, **wanted), workspace))

    def notifications(self) -> Iterator[Any]:
        """Every notification, `{method, params}`, as it comes. Raises: ConnectionLost when the daemon ends."""
        while True:
            while not self._heard:
                self._news.clear()
                self._runner.run(_wait(self._news))
            event = self._heard.popleft()
            if isinstance(event, Exception):
                raise event
            yield event


@contextmanager
def connected(*, start: bool = True) -> Iterator[Door]:
    """A client of the daemon, which is started if it does not run. Raises: NotReached."""
    import asyncio

    from craftd.client.client import connect  # both take longer to import than the commands that need no daemon

    with asyncio.Runner() as runner:
        client = runner.run(_open(connect(name="craftd command line", start=start, reconnect=False)))
        try:
            yield Door(runner, client, asyncio.Event())
        finally:
            runner.run(client.close())


async def _open(connecting: Connecting) -> Client:
    return await connecting


async def _wait(news: asyncio.Event) -> None:
    await news.wait()


@contextmanager
def connected_if_running() -> Iterator[Door | None]:
    """A client of the running daemon, None if there is none."""
    with ExitStack() as stack:
        try:
            door = stack.enter_context(connected(start=False))
        except launch.Absent:
            door = None
        yield door


def name_of(workspace: str) -> str:
    """What the user typed as the protocol wants it: a folder gets its full name, everything else stays."""
    if os.sep in workspace or workspace.startswith(("~", ".")):
        return os.path.realpath(os.path.expanduser(workspace))
    return workspace


def scopes(client: Door, workspace: str | None) -> list[str]:
    """The workspace that was named; else those of the working directory; else all that are registered."""
    if workspace is not None:
        return [name_of(workspace)]
    selected = [str(found["id"]) for found in client.selected]
    return selected or [str(item["id"]) for item in client.pages("workspaces/list", {})]


def find_session(client: Door, workspace: str | None, id: str, **params: Any) -> tuple[str, Any]:
    """The workspace in which session *id* lives, and the answer of `sessions/get`.

    Where you are is only looked at first: an id is hardly ever in two workspaces.
    """
    candidates = scopes(client, workspace)
    if workspace is None:
        others = (str(item["id"]) for item in client.pages("workspaces/list", {}))
        candidates = list(dict.fromkeys([*candidates, *others]))
    missing: CallFailed | None = None
    for candidate in candidates:
        try:
            return candidate, client.call("sessions/get", {"workspace": candidate, "id": id, **params})
        except CallFailed as error:
            if error.name != "NotFound":
                raise
            missing = error
    raise missing or click.ClickException("no workspace is registered: craftd workspaces add PATH")
