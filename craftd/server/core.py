"""The running daemon: owns the scopes, the locks, the listeners and their end."""

from __future__ import annotations

import asyncio
import errno
import logging
import logging.handlers
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from craftd.errors import (
    Corrupt,
    CraftdError,
    Forbidden,
    InvalidParams,
    InvalidRequest,
    IoError,
    NotFound,
    Ref,
    Unauthenticated,
)
from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol import rendezvous
from craftd.protocol.initialize import Opened, OpenWorkspace, Wishes
from craftd.protocol.rendezvous import PROTOCOL, VERSION, Card, Places
from craftd.server.auth import NOTHING, Auth, Grant, Tokens
from craftd.server.blobs import Blobs
from craftd.server.connection import Connection
from craftd.server.daemon import Network
from craftd.server.dispatch import Call, Dispatcher
from craftd.server.listeners import listen
from craftd.server.network import Listener, open_all
from craftd.server.signins import SignIns
from craftd.server.stdio import serve_stdio
from craftd.store import atomic
from craftd.store.locks import AppLock
from craftd.workspace import annotations as marks
from craftd.workspace import app_records, attachments, drafts, permissions, project_files, reading, session_files
from craftd.workspace.guard import Guard
from craftd.workspace.home import Home
from craftd.workspace.journal import Origin
from craftd.workspace.registry import can_be_path
from craftd.workspace.workspace import Surroundings, Workspace

log = logging.getLogger(__name__)

IDLE_SECONDS = 300.0
"""An auto-started daemon ends after this long without a client."""
GIVE_BACK_SECONDS = 60.0
"""The app's lock goes back this long after the last change,"""
GIVE_BACK_ALONE_SECONDS = 5.0
"""or this long after the last client has left."""
HOUSE_SECONDS = 1.0
"""Between two looks at whether one of these times is over."""
RELEASE_TRIES = 5
"""How often everything is folded before the app's lock goes back although changes keep coming."""
STOP_SECONDS = 5.0
"""For clients to take the answers to what they had asked before the daemon stops."""
LOG_BYTES = 5 * 1024 * 1024
HANDLES = 8192
"""Open files and connections of the process."""

_FOR_ALL = frozenset(
    {"workspaces/list", "workspaces/get", "workspaces/update", "daemon/sync"}
    | {f"credentials/{verb}" for verb in ("list", "set", "delete", "status", "reveal")}
)
"""What of the global scope a token for some workspaces opens; the handlers show it only those."""
_SHOWN = ("HOME", "PATH", "LANG", "TZ", "CRAFT_CONFIG_DIR", "XDG_RUNTIME_DIR")
"""Variables that `daemon/status` shows; none that could hold a secret."""


@define(eq=False)
class Daemon:
    """What the dispatcher serves (its `Core`). network: ways in beside the Unix socket; None: only stdin and stdout."""

    places: Places
    auto: bool
    exclusive: bool
    guard: Guard
    network: Network | None
    auth: Auth
    started_at: int = field(factory=lambda: time.time_ns() // 1_000_000)
    socket: str | None = None
    listeners: list[Listener] = field(factory=list)
    home: Home = field(init=False)
    dispatcher: Dispatcher = field(init=False)
    blobs: Blobs = field(init=False)
    sign_ins: SignIns = field(factory=lambda: SignIns(lambda: time.time_ns() // 1_000_000))
    _stopping: asyncio.Event = field(factory=asyncio.Event)
    _reason: str = "stop"
    _alone_since: float | None = field(factory=time.monotonic)
    _loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)

    # The dispatcher's questions

    async def authenticate(self, connection: Connection, token: str | None) -> None:
        if connection.caller is None or (token is None and connection.grant is not None):
            return
        grant = await self.auth.grant(token, connection.caller)
        if connection.grant is not None and connection.grant != grant:
            raise InvalidRequest("this connection has shown another token before")
        connection.grant = grant

    def scope(self, name: str | None, call: Call) -> Any:
        if name is None:
            if call.grant.workspaces is not None and call.method.name not in _FOR_ALL:
                raise Forbidden("this token is for some workspaces, not for what they share", scope="workspaces")
            return self.home
        return self.home.workspace(name if call.grant.workspaces is None else self.reached(name, call.grant))

    def reached(self, name: str, grant: Grant) -> str:
        """Registry id of the workspace called *name*. Raises: NotFound, also where *grant* does not lead."""
        try:
            id = self.home.find(name)
        except InvalidParams:  # fits several, which may be none of its business
            if grant.workspaces is None:
                raise
            id = None
        if id is None or id not in self.reachable(grant):
            raise NotFound(Ref("workspaces", name))
        return id

    def reachable(self, grant: Grant) -> frozenset[str]:
        """Registry ids of all workspaces that *grant* reaches."""
        if grant.workspaces is None:
            return frozenset(self.home.known)
        return frozenset(id for name in grant.workspaces & self.home.known.keys() if (id := self.home.find(name)))

    async def initialize(self, connection: Connection, wishes: Wishes) -> Opened:
        opened: list[Workspace] = []
        for id in await self._wanted(wishes, connection.grant or NOTHING):
            workspace = self.home.workspace(id)
            opened.append(workspace if isinstance(workspace, Workspace) else await asyncio.shield(workspace))
        self._alone_since = None
        described = tuple(map(self._described, opened))
        connection.readings = tuple(
            (shown.name or workspace.id, workspace.first_reading)
            for shown, workspace in zip(described, opened, strict=True)
        )
        return Opened(
            epoch=self.home.journal.epoch,
            read_only=self.guard.read_only,
            workspaces=described,
            features={"fsync": "data", "relay": True, "blobs": True},
        )

    async def _wanted(self, wishes: Wishes, grant: Grant) -> list[str]:
        """Registry ids of the workspaces a client wants to work with and may, each once. Raises: NotFound."""
        ids: list[str] = []
        options = wishes.options
        may_register = options.open == "register" and grant.workspaces is None and "write" in grant.rights
        if options.workspaces is not None:
            for choice in options.workspaces:
                name = choice.id or choice.path or ""
                if grant.workspaces is not None:
                    ids.append(self.reached(name, grant))
                    continue
                id = self.home.find(name) or (await self._register(choice.path) if may_register else None)
                if id is None:
                    raise NotFound(Ref("workspaces", name))
                ids.append(id)
        else:
            for folder in wishes.folders:
                ids += await self._around(folder)
                if not ids and may_register and (id := await self._register(folder)) is not None:
                    ids.append(id)
            if grant.workspaces is not None:
                ids = [id for id in ids if id in self.reachable(grant)]
        if options.open == "never":
            there = {workspace.id for workspace in self.home.open_workspaces}
            ids = [id for id in ids if id in there]
        return list(dict.fromkeys(ids))

    async def _around(self, folder: str) -> list[str]:
        """Workspaces that are *folder*, contain it, or lie in it."""
        if not can_be_path(folder):
            return []
        roots = {id: known.entry.root for id, known in self.home.known.items()}
        return [self.home.find(id) or id for id in await asyncio.to_thread(_near, folder, roots)]

    async def _register(self, path: str | None) -> str | None:
        """Put a workspace folder into the registry; None if it is none."""
        if path is None or not await asyncio.to_thread(os.path.isfile, os.path.join(path, "config.json")):
            return None
        commit = self.home.plan_creation({"path": path}, adopt=False)
        commit.origin = Origin(kind="client")
        done = await self.home.commit(commit)
        id: str = done.answer.id
        return id

    async def item(self, call: Call, id: str) -> Any:
        try:
            if call.method.noun == "credentials":
                row = self.home.vault.find(id)
                return None if row is None else row.item()
            if call.method.noun == "permissions":
                return permissions.item(call.scope, id)
            if call.method.noun in ("settings", "connections", "preferences") and call.scope is self.home:
                return app_records.item(self.home, call.method.noun, id)
            if call.method.noun == "drafts":
                draft = self.home.tables["drafts"].find(id)
                return drafts.empty(id) if draft is None else draft.item()
            if call.method.noun == "settings":
                return app_records.of_workspace(self.home.item(call.scope.id))
            if call.scope is self.home:
                return self.home.item(id)
            if call.method.noun == "messages":
                return await reading.one(call.scope, call.params.session, id)
            if call.method.noun == "annotations":
                return await marks.one(call.scope, call.params.session, call.params.message, id)
            if call.method.noun == "attachments":
                return await attachments.item(call.scope, call.params.session, id)
            if call.method.noun in ("plans", "notes"):
                return await session_files.item(call.scope, call.method.noun, call.params.session, id)
            if call.method.noun in ("memory", "assets"):
                return await project_files.item(call.scope, call.method.noun, call.params.project, id)
            return call.scope.verbs.item(call.method.noun, id)
        except CraftdError:
            return None

    def hint(self, paths: Iterable[str]) -> None:
        for workspace in self.home.open_workspaces:
            workspace.hint(paths)

    def gone(self, connection: Connection) -> None:
        self.blobs.release(connection)
        self.sign_ins.gone(connection)
        if not self.dispatcher.connections:
            self._alone_since = time.monotonic()

    def _follows_files(self, workspace: str, session: str) -> bool:
        """Whether a client asked for the files of this very session."""
        for connection in self.dispatcher.connections.values():
            asked = connection.outbox.subscriptions.get(workspace)
            if asked is not None and asked.wants_files and asked.sessions is not None and session in asked.sessions:
                return True
        return False

    # What is asked about the daemon

    def _described(self, workspace: Workspace) -> OpenWorkspace:
        return OpenWorkspace(
            id=workspace.id,
            name=str(self.home.item(workspace.id).value.get("name", "")),
            path=str(workspace.place.root),
            epoch=workspace.epoch,
            revision=workspace.revision,
            read_only=workspace.read_only,
        )

    def status(self, grant: Grant) -> dict[str, Any]:
        """What *grant* may know: others, and the machine, are no business of who has some workspaces only."""
        reachable = self.reachable(grant)
        status = self._status([one for one in self.home.open_workspaces if one.id in reachable])
        if grant.workspaces is not None:
            for name in ("clients", "environment", "listeners", "socket", "configDir", "holder"):
                del status[name]
        return status

    def _status(self, workspaces: list[Workspace]) -> dict[str, Any]:
        now = time.time_ns() // 1_000_000
        return {
            "pid": os.getpid(),
            "version": VERSION,
            "protocol": PROTOCOL,
            "configDir": self.places.config,
            "socket": self.socket,
            "listeners": self.listening(),
            "startedAt": self.started_at,
            "uptimeMs": now - self.started_at,
            "auto": self.auto,
            "readOnly": self.guard.read_only,
            "holder": self.guard.holder,
            "holdsAppLock": self.guard.held,
            "memoryBytes": _resident_bytes(),
            "clients": [
                {"id": one.id, "name": one.name, "transport": one.kind} for one in self.dispatcher.connections.values()
            ],
            "workspaces": [workspace.status() for workspace in workspaces],
            "environment": {name: os.environ[name] for name in _SHOWN if name in os.environ},
        }

    def listening(self) -> list[dict[str, Any]]:
        """Where clients can connect."""
        unix = [] if self.socket is None else [{"kind": "unix", "address": self.socket, "tls": False}]
        return unix + [{"kind": one.kind, "address": one.address, "tls": one.tls} for one in self.listeners]

    # Life

    async def revoke(self, id: str, asking: Connection) -> None:
        """Make a token worthless and end its connections, but that of who asks.  Raises: NotFound, Corrupt, OSError."""
        await self.auth.revoke(id)
        for connection in tuple(self.dispatcher.connections.values()):
            if connection.grant is not None and connection.grant.token == id and connection is not asking:
                connection.revoke(Unauthenticated("the token was revoked"))

    async def release(self) -> None:
        """Bring every file up to date and give the app's lock back.  Raises: IoError, the lock is still held."""
        tries = 0
        while True:
            for workspace in self.home.open_workspaces:
                await workspace.fold_all()
            if self.exclusive:
                return
            tries += 1
            unless = self._unsettled if tries < RELEASE_TRIES else lambda: False
            if await self._give_back(unless):
                return

    async def _give_back(self, unless: Callable[[], bool] = lambda: False) -> bool:
        try:
            return await asyncio.to_thread(self.guard.give_back, unless)
        except OSError as error:
            why = error.strerror or str(error)
            name = errno.errorcode.get(error.errno or 0, "EIO")
            raise IoError(name, f"{self.guard.lock.path} cannot be given back: {why}") from error

    def _unsettled(self) -> bool:
        """Whether something came meanwhile that is not written, or not folded. From any thread."""
        return any(not workspace.read_only and workspace.unsettled for workspace in self.home.open_workspaces)

    def stop(self, reason: str) -> None:
        self._reason = reason
        self._stopping.set()

    def may_write_changed(self) -> None:
        """From any thread: read-only began or ended."""
        self._loop.call_soon_threadsafe(self._announce)

    def _announce(self) -> None:
        params: dict[str, Any] = {"readOnly": self.guard.read_only}
        if self.guard.holder is not None:
            params["holder"] = self.guard.holder
            log.warning("read-only while %s holds %s", self.guard.holder, self.guard.lock.path)
        for connection in self.dispatcher.subscribers():
            whole = connection.grant is not None and connection.grant.workspaces is None
            shown = params if whole else {"readOnly": params["readOnly"]}
            connection.notify("daemon/didChange", shown)

    def _workspace_opened(self, workspace: Workspace) -> None:
        workspace.listeners.add(self.dispatcher.deliver)
        workspace.guard.changed = self._writer_changed
        if workspace.read_only:
            log.warning("%s: read-only while %s has the folder", workspace.place.root, workspace.guard.holder)
        if not workspace.protected:
            log.warning(
                "%s: this file system has no locks; two machines are not protected from each other",
                workspace.place.root,
            )
        # Whoever has listened since it was open before missed what happened in between.
        self.dispatcher.lapse(workspace.id, "epoch", workspace.epoch, workspace.revision)
        self._announce_workspaces()

    def _writer_changed(self) -> None:
        """From any thread: another daemon took a folder, or left it."""
        self._loop.call_soon_threadsafe(self._announce_workspaces)

    def _announce_workspaces(self) -> None:
        """Which workspaces are open, and whether they can be changed."""
        described = []
        for one in self.home.open_workspaces:
            shown: dict[str, Any] = {"id": one.id, "path": str(one.place.root), "readOnly": one.read_only}
            if one.guard.holder is not None:
                shown["holder"] = one.guard.holder
            described.append(shown)
        for connection in self.dispatcher.subscribers():
            reachable = self.reachable(connection.grant or NOTHING)
            theirs = [shown for shown in described if shown["id"] in reachable]
            connection.notify("daemon/didChange", {"workspaces": theirs})

    async def _keep_house(self) -> None:
        """Give the lock back when nobody needs it, end when nobody is there."""
        next_try = 0.0
        while True:
            await asyncio.sleep(HOUSE_SECONDS)
            now = time.monotonic()
            alone = 0.0 if self._alone_since is None else now - self._alone_since
            if self.dispatcher.connections:
                self._alone_since, alone = None, 0.0
            quiet = now - self.guard.last >= GIVE_BACK_SECONDS or alone >= GIVE_BACK_ALONE_SECONDS
            if self.guard.held and quiet and not self.exclusive and now >= next_try:
                try:
                    await self.release()
                except IoError as error:
                    log.warning("%s", error)
                    next_try = now + GIVE_BACK_SECONDS
            if self.auto and alone >= IDLE_SECONDS:
                self.stop("idle")

    async def run(self) -> None:
        """Serve until stopped."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop, "stop")
        async with asyncio.TaskGroup() as group:

            def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
                return group.create_task(work)

            with ThreadPoolExecutor(8, thread_name_prefix="pool") as pool:
                around = Surroundings(
                    guard=self.guard,
                    pool=pool,
                    spawn=spawn,
                    home=os.path.expanduser("~"),
                    cache=Path(self.places.cache),
                )
                from craftd.server import handlers  # noqa: F401 (registers every method)

                self.home = Home.of(Path(self.places.config), around)
                around.is_followed = self._follows_files
                self.blobs = Blobs(Path(self.places.blobs), pool)
                self.blobs.clear()
                self.dispatcher = Dispatcher(self)
                self.home.opened = self._workspace_opened
                self.home.listeners.add(self.dispatcher.deliver)
                self.guard.changed = self.may_write_changed
                if self.exclusive:
                    self.guard.permit()
                await self.home.start()
                server = None
                self.dispatcher.start()
                if self.network is None:
                    spawn(self._serve_stdio())
                else:
                    try:
                        server = await self._listen(self.network)
                    except OSError:
                        await self.home.close()  # else its tasks would be waited for
                        raise
                house = spawn(self._keep_house())
                await self._stopping.wait()
                house.cancel()
                await self._shut(server)

    async def _serve_stdio(self) -> None:
        await serve_stdio(self.dispatcher)
        self.stop("stop")

    async def _listen(self, network: Network) -> asyncio.Server:
        """Open the ports that are wanted, and the socket in the first folder that is safe; tell where they are."""
        if network.max_connections is not None:
            self.dispatcher.max_connections = network.max_connections
        if network.tcp is not None or network.ws is not None:
            try:
                await asyncio.to_thread(self.auth.tokens.ensure_local)
            except Corrupt as error:
                raise OSError(str(error)) from None
            self.listeners = await open_all(network, self.dispatcher)
        reasons = []
        for folder in rendezvous.socket_folders(self.places):
            try:
                path = Path(folder) / "sock"
                server = await listen(path, self.dispatcher)
            except (OSError, rendezvous.Untrusted) as error:
                reasons.append(f"{folder}: {error}")
                continue
            self.socket = str(path)
            card = Card(os.getpid(), self.socket, listeners=self.listening())
            atomic.replace(Path(self.places.card), card.as_json(), mode=0o600)
            log.info("craftd %s serves %s at %s", VERSION, self.places.config, self.socket)
            for one in self.listeners:
                log.info("and at %s %s%s", one.kind, one.address, " (TLS)" if one.tls else "")
            return server
        raise OSError("no folder for the socket: " + "; ".join(reasons))

    async def _shut(self, server: asyncio.Server | None) -> None:
        """Refuse what is new, finish what has begun, tell everybody, let go of everything."""
        log.info("stopping (%s)", self._reason)
        self.dispatcher.stopping = True
        if server is not None:
            for one in (server, *(listener.server for listener in self.listeners)):
                one.close()
            for path in (Path(self.places.card), Path(self.socket or "")):
                path.unlink(missing_ok=True)
        self.dispatcher.broadcast("daemon/willStop", {"reason": self._reason, "graceMs": int(STOP_SECONDS * 1000)})
        await self.home.close()
        try:
            await self._give_back()
        except IoError as error:
            log.warning("%s", error)
        await self.dispatcher.close(STOP_SECONDS)
        self.blobs.close()
        log.info("stopped")


def _near(folder: str, roots: Mapping[str, Path]) -> list[str]:
    """Ids of those *roots* that are *folder*, contain it, or lie in it."""
    wanted = Path(os.path.realpath(folder))
    found = []
    for id, root in roots.items():
        real = Path(os.path.realpath(root))
        if (real == wanted or real in wanted.parents or wanted in real.parents) and os.path.isdir(real):
            found.append(id)
    return found


def serve(places: Places, *, auto: bool, exclusive: bool, network: Network | None) -> int:
    """Serve with the daemon's lock held; the exit code."""
    _log_to(places, to_stderr=not auto)
    _allow_handles()

    async def main() -> None:
        guard = Guard(AppLock(Path(places.config)), time.monotonic)
        await Daemon(places, auto, exclusive, guard, network, Auth(Tokens(places))).run()

    failed = False
    try:
        asyncio.run(main())
    except* OSError as group:
        failed = True
        for error in group.exceptions:
            log.error("cannot serve: %s", error)
    return 1 if failed else 0


def _allow_handles() -> None:
    """As many as the system lets us have, up to a number: who comes in crowds must not take them all."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HANDLES if hard == resource.RLIM_INFINITY else min(HANDLES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _log_to(places: Places, *, to_stderr: bool) -> None:
    """Time, place, what; never a body. Started by a client, stderr is the log file too, for what comes before this."""
    handlers: list[logging.Handler] = [
        logging.handlers.RotatingFileHandler(places.log, maxBytes=LOG_BYTES, backupCount=1)
    ]
    if to_stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    logging.raiseExceptions = False  # a log that cannot be written is no reason to write about it
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, handlers=handlers, force=True)


def _resident_bytes() -> int | None:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
