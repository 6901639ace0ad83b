"""The global scope: the configuration folder, the registry, and which workspaces are open."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from attrs import define, field

from craftd.errors import CraftdError, Forbidden, InvalidParams, InvalidState, Issue, NotFound, Ref, ServerCancelled
from craftd.model import credentials, portable, workspaces
from craftd.model.app_records import PREFERENCES
from craftd.model.credentials import Identity, Owner
from craftd.model.drafts import DRAFTS
from craftd.model.noun import Facts
from craftd.model.permissions import DEFAULT, PERMISSIONS
from craftd.model.records import Item, Record
from craftd.model.settings import Above
from craftd.model.workspaces import WORKSPACES
from craftd.store import atomic
from craftd.store.checked import ISSUES
from craftd.store.layout import DEFAULT_RULES, DRAFTS_SHELF, HOME_CHECKED, PREFERENCES_SHELF
from craftd.store.locks import FolderLock
from craftd.store.vault import FILE as VAULT
from craftd.store.vault import Keys
from craftd.store.watch import HOME, Watcher
from craftd.workspace import foreign
from craftd.workspace.commit import Commit, Done, Planned, Unit
from craftd.workspace.credentials import LookAtVault, SealAnew, Vault, VaultUnit
from craftd.workspace.eyes import Look
from craftd.workspace.files import Ground
from craftd.workspace.guard import FolderGuard, tidy
from craftd.workspace.index import Index
from craftd.workspace.journal import DISK, Change, Journal, Origin
from craftd.workspace.queue import Queue
from craftd.workspace.registry import (
    DEFAULTS,
    FOLDER_MISSING,
    REGISTRY,
    Known,
    Move,
    ObjectFile,
    Register,
    RegistryUnit,
    SettingsUnit,
    Unregister,
    can_be_path,
    folder_identity,
)
from craftd.workspace.rows import PlainRow
from craftd.workspace.tables import DocumentUnit, Table
from craftd.workspace.workspace import Listener, Surroundings, Workspace

log = logging.getLogger(__name__)

RULES = DEFAULT_RULES.fixed[DEFAULT]
PREFERENCES_FILE = PREFERENCES_SHELF.fixed[PREFERENCES.name]
DRAFTS_FILE = DRAFTS_SHELF.file
SINGLES = {RULES: PERMISSIONS.name, PREFERENCES_FILE: PREFERENCES.name, DRAFTS_FILE: DRAFTS.name}
"""Files of one document each, and whose records they hold."""

LOOK_EVERY = 30.0
"""Seconds between two looks at the registry and the app's lock, for what no watch told us."""

LOOK_EVERY_READ_ONLY = 1.0
"""The same while the app holds its lock: no file changes when it ends without taking it away."""


@define(eq=False)
class Home:
    """config: the configuration folder, links resolved. Made by `Home.of`."""

    id: None
    config: Path
    around: Surroundings
    journal: Journal
    index: Index
    file: ObjectFile
    defaults: ObjectFile
    """Of the app's, where it has put some."""
    vault: Vault
    tables: dict[str, Table]
    checked: Table
    known: dict[str, Known] = field(factory=dict)
    listeners: set[Listener] = field(factory=set)
    opened: Callable[[Workspace], None] = lambda workspace: None
    """Told of every workspace when it is open."""
    _open: dict[str, Workspace] = field(factory=dict)
    _opening: dict[str, asyncio.Task[Workspace]] = field(factory=dict)
    _thread: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="scope-global"))
    _queue: Queue = field(init=False)
    _tasks: list[asyncio.Task[Any]] = field(factory=list)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _watcher: Watcher | None = None
    _looking: asyncio.Task[None] | None = None
    _look_again: bool = False
    _closed: bool = False

    @classmethod
    def of(cls, config: Path, around: Surroundings) -> Home:
        """The scope of *config*; `start` brings it to life."""
        epoch = token_hex(4)
        index = Index(epoch, WORKSPACES.sort, fields=frozenset({"name", "path", "slug", "id", "createdAt"}))
        vault = Vault.of(config / VAULT, Keys(around.machine), around.clock, epoch)
        rules = Table(PERMISSIONS, DEFAULT_RULES, Index(epoch, PERMISSIONS.sort, fields=frozenset(PERMISSIONS.fields)))
        preferences = Table(
            PREFERENCES, PREFERENCES_SHELF, Index(epoch, PREFERENCES.sort, fields=frozenset(PREFERENCES.fields))
        )
        drafts = Table(DRAFTS, DRAFTS_SHELF, Index(epoch, DRAFTS.sort, fields=frozenset(DRAFTS.fields)))
        tables = {PERMISSIONS.name: rules, PREFERENCES.name: preferences, DRAFTS.name: drafts}
        file, defaults = ObjectFile(config / REGISTRY), ObjectFile(config / DEFAULTS)
        checked = Table(HOME_CHECKED.noun, HOME_CHECKED, Index(epoch, "id"))
        return cls(None, config, around, Journal(None, epoch), index, file, defaults, vault, tables, checked)

    async def start(self) -> None:
        """Read the registry and begin to watch it."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._first_look)
        self._queue = Queue(self, self._thread, self.around.pool)
        self._tasks.append(self.around.spawn(self._queue.run()))
        self.around.settings_changed = self._look_soon
        self.around.others = self.others
        self.around.above = self.above
        self._loop = asyncio.get_running_loop()
        self._watch()
        self._tasks.append(self.around.spawn(self._keep_looking()))

    def _first_look(self) -> None:
        for folder in (self.around.cache, self.around.cache.parent):  # our own: no lock protects them from anybody
            for path in atomic.leftovers(folder):
                atomic.discard(path)
        tidy(self.around.guard, (self.config, self.config / "workspaces"))
        self._read()
        for known in self.known.values():
            guard = FolderGuard(self.around.guard, FolderLock(known.entry.root))
            tidy(guard, (known.entry.root,))
            guard.give_back()

    def look_once(self) -> None:
        """Read everything that is there now, to be asked and not changed; instead of `start`."""
        self._read()
        unit = VaultUnit(self.vault, self._owners())
        unit.refresh()
        unit.publish()

    def _read(self) -> None:
        unit = self._registry_unit()
        unit.refresh()
        unit.publish()
        for key in SINGLES:
            single = self._single_unit(key)
            single.refresh()
            single.publish_first()
        for key in self.checked.shelf.keys(self.config):
            checked = self._checked_unit(key)
            checked.refresh()
            checked.publish_first()

    async def close(self) -> None:
        self._closed = True
        if self._watcher is not None:
            await self._loop.run_in_executor(self.around.pool, self._watcher.stop)
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for workspace in list(self._open.values()):
            await workspace.close()
        self._open.clear()
        self._queue.refuse(ServerCancelled("the daemon stops"))
        await self._queue.drained()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread.shutdown()

    # Which workspace is meant

    @property
    def open_workspaces(self) -> list[Workspace]:
        return list(self._open.values())

    def find(self, name: str) -> str | None:
        """Registry id of the workspace called *name*: an id, its own `ws_` id, a slug or a path; None = no such one.

        Raises InvalidParams when a slug or `ws_` id fits several.
        """
        if name in self.known:
            return self._first(name)
        if "/" in name or name.startswith("~"):
            wanted = Path(portable.expand_home(name, self.around.home))
            identity = folder_identity(wanted)
            for id, known in self.known.items():
                if known.entry.root == wanted or (identity and folder_identity(known.entry.root) == identity):
                    return self._first(id)
            return None
        fits = {self._first(id) for id, known in self.known.items() if name in known.names}
        if len(fits) > 1:
            raise InvalidParams.of("workspace", f"{name!r} fits several workspaces: {', '.join(sorted(fits))}")
        return next(iter(fits), None)

    def _first(self, id: str) -> str:
        """Further registry entries of one folder share the scope of the first."""
        row: PlainRow | None = self.index.get(id)
        return row.info.get("aliasOf", id) if row is not None else id

    def workspace(self, name: str) -> Workspace | asyncio.Task[Workspace]:
        """The open workspace, or the task that opens it. Raises NotFound, InvalidParams, ServerCancelled."""
        if self._closed:
            raise ServerCancelled("the daemon stops")
        id = self.find(name)
        if id is None:
            raise NotFound(Ref("workspaces", name))
        workspace = self._open.get(id)
        if workspace is not None:
            return workspace
        if id not in self._opening:
            self._opening[id] = asyncio.create_task(self._open_one(id))
        return self._opening[id]

    async def _open_one(self, id: str) -> Workspace:
        try:
            workspace = await Workspace.open(id, self.known[id].entry.root, self.around)
            self._open[id] = workspace
            self.opened(workspace)
            return workspace
        finally:
            del self._opening[id]

    def others(self) -> list[Path]:
        """Folders that may lie in a workspace and belong to somebody else: other workspaces, the daemon's own."""
        return [self.config, *(known.entry.root for known in self.known.values())]

    def above(self, id: str) -> Above:
        """The settings that count for all sessions of a workspace."""
        known = self.known.get(id)
        own = None if known is None else known.settings.value
        return Above(workspace=own or {}, shared=self.file.value or {}, defaults=self.defaults.value or {})

    def grounds(self) -> list[tuple[str, Ground]]:
        """Where the files of each workspace are, by registry id; inner ones before those they lie in."""
        others = self.others()
        roots = [(self._first(id), known.entry.root) for id, known in self.known.items()]
        grounds = [(id, Ground(Path(os.path.realpath(root)), root, others)) for id, root in roots]
        return sorted(grounds, key=lambda pair: -len(pair[1].root.parts))

    # Changes

    def now(self) -> int:
        return self.around.clock()

    async def commit(self, commit: Commit) -> Done:
        return await self._queue.commit(commit)

    def plan_creation(self, value: Record, *, adopt: bool) -> Register:
        """What `workspaces/create` is about to do; looks at the disk, changes nothing.

        Raises InvalidParams, InvalidState (a folder that is neither empty nor a workspace, unless *adopt*), Forbidden
        (who may work with files would have the tokens).
        """
        unknown = value.keys() - {"name", "path"}
        if unknown:
            raise InvalidParams.of(f"value.{sorted(unknown)[0]}", "is unknown: a new workspace has name and path")
        name, path = value.get("name"), value.get("path")
        if name is not None and (not isinstance(name, str) or not name.strip()):
            raise InvalidParams.of("value.name", "must be text that is not empty")
        if path is not None and not isinstance(path, str):
            raise InvalidParams.of("value.path", "must be text")
        if name is None and path is None:
            raise InvalidParams.of("value.name", "required (or a path)")
        if path is None:
            container = self.config / "workspaces"
            taken = {entry.name for entry in container.iterdir()} if container.is_dir() else set()
            root = container / workspaces.choose_slug(name or "", taken)
        else:
            root = self._place(path, "value.path")
        if root.exists() and not root.is_dir():
            raise InvalidState(f"{root} is not a folder", "file", ())
        self._refuse_own(root)
        settings = ObjectFile(root / REGISTRY)
        settings.read()
        if settings.problem is not None:
            raise InvalidState(f"{root}/config.json {settings.problem}", "damaged", ())
        config = None
        if settings.value is None:
            if root.is_dir() and any(root.iterdir()) and not adopt:
                message = f"{root} is neither empty nor a workspace; say adopt: true to make it one, its files stay"
                raise InvalidState(message, "not-empty", ("adopt",))
            shown = name or root.name or "Untitled"
            config = workspaces.new_config(shown, workspaces.choose_slug(shown), self.now(), self.around.pick)
        return Register(
            origin=Origin(kind="daemon"),
            id=workspaces.new_registry_id(self.around.pick),
            root=root,
            name=name or str((settings.value or {}).get("name") or root.name),
            config=config,
            home=self.around.home,
        )

    def _place(self, path: str, member: str) -> Path:
        """Raises: InvalidParams."""
        if not (path.startswith(("/", "~", "$HOME", "${HOME}")) and can_be_path(path)):
            raise InvalidParams.of(member, "must be absolute, or begin with ~")
        return Path(portable.expand_home(path, self.around.home, cwd="/"))

    async def move(self, id: str, path: str, expected: str | None, origin: Origin, connection: object) -> Done:
        """The folder of a workspace lies at *path* now. The answer is Updated.

        Raises: InvalidParams, InvalidState (no workspace there, or another one), Forbidden.
        """
        root = self._place(path, "path")
        settings = ObjectFile(root / REGISTRY)
        settings.read()
        if settings.value is None or settings.problem is not None:
            raise InvalidState(f"{root} is no workspace", "no-workspace", ("workspaces/create",))
        self._refuse_own(root)
        done = await self.commit(
            Move(
                origin=origin,
                connection=connection,
                id=id,
                root=root,
                settings=settings,
                home=self.around.home,
                expected=expected,
            )
        )
        await self._close_unlisted()
        return done

    def _refuse_own(self, root: Path) -> None:
        real = root.resolve()
        if self.config.is_relative_to(real) or real.is_relative_to(self.config / "craftd"):
            raise Forbidden(f"{root} holds craftd's own files, tokens among them", path=str(root))

    async def unregister(self, commit: Unregister) -> Done:
        done = await self.commit(commit)
        workspace = self._open.pop(commit.id, None)
        if workspace is not None:
            await workspace.close()
        return done

    @staticmethod
    def check_id(id: str) -> None:
        if WORKSPACES.id_pattern.fullmatch(id) is None:
            raise InvalidParams.of("id", f"must match {WORKSPACES.id_pattern.pattern}")

    def preview(self, commit: Register) -> Item:
        """The item that *commit* would make; nothing is done. Raises what the commit would."""
        planned: Item = commit.plan(self._registry_unit(), self.now()).answer
        return planned

    def facts(self) -> Facts:
        return Facts(now=self.now(), pick=self.around.pick, home=self.around.home)

    def item(self, name: str) -> Item:
        """Raises NotFound."""
        id = name if name in self.known else self.find(name)
        row: PlainRow | None = self.index.get(id) if id is not None else None
        if row is None:
            raise NotFound(Ref("workspaces", name))
        return row.item()

    def credential_id(self, id: str) -> str:
        """*id* with the first of the registry's entries for a workspace's folder, whichever of them it names."""
        identity = credentials.parse(id)
        if identity is None or not identity.of_workspace or identity.parts[0] not in self.known:
            return id
        return Identity(identity.type, (self._first(identity.parts[0]), *identity.parts[1:])).account

    def issues(self) -> dict[str, list[Issue]]:
        """What is wrong with the files of the configuration folder, and which registered folders are not there."""
        found: dict[str, list[Issue]] = {}
        if self.vault.known.issues:
            found[VAULT] = self.vault.known.issues
        for table in (*self.tables.values(), self.checked):
            found |= table.issues()
        for known in self.known.values():
            found |= {issue.path: [issue] for issue in known.issues() if issue.code == FOLDER_MISSING}
        return found

    def tell_missed(self) -> None:
        """Somebody listens now. Which workspaces there were before is not remembered: nothing was missed."""

    # What the queue needs (Backing)

    def open_unit(self, key: str) -> Unit:
        if key == REGISTRY:
            return self._registry_unit()
        if key == VAULT:
            return VaultUnit(self.vault, self._owners())
        if key in SINGLES:
            return self._single_unit(key)
        if key.startswith(ISSUES):
            return self._checked_unit(key)
        id = key.partition("/")[2]
        known = self.known.get(id)
        if known is None:
            raise NotFound(Ref("workspaces", id))
        row: PlainRow | None = self.index.get(id)
        return SettingsUnit(key, known, self.index, row.info.get("aliasOf") if row is not None else None)

    def _registry_unit(self) -> RegistryUnit:
        return RegistryUnit(self.around.home, self.file, self.defaults, self.index, self.known, self.around.pick)

    def _single_unit(self, key: str) -> DocumentUnit:
        table = self.tables[SINGLES[key]]
        return DocumentUnit(key, self.config, table, self.facts(), table.documents.get(key), table.records(key))

    def _checked_unit(self, key: str) -> DocumentUnit:
        return DocumentUnit(key, self.config, self.checked, self.facts(), self.checked.documents.get(key), {})

    def _owners(self) -> list[Owner]:
        """The workspaces that credentials may be of; of several entries of one folder the first."""
        found: dict[object, Owner] = {}
        for id, known in self.known.items():
            own = (known.settings.value or {}).get("id")
            owner = Owner(id, known.entry.root.name, own if isinstance(own, str) else None)
            found.setdefault(folder_identity(known.entry.root) or id, owner)
        return list(found.values())

    def preparation(self, key: str, commits: Sequence[Commit]) -> None:
        return None

    def prepared(self, unit: Unit, result: Any) -> None: ...

    def abandoned(self, result: Any) -> None: ...

    def settled(self, units: Sequence[Unit]) -> None: ...

    @contextmanager
    def writing(self, unit: Unit) -> Iterator[None]:
        """The settings of a workspace lie in its folder, so its lock counts too."""
        if not isinstance(unit, SettingsUnit):
            with self.around.guard.writing():
                yield
            return
        open_one = self._open.get(unit.known.entry.id)
        if open_one is not None:
            with open_one.guard.writing():
                yield
            return
        guard = FolderGuard(self.around.guard, FolderLock(unit.known.entry.root))
        try:
            with guard.writing():
                yield
        finally:
            guard.give_back()

    def announce(self, change: Change) -> None:
        for listener in list(self.listeners):
            listener(None, change)

    # Looking

    async def look(self) -> None:
        """Notice changes of the registry and of the settings of its workspaces."""
        await self._queue.commit(LookAtRegistry(origin=DISK))
        await self._close_unlisted()

    async def look_at_credentials(self) -> None:
        """Notice changes of the credential file, and of whose its entries are."""
        await self._queue.commit(LookAtVault(origin=DISK))
        if self.vault.known.outdated and not self.around.guard.read_only:
            try:
                await self._queue.commit(SealAnew(origin=DISK))
            except ServerCancelled:
                raise
            except CraftdError as error:
                log.info("%s stays sealed with an old key for now: %s", VAULT, error)

    async def sync(self) -> None:
        """Barrier: everything done to files and asked of the queue before this call is published after it."""
        await self._loop.run_in_executor(self.around.pool, self.around.guard.look)
        await self.look()
        for key in SINGLES:
            await self._queue.commit(Look(origin=DISK, key=key))
        for key in sorted(await self._loop.run_in_executor(self.around.pool, self._differences)):
            await self._queue.commit(Look(origin=DISK, key=key))
        await self.look_at_credentials()

    def _differences(self) -> set[str]:
        return foreign.changed_documents(self.config, self.checked)

    async def _close_unlisted(self) -> None:
        """Somebody else took a workspace out of the registry, or moved it."""
        for id, workspace in list(self._open.items()):
            known = self.known.get(id)
            if known is None or not workspace.is_at(known.entry.root):
                del self._open[id]
                await workspace.close()

    def _watch(self) -> None:
        self._watcher = Watcher(self.config, self._paths_changed, self._watch_lost, HOME)
        self._watcher.start()
        self._tasks.append(self.around.spawn(self._look_once(self._watcher)))

    async def _look_once(self, watcher: Watcher) -> None:
        """What changed before the watches stood."""
        await self._loop.run_in_executor(self.around.pool, watcher.ready.wait)
        self._look_soon()

    def _paths_changed(self, paths: set[str]) -> None:
        named = {REGISTRY, DEFAULTS, VAULT, *SINGLES, self.around.guard.lock.path.name}
        if paths & named or any(HOME_CHECKED.keys_of(path) for path in paths):
            self._loop.call_soon_threadsafe(self._look_soon)

    def _watch_lost(self, reason: str) -> None:
        log.warning("the configuration folder: %s", reason)
        self._loop.call_soon_threadsafe(self._look_soon)

    def _look_soon(self) -> None:
        if self._closed:
            return
        if self._looking is not None and not self._looking.done():
            self._look_again = True
            return
        self._looking = self.around.spawn(self._look_until_quiet())
        self._tasks.append(self._looking)

    async def _look_until_quiet(self) -> None:
        while True:
            self._look_again = False
            try:
                await self.sync()
            except ServerCancelled:
                return
            except CraftdError as error:
                log.warning("the configuration folder: %s", error)
            if not self._look_again:
                return

    async def _keep_looking(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY_READ_ONLY)
            now = time.monotonic()
            if self.around.guard.read_only or now - last >= LOOK_EVERY:
                last = now
                self._tasks = [task for task in self._tasks if not task.done()]
                self._look_soon()


@define(eq=False, kw_only=True)
class LookAtRegistry(Commit):
    """The unit does the work."""

    promises = False

    @property
    def unit(self) -> str:
        return REGISTRY

    def plan(self, unit: Unit, now: int) -> Planned:
        return Planned(None)
