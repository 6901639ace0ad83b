"""The global `config.json` and the settings of each workspace, as units of the global scope."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from craftd.errors import AlreadyExists, Corrupt, InvalidState, Issue, NotFound, Ref, VersionConflict
from craftd.model import json_text, portable, workspaces
from craftd.model import patch as patches
from craftd.model.noun import Facts
from craftd.model.records import Record, version_of
from craftd.model.workspaces import WORKSPACES
from craftd.store import atomic, confine, disk
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint
from craftd.store.entries import Entries
from craftd.store.layout import SHELVES
from craftd.store.locate import ABSENCE_MS
from craftd.workspace import app_records
from craftd.workspace.changes import Updated, refuse_errors, refuse_immutable
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.index import Index
from craftd.workspace.journal import Change
from craftd.workspace.rows import PlainRow

REGISTRY = "config.json"
DEFAULTS = "config-defaults.json"
FOLDER_MISSING = "folder-missing"
"""The one thing wrong with a workspace that its own list cannot say."""


@frozen
class Entry:
    """One line of the registry. root: absolute, `~` expanded; raw: the entry as stored."""

    id: str
    root: Path
    raw: Record

    @property
    def ref(self) -> Ref:
        return Ref("workspaces", self.id)


@define(eq=False)
class ObjectFile:
    """A JSON object file as last read. problem: why it could not be used; its bytes are then left alone."""

    path: Path
    value: Record | None = None
    fingerprint: Fingerprint | None = None
    problem: str | None = None

    def unchanged(self) -> bool:
        mark = atomic.glance(self.path)
        return mark == self.fingerprint and (mark is not None or not os.path.lexists(self.path))

    def read(self) -> None:
        """Read again; an unusable file keeps the last good value.

        A file that was there and whose folder is still may be missing for a moment: somebody is about to save.
        """
        deadline = time.monotonic() + ABSENCE_MS / 1000
        while True:
            try:
                data, self.fingerprint = atomic.read(self.path)
                break
            except (FileNotFoundError, NotADirectoryError):
                if self.fingerprint is None or not self.path.parent.is_dir() or time.monotonic() > deadline:
                    self.value, self.fingerprint, self.problem = None, None, None
                    return
            except OSError as error:
                self.fingerprint = atomic.glance(self.path)
                self.problem = f"cannot be read: {error.strerror}"
                return
            time.sleep(0.002)
        try:
            value = json_text.loads(data.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as error:
            self.problem = f"is not JSON: {error}"
            return
        if not isinstance(value, dict):
            self.problem = "is not a JSON object"
            return
        self.value, self.problem = value, None

    def write(self, value: Record) -> None:
        """Raises ForeignWrite, OSError; DirectoryNotFlushed when it is written, but not yet safe."""
        try:
            self.fingerprint = atomic.replace(self.path, json_text.dumps_indented(value), expect=self.fingerprint)
        except DirectoryNotFlushed as error:
            self.fingerprint, self.value = error.result, value
            raise
        self.value = value


def entries_of(config: Record | None, home: str) -> list[Entry]:
    """Usable entries of a parsed registry, in order; the first of equal ids is meant."""
    found: dict[str, Entry] = {}
    for raw in (config or {}).get("workspaces", ()):
        if not isinstance(raw, dict):
            continue
        id, root = raw.get("id"), raw.get("rootPath")
        if isinstance(id, str) and WORKSPACES.id_pattern.fullmatch(id) and isinstance(root, str) and can_be_path(root):
            found.setdefault(id, Entry(id, Path(portable.expand_home(root, home)), raw))
    return list(found.values())


def can_be_path(text: str) -> bool:
    """Whether the system takes *text* as a path at all: not empty, no NUL, no half of a character."""
    try:
        return text != "" and "\0" not in text and os.fsencode(text) != b""
    except UnicodeEncodeError:
        return False


def folder_identity(root: Path) -> tuple[int, int] | None:
    """(device, inode) of the folder, None where there is none: two entries with one identity are one scope."""
    try:
        found = root.stat()
    except (OSError, ValueError):  # ValueError: no path at all
        return None
    return (found.st_dev, found.st_ino)


@define(eq=False)
class Known:
    """A registered workspace: its entry and the settings in its folder. home: what `~` is."""

    entry: Entry
    settings: ObjectFile
    home: str

    @property
    def names(self) -> tuple[Any, ...]:
        """What it answers to beside its registry id: the `ws_` id and the slug of its settings, its folder's name."""
        stored = self.settings.value or {}
        return stored.get("id"), stored.get("slug"), self.entry.root.name

    def row(self, alias_of: str | None) -> PlainRow:
        stored = self.settings.value or {}
        name = stored.get("name") or self.entry.raw.get("name") or self.entry.root.name or "Untitled"
        value = {**workspaces.expanded(stored, self.home), "name": name, "path": str(self.entry.root)}
        info: dict[str, Any] = {}
        if not self.entry.root.is_dir():
            info["missing"] = True
        if alias_of is not None:
            info["aliasOf"] = alias_of
        if self.settings.problem is not None:
            info["issues"] = [issue.as_json() for issue in self.issues()]
        return PlainRow(
            self.entry.id, f"workspaces/{self.entry.id}", value, version_of(value, WORKSPACES.volatile), info, None
        )

    def issues(self) -> list[Issue]:
        path, id = str(self.entry.root), self.entry.id
        if not self.entry.root.is_dir():
            message = f"the folder {path} is not there"
            return [Issue(path=path, message=message, code=FOLDER_MISSING, noun="workspaces", id=id)]
        if self.settings.problem is not None:
            message, path = self.settings.problem, str(self.settings.path)
            return [Issue(path=path, message=message, code="config-unreadable", noun="workspaces", id=id)]
        return []


@define(eq=False)
class RegistryUnit(Unit):
    """The list of workspaces inside a round. defaults: looked at with it, written by the app alone.

    trees: folders to make before the list names them.
    """

    home: str
    file: ObjectFile
    defaults: ObjectFile
    index: Index
    known: dict[str, Known]
    pick: Callable[[int], int]
    key: str = REGISTRY
    trees: list[Tree] = field(factory=list)
    _staged: Record | None = None
    _rows: dict[str, PlainRow] = field(factory=dict)

    @property
    def dirty(self) -> bool:
        return self._staged is not None

    def config(self) -> Record:
        if self.file.problem is not None:
            raise Corrupt(f"config.json {self.file.problem}; nothing is written over it", self.file.path.as_uri())
        return self._staged or self.file.value or {"workspaces": [], "activeWorkspaceId": None, "activeSessionId": None}

    def entries(self) -> list[Entry]:
        return entries_of(self.config(), self.home)

    def stage(self, config: Record, tree: Tree | None = None) -> None:
        self._staged = config
        if tree is not None:
            self.trees.append(tree)

    def refresh(self) -> list[Change]:
        before = self.file.value
        if not self._rows:
            self._rows = {row.id: row for row in self.index}
        if not self.defaults.unchanged():
            self.defaults.read()
        if not self.file.unchanged() or self.known.keys() != {entry.id for entry in self._current()}:
            self.file.read()
            if self.file.value is not None and (problem := workspaces.registry_problem(self.file.value)):
                self.file.value, self.file.problem = None, problem
        changes = self._settle()
        if before is not None and self.file.problem is None:
            changes += app_records.differences(before, self.file.value or {})
        return changes

    def _current(self) -> list[Entry]:
        return entries_of(self.file.value, self.home)

    def _settle(self) -> list[Change]:
        """Bring `known` and the rows in line with the files; answers what is new for readers."""
        if self.file.problem is not None and self.file.value is None:
            return []  # the last good list stays
        current = {entry.id: entry for entry in self._current()}
        for id in [id for id in self.known if id not in current]:
            del self.known[id]
        owners: dict[tuple[int, int], str] = {}
        rows: dict[str, PlainRow] = {}
        for id, entry in current.items():
            known = self.known.get(id)
            if known is None or known.entry.root != entry.root:
                known = self.known[id] = Known(entry, ObjectFile(entry.root / REGISTRY), self.home)
            known.entry = entry
            if not known.settings.unchanged():
                known.settings.read()
            identity = folder_identity(entry.root)
            owner = owners.setdefault(identity, id) if identity is not None else id
            rows[id] = known.row(owner if owner != id else None)
        changes = [Change("workspaces/didDelete", "workspaces", {"id": id}) for id in self._rows if id not in rows]
        for id, row in rows.items():
            old = self._rows.get(id)
            if old is None:
                changes.append(Change("workspaces/didCreate", "workspaces", {"item": row.item().as_json()}))
            elif patch := patches.diff(old.value, row.value):
                members = {"changes": [{"id": id, "version": row.version}], "patch": patch}
                changes.append(Change("workspaces/didChange", "workspaces", members))
        self._rows = rows
        return changes

    def write(self) -> None:
        for tree in self.trees:
            try:
                tree.make()
            except DirectoryNotFlushed as error:
                # The list does not name it yet, so nothing is written that counts.
                raise OSError(error.errno, error.strerror, error.filename) from error
        if self._staged is not None:
            try:
                self.file.write(self._staged)
            finally:
                if self.file.value is self._staged:  # also when only its name is not safe yet
                    self._staged = None
                    self.trees.clear()
                    self._settle()

    def discard(self) -> None:
        self._staged = None
        for tree in reversed(self.trees):
            tree.undo()
        self.trees.clear()

    def publish(self) -> None:
        for id in [row.id for row in self.index if row.id not in self._rows]:
            self.index.remove(id)
        for row in self._rows.values():
            old = self.index.get(row.id)
            if old is None or old.value != row.value or old.info != row.info:
                self.index.put(row)


@define(eq=False)
class SettingsUnit(Unit):
    """`config.json` of one workspace inside a round."""

    key: str
    known: Known
    index: Index
    alias_of: str | None
    _staged: Record | None = None
    _confirm: bool = False

    @property
    def dirty(self) -> bool:
        return self._staged is not None or self._confirm

    def confirm(self) -> None:
        """Somebody is about to be told that it is stored as it is, whoever wrote it."""
        self._confirm = True

    def value(self) -> Record:
        return self._staged if self._staged is not None else (self.known.settings.value or {})

    def row(self) -> PlainRow:
        value = {**workspaces.expanded(self.value(), self.known.home), "path": str(self.known.entry.root)}
        return PlainRow(self.known.entry.id, self.key, value, version_of(value, WORKSPACES.volatile), {}, None)

    def require_writable(self) -> None:
        if not self.known.entry.root.is_dir():
            raise NotFound(self.known.entry.ref)
        if self.known.settings.problem is not None:
            uri = self.known.settings.path.as_uri()
            raise Corrupt(f"config.json {self.known.settings.problem}", uri, self.known.entry.ref)
        confine.check_writable(self.known.entry.root, self.known.settings.path)

    def stage(self, value: Record) -> None:
        self._staged = value

    def refresh(self) -> list[Change]:
        if self.known.settings.unchanged():
            return []
        before = self.known.row(self.alias_of)
        self.known.settings.read()
        after = self.known.row(self.alias_of)
        patch = patches.diff(before.value, after.value)
        if not patch:
            return []
        members = {"changes": [{"id": after.id, "version": after.version}], "patch": patch}
        return [Change("workspaces/didChange", "workspaces", members)]

    def write(self) -> None:
        if self._staged is not None:
            self.known.settings.write(self._staged)
        else:
            atomic.make_safe(self.known.entry.root, [self.known.settings.path])
        self.discard()

    def discard(self) -> None:
        self._staged, self._confirm = None, False

    def publish(self) -> None:
        self.index.put(self.known.row(self.alias_of))


@define
class Tree:
    """Folders and files of a new workspace. made: what of it was not there before."""

    root: Path
    config: Record
    made: list[Path] = field(factory=list)

    def make(self) -> None:
        """A new folder is there with everything in it or not at all; in an existing one nothing is replaced.

        Raises: OSError; then `undo`.
        """
        folders = (*workspaces.FOLDERS, ".claude-plugin")
        values = (
            (".claude-plugin/plugin.json", workspaces.plugin_manifest(self.config["name"])),
            *((shelf.file, shelf.new_file()) for shelf in SHELVES.values() if isinstance(shelf, Entries)),
            (REGISTRY, self.config),  # last: with it the folder is a workspace
        )
        files = {name: json_text.dumps_indented(value) for name, value in values}
        if not self.root.exists():
            for folder in reversed([folder for folder in self.root.parents if not folder.exists()]):
                disk.make_directory(folder)
                self.made.append(folder)
                disk.flush_directory(folder.parent)
            with self._making("", *folders, *files):
                atomic.create_folder(self.root, files, folders)
            return
        for name in folders:
            if not (self.root / name).exists():
                with self._making(name):
                    disk.make_directory(self.root / name)
        for name, data in files.items():
            if not (self.root / name).exists():
                with self._making(name):
                    atomic.replace(self.root / name, data, expect=None)
        disk.flush_directory(self.root)

    @contextmanager
    def _making(self, *names: str) -> Iterator[None]:
        """What somebody else made under the same name is not taken back."""
        paths = [self.root / name for name in names]
        try:
            yield
        except DirectoryNotFlushed:
            self.made += paths
            raise
        self.made += paths

    def undo(self) -> None:
        """Take back what was made, as far as the disk allows and nobody has put anything into it."""
        for path in reversed(self.made):
            try:
                (disk.remove_directory if path.is_dir() else disk.remove)(path)
            except OSError:
                pass
        self.made.clear()


@define(eq=False, kw_only=True)
class Register(Commit):
    """Put a workspace into the registry; makes its folder when there is none. Answers the new row's item.

    root: absolute. config: settings for a folder that has none yet (None = the folder is a workspace already).
    """

    id: str
    root: Path
    name: str
    config: Record | None
    home: str

    @property
    def unit(self) -> str:
        return REGISTRY

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        identity = folder_identity(self.root)
        for entry in unit.entries():
            if (
                entry.id == self.id
                or entry.root == self.root
                or (identity is not None and folder_identity(entry.root) == identity)
            ):
                row = unit.index.get(entry.id)
                raise AlreadyExists(entry.ref, None if row is None else row.item().as_json())
        raw = {
            "id": self.id,
            "name": self.name,
            "slug": self.root.name,
            "rootPath": portable.contract_home(str(self.root), self.home),
            "createdAt": now,
        }
        new = {**config, "workspaces": [*config["workspaces"], raw]}
        if new.get("activeWorkspaceId") is None:
            new["activeWorkspaceId"] = self.id
        settings = ObjectFile(self.root / REGISTRY)
        if self.config is None:
            settings.read()
        else:
            settings.value = self.config
        item = Known(Entry(self.id, self.root, raw), settings, self.home).row(None).item()
        item.info.pop("missing", None)
        unit.stage(new, None if self.config is None else Tree(self.root, self.config))
        return Planned(item, [Change("workspaces/didCreate", "workspaces", {"item": item.as_json()})])


@define(eq=False, kw_only=True)
class Unregister(Commit):
    """Take a workspace out of the registry; its files stay."""

    id: str
    expected: str | None = None
    missing_ok: bool = False

    @property
    def unit(self) -> str:
        return REGISTRY

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        if self.id not in {entry.id for entry in unit.entries()}:
            if self.missing_ok:
                return Planned(None)
            raise NotFound(Ref("workspaces", self.id))
        row = unit.index.get(self.id)
        if self.expected is not None and row is not None and row.version != self.expected:
            raise VersionConflict(Ref("workspaces", self.id), {"version": row.version, "item": row.item().as_json()})
        left = [raw for raw in config["workspaces"] if not (isinstance(raw, dict) and raw.get("id") == self.id)]
        new = {**config, "workspaces": left}
        if new.get("activeWorkspaceId") == self.id:
            new["activeWorkspaceId"] = next((raw["id"] for raw in left if isinstance(raw, dict) and "id" in raw), None)
        unit.stage(new)
        return Planned(None, [Change("workspaces/didDelete", "workspaces", {"id": self.id})])


@define(eq=False, kw_only=True)
class Move(Commit):
    """Say where the folder of a workspace is now; nothing is moved. Answers Updated.

    settings: of the folder *root*, read already.
    """

    id: str
    root: Path
    settings: ObjectFile
    home: str
    expected: str | None = None

    @property
    def unit(self) -> str:
        return REGISTRY

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        entries = {entry.id: entry for entry in unit.entries()}
        known, row = unit.known.get(self.id), unit.index.get(self.id)
        if self.id not in entries or known is None or row is None:
            raise NotFound(Ref("workspaces", self.id))
        if self.expected is not None and row.version != self.expected:
            raise VersionConflict(Ref("workspaces", self.id), {"version": row.version, "item": row.item().as_json()})
        identity = folder_identity(self.root)
        for entry in entries.values():
            if entry.id != self.id and identity is not None and folder_identity(entry.root) == identity:
                other = unit.index.get(entry.id)
                raise AlreadyExists(entry.ref, None if other is None else other.item().as_json())
        before, after = (known.settings.value or {}).get("id"), (self.settings.value or {}).get("id")
        if before is not None and before != after:
            raise InvalidState(f"{self.root} is another workspace", "another", (), Ref("workspaces", self.id))
        if entries[self.id].root == self.root:
            return Planned(Updated(row.item(), changed=False))
        place = {"rootPath": portable.contract_home(str(self.root), self.home), "slug": self.root.name}
        listed = [
            {**raw, **place} if isinstance(raw, dict) and raw.get("id") == self.id else raw
            for raw in config["workspaces"]
        ]
        item = (
            Known(Entry(self.id, self.root, {**entries[self.id].raw, **place}), self.settings, self.home)
            .row(None)
            .item()
        )
        unit.stage({**config, "workspaces": listed})
        members = {
            "changes": [{"id": self.id, "version": item.version}],
            "patch": patches.diff(row.value, item.value),
        }
        return Planned(Updated(item, changed=True), [Change("workspaces/didChange", "workspaces", members)])


@define(eq=False, kw_only=True)
class UpdateSettings(Commit):
    """Change the settings of a workspace. Answers Updated."""

    id: str
    patch: Record
    facts: Facts
    expected: str | None = None

    @property
    def unit(self) -> str:
        return f"workspaces/{self.id}"

    def plan(self, unit: SettingsUnit, now: int) -> Planned:
        unit.require_writable()
        ref, row = unit.known.entry.ref, unit.row()
        if self.expected is not None and row.version != self.expected:
            raise VersionConflict(ref, {"version": row.version, "item": row.item().as_json()})
        old = row.value
        new = patches.apply(old, self.patch)
        if not patches.diff(old, new):
            unit.confirm()
            return Planned(Updated(row.item(), changed=False))
        refuse_immutable(WORKSPACES, old, new, ref)
        refuse_errors(WORKSPACES, new, old, ref)
        new["updatedAt"] = now
        named = {key: value for key, value in new.items() if key != "path"}
        unit.stage(workspaces.contracted(named, unit.value(), unit.known.home))
        item = unit.row().item()
        members = {"changes": [{"id": self.id, "version": item.version}], "patch": patches.diff(old, new)}
        return Planned(Updated(item, changed=True), [Change("workspaces/didChange", "workspaces", members)])
