"""Where a daemon is and how to begin with it: found by its configuration folder, or named by a URL."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from craftd.client import launch, transport
from craftd.client.connection import Connection, Heard
from craftd.client.launch import Absent, NotReached
from craftd.protocol import rendezvous

if TYPE_CHECKING:
    import socket
    from ssl import SSLContext

_T = TypeVar("_T")


class Address:
    """url: None = the daemon of the configuration folder, which is started if it does not run, unless start is False.

    workspaces: ids or folders the connection works with; None: those of the working directory, on this machine.
    """

    def __init__(
        self,
        url: str | None,
        *,
        name: str,
        workspaces: Iterable[str] | None,
        token: str | None,
        tls: SSLContext | None,
        start: bool,
        executor: bool,
    ) -> None:
        self._url = url
        self._places = rendezvous.find()
        self._name = name
        self._near = url is None or url.startswith("unix:")
        self._workspaces = None if workspaces is None else list(map(_choice, workspaces))
        self._token = token
        self._tls = tls
        self._start = start
        self._roles = ["viewer", "executor"] if executor else ["viewer"]

    async def dial(self, heard: Heard, lost: Callable[[Connection], None], *, may_start: bool) -> Connection:
        """A connection that is ready for requests.

        may_start: somebody stopped the daemon on purpose if not.
        Raises: NotReached, CallFailed, ConnectionLost.
        """
        connection = Connection(heard, lost)
        options: dict[str, Any] = {}
        if self._workspaces is not None:
            options["workspaces"] = self._workspaces
        try:
            if self._url is None:
                link = await self._find(may_start=may_start)
                connection.hello = link.hello
                await transport.adopt(_socket_of(link), connection.over)
            else:
                token = None if self._near else self._token_to_show(self._url)
                if token is not None:
                    options["token"] = token
                await transport.dial(self._url, connection.over, token, self._tls)
            await connection.initialize(self._name, options, _here() if self._near else [], self._roles)
        except OSError as error:
            connection.abort("given up")
            raise NotReached(f"{self._url}: {error}") from None
        except BaseException:
            connection.abort("given up")
            raise
        return connection

    async def _find(self, *, may_start: bool) -> launch.Link:
        if self._start and may_start:
            return await _in_thread(lambda: launch.connect(self._places, self._name))
        link = await _in_thread(lambda: launch.greet(self._places, self._name))
        if link is None:
            raise Absent(f"no daemon is running for {self._places.config}")
        return link

    def _token_to_show(self, url: str) -> str | None:
        """On this machine the token that lies in the configuration folder will do."""
        if self._token is None and transport.is_loopback(url):
            try:
                with open(self._places.token, encoding="ascii") as file:
                    return file.read().strip()
            except FileNotFoundError:
                return None
        return self._token


async def _in_thread(find: Callable[[], _T]) -> _T:
    """What blocks, beside the loop. When the caller is cancelled, what is found is let go of."""
    finding = asyncio.ensure_future(asyncio.to_thread(find))
    try:
        return await asyncio.shield(finding)
    except asyncio.CancelledError:
        finding.add_done_callback(_let_go)
        raise


def _let_go(found: asyncio.Future[Any]) -> None:
    if not found.cancelled() and found.exception() is None and found.result() is not None:
        found.result().close()


def _socket_of(link: launch.Link) -> socket.socket:
    import socket

    return socket.socket(fileno=link.sock.detach())


def _choice(workspace: str) -> dict[str, str]:
    """A workspace as `initialize` names it: what looks like a folder is one."""
    if os.sep in workspace or workspace.startswith(("~", ".")):
        return {"path": os.path.realpath(os.path.expanduser(workspace))}
    return {"id": workspace}


def _here() -> list[dict[str, str]]:
    """The working directory as LSP names it; it may be gone."""
    from urllib.parse import quote

    try:
        here = os.getcwd()
    except FileNotFoundError:
        return []
    return [{"uri": "file://" + quote(os.fsencode(here)), "name": os.path.basename(here)}]
