"""Resources that leave a workspace in a bundle, and come in from one: each by its own commit, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from craftd.errors import AlreadyExists, Corrupt, Forbidden, Issue, Ref, ValidationFailed
from craftd.model import bundles, json_text
from craftd.model.bundles import Automation, Folder, OnConflict
from craftd.model.nouns import NOUNS
from craftd.model.records import Record
from craftd.store import atomic, confine, files
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint, ForeignWrite
from craftd.store.files import JsonForm
from craftd.store.folders import Folders
from craftd.store.gather import gather, holds
from craftd.store.layout import SHELVES
from craftd.workspace.changes import RecordCommit
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.journal import Change
from craftd.workspace.tables import DocumentUnit, changes_between

AUTOMATIONS: Final = "automations.json"
"""The file, and the unit that it is."""

FOLDERS: Final[Mapping[str, Folders]] = {
    noun: shelf for noun in ("sources", "skills") if isinstance(shelf := SHELVES[noun], Folders)
}
"""Nouns whose records are the folders of a bundle."""

_NEW: Final[Record] = {"version": 2, "automations": {}}


# -- in --


def contents_of(noun: str, folder: Folder) -> dict[str, bytes]:
    """All files of the folder that *folder* becomes. Raises: ValidationFailed for a source that is none."""
    if folder.config is None:
        return dict(folder.files)
    wrong = [issue for issue in NOUNS[noun].validate(folder.config, None) if issue.severity == "error"]
    if wrong:
        raise ValidationFailed(tuple(wrong), Ref(noun, folder.slug))
    config = folder.config
    if config.get("isAuthenticated"):  # whoever was, secrets do not come along
        config = {**config, "isAuthenticated": False}
    return {**folder.files, FOLDERS[noun].main: JsonForm().format(config, None)}


@define(eq=False, kw_only=True)
class ImportFolder(RecordCommit):
    """Make *contents* the folder of a record. Raises AlreadyExists for one that is there, unless it may be replaced."""

    contents: Mapping[str, bytes] = field(repr=False)
    overwrite: bool

    def plan(self, unit: DocumentUnit, now: int) -> Planned:
        shelf = FOLDERS[self.noun.name]
        folder = unit.root / self.key
        if folder.is_symlink():
            raise Forbidden(f"{self.key} is a link: it is read, never written", path=self.key)
        if os.path.lexists(folder) and not self.overwrite:
            raise AlreadyExists(self.ref)
        if holds(folder, self.contents) and self.id in unit.records():
            unit.confirm()
            return Planned(None)
        document = shelf.incoming(unit.root, self.key, self.contents)
        if not document.sound:
            raise ValidationFailed(document.issues, self.ref)
        before = unit.records()
        unit.stage_folder(document, self.contents)
        return Planned(None, changes_between(self.noun, before, unit.records(), lambda id, value: unit.row(id)))


@define(eq=False, kw_only=True)
class ImportAutomations(Commit):
    """Put *them* into `automations.json`, all or none of them; answers Merged."""

    workspace: str
    them: tuple[Automation, ...]
    on_conflict: OnConflict
    pick: Callable[[int], int]

    @property
    def unit(self) -> str:
        return AUTOMATIONS

    def plan(self, unit: AutomationsUnit, now: int) -> Planned:
        value = unit.value()
        self._refuse(bundles.errors_of_automations(value))
        merged = bundles.merge(value, self.them, self.on_conflict, lambda: f"{self.pick(16**6):06x}")
        self._refuse(bundles.errors_of_automations(merged.value))
        if files.same(merged.value, value):
            unit.confirmed = bool(merged.imported)
        else:
            unit.staged = merged.value
        return Planned(merged)

    def _refuse(self, wrong: list[Issue]) -> None:
        if wrong:
            raise ValidationFailed(tuple(wrong), Ref("automations", AUTOMATIONS, self.workspace))


@define(eq=False)
class AutomationsUnit(Unit):
    """`automations.json` inside a round. Nothing of it is published: it is read when it is needed."""

    root: Path
    key: str = AUTOMATIONS
    staged: Record | None = None
    confirmed: bool = False
    """Somebody is told that what is there is stored, whoever wrote it."""
    _data: bytes | None = None
    _print: Fingerprint | None = None
    _problem: str | None = None

    @property
    def path(self) -> Path:
        return self.root / AUTOMATIONS

    @property
    def dirty(self) -> bool:
        return self.staged is not None or self.confirmed

    def refresh(self) -> list[Change]:
        self._data = self._print = self._problem = None
        try:
            self._data, self._print = files.read(self.path) or (None, None)
        except files.Unreadable as error:
            self._problem = error.message
        return []

    def value(self) -> Record:
        """What is there, or is staged. Raises: Corrupt, Forbidden."""
        confine.check_writable(self.root, self.path)
        if self.staged is not None:
            return self.staged
        if self._problem is None and self._data is None:
            return _NEW
        parsed = JsonForm().parse(self._data or b"{}")
        problem = self._problem or (None if parsed.sound else parsed.problems[0].message)
        if problem is not None:
            raise Corrupt(f"{AUTOMATIONS}: {problem}", self.path.as_uri())
        value: Record = parsed.value
        return value

    def write(self) -> None:
        if self.staged is None:
            atomic.make_safe(self.root, [self.path])
            self.discard()
            return
        data = JsonForm().format(self.staged, self._data)
        try:
            self._print = atomic.replace(self.path, data, expect=self._print)
        except DirectoryNotFlushed as error:
            self._data, self._print = data, error.result
            self.discard()
            raise
        self._data = data
        self.discard()

    def discard(self) -> None:
        self.staged, self.confirmed = None, False

    def publish(self) -> None:
        pass


# -- out --


@frozen(kw_only=True)
class Wanted:
    """Ids by noun, None = all that there are."""

    sources: tuple[str, ...] | None = ()
    skills: tuple[str, ...] | None = ()
    automations: tuple[str, ...] | None = ()


def export(root: Path, wanted: Wanted, sink: Callable[[bytes], None], told: Callable[[str], None]) -> list[Issue]:
    """Write the resources of a workspace in the folder *root* as members of an object, and answer what stays out.

    In a thread; *told* the name of each resource. Raises: TooLarge, OSError.
    """
    exporter = _Exporter(root, told)
    between = b""
    for noun, ids in (("sources", wanted.sources), ("skills", wanted.skills), ("automations", wanted.automations)):
        if ids == ():
            continue
        sink(between + json_text.dumps(noun) + b":[")
        between = b""
        for entry in exporter.automations(ids) if noun == "automations" else exporter.folders(FOLDERS[noun], ids):
            sink(between + json_text.dumps(entry))
            between = b","
        sink(b"]")
        between = b","
    return exporter.warnings


@define
class _Exporter:
    root: Path
    told: Callable[[str], None]
    room: int = bundles.LARGEST * 3 // 4  # base64 makes four bytes of three
    warnings: list[Issue] = field(factory=list)

    def warn(self, noun: str, id: str, code: str, message: str, path: str = "") -> None:
        self.warnings.append(Issue(path=path, message=message, severity="warning", code=code, noun=noun, id=id))

    def folders(self, shelf: Folders, ids: tuple[str, ...] | None) -> Iterator[Record]:
        there = {key.rpartition("/")[2] for key in shelf.keys(self.root)}
        for id in sorted(there) if ids is None else dict.fromkeys(ids):
            self.told(id)
            if id not in there:
                self.warn(shelf.noun.name, id, "not-found", f"there is no {shelf.noun.singular} {id}")
            elif (entry := self.folder(shelf, id)) is not None:
                yield entry

    def folder(self, shelf: Folders, id: str) -> Record | None:
        noun, key = shelf.noun.name, f"{shelf.folder}/{id}"
        if bundles.SLUG.fullmatch(id) is None:
            self.warn(noun, id, "bad-slug", "its folder has a name that no bundle can hold")
            return None
        try:
            contents, unfit = gather(Path(os.path.realpath(self.root / key)), self.room)
        except (ForeignWrite, OSError) as error:
            self.warn(noun, id, "unreadable", f"cannot be read: {error}")
            return None
        for path in unfit:
            self.warn(noun, id, "unfit-name", "no bundle can hold a file of this name", path)
        if shelf.main not in contents:
            if noun == "skills":
                self.warn(noun, id, "no-skill-md", f"has no {shelf.main}")
            else:
                self.warn(noun, id, "invalid-config", f"has no {shelf.main}")
            return None
        entry: Record = {"slug": id}
        if noun == "sources":
            config = self.source(id, shelf.form.parse(contents.pop(shelf.main)).value)
            if config is None:
                return None
            entry["config"] = config
        self.room -= sum(map(len, contents.values()))
        return {**entry, "files": [bundles.file(path, data) for path, data in contents.items()]}

    def source(self, id: str, config: Record) -> Record | None:
        wrong = [issue for issue in NOUNS["sources"].validate(config, None) if issue.severity == "error"]
        if wrong or config.get("slug") != id:
            why = wrong[0].message if wrong else "the slug differs from the folder"
            self.warn("sources", id, "invalid-config", f"is no source: {why}")
            return None
        config, stripped = bundles.source(config)
        for path in stripped:
            self.warn("sources", id, "stripped", f"{path} is left out: it may hold secrets", path)
        return config

    def automations(self, ids: tuple[str, ...] | None) -> Iterator[Record]:
        try:
            found = files.read(self.root / AUTOMATIONS)
        except files.Unreadable as error:
            self.warn("automations", AUTOMATIONS, "unreadable", error.message)
            return
        parsed = JsonForm().parse(b"{}" if found is None else found[0])
        if not parsed.sound:
            self.warn("automations", AUTOMATIONS, "unreadable", parsed.problems[0].message)
        there = {one.id: one for one in bundles.automations_of(parsed.value)}
        for id in there if ids is None else dict.fromkeys(ids):
            if id not in there:
                self.warn("automations", id, "not-found", f"there is no automation {id}")
                continue
            self.told(id)
            entry, stripped = bundles.automation(there[id])
            for path in stripped:
                self.warn("automations", id, "stripped", f"{path} is left out: it may hold secrets", path)
            yield entry
