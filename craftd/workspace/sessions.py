"""Sessions inside a round: the unit that writes one session's file, and the commits of line 1 and the folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from attrs import define, field

from craftd.errors import (
    AlreadyExists,
    Busy,
    Corrupt,
    Forbidden,
    NotFound,
    Ref,
    ValidationFailed,
    VersionConflict,
)
from craftd.model import header_rules, label_entries, portable, sessions, settings
from craftd.model import patch as patches
from craftd.model.messages import is_final
from craftd.model.moved import at_home
from craftd.model.records import Item, Record, version_of
from craftd.model.repair import Mended
from craftd.model.settings import Levels
from craftd.store import atomic, confine, disk
from craftd.store import repair as mending
from craftd.store import trash as trashes
from craftd.store.atomic import DirectoryNotFlushed, ForeignWrite
from craftd.store.folders import TRASH
from craftd.store.rewrite import Prepared
from craftd.store.transcript import Transcript
from craftd.workspace import arrivals, debts, foreign, kept_out, telling
from craftd.workspace.arrivals import Arrival
from craftd.workspace.changes import Updated
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.debts import Debt
from craftd.workspace.draft import Draft
from craftd.workspace.journal import Change
from craftd.workspace.lineage import Sessions
from craftd.workspace.rows import Place, SessionRow, row_of

SESSIONS = "sessions/"
SUBFOLDERS = ("attachments", "plans", "long_responses", "data", "downloads")
"""What the app makes with every session."""


@define(eq=False)
class SessionUnit(Unit):
    """One session inside a round.

    header: line 1 as it would be written now, in stored form, lazy values included; None = unreadable or no session.
    gone: the folder is not there (any more). owed: what we acknowledged and a foreign save undid.
    viewed: somebody has it on the screen.
    """

    key: str
    place: Place
    index: Sessions
    pick: Callable[[int], int]
    transcript: Transcript | None
    row: SessionRow | None
    header: Record | None = None
    gone: bool = False
    owed: list[Debt] = field(factory=list)
    viewed: bool = False
    prepared: Prepared | None = None
    id: str = field(init=False)
    directory: str = field(init=False)
    _row_base: SessionRow | None = field(init=False)
    _row_met: SessionRow | None = None
    _header_base: Record | None = None
    _shown: tuple[Record, Record] | None = None
    _draft: Draft | None = None
    _mended: bool = False
    _rewrite: bool = False
    _new: bool = False
    _confirm: bool = False
    _delete: str | None = None
    _original: str | None = None
    """Name beside, under which the file as it was stays when it is mended."""
    _files: kept_out.Files = field(factory=dict)
    _arrival: Arrival | None = None
    _left: Transcript | None = None
    _kept: str | None = None

    def __attrs_post_init__(self) -> None:
        self._row_base = self.row
        self.id = self.key.removeprefix(SESSIONS)
        self.directory = self.place.directory(self.id)

    @property
    def ref(self) -> Ref:
        return Ref("sessions", self.id)

    @property
    def folder(self) -> Path:
        return self.place.folder(self.id)

    @property
    def dirty(self) -> bool:
        return self.draft.touched or self._rewrite or self._new or self._confirm or self._delete is not None

    @property
    def rewrites(self) -> bool:
        """Whether what is staged needs a new file."""
        return self._rewrite

    # What commits ask and stage

    @property
    def exists(self) -> bool:
        return not self.gone and self._delete is None and (self.row is not None or self._new)

    def require(self) -> None:
        """Raises NotFound; Busy while the file is missing and does not count as deleted yet."""
        if self.gone and self.row is not None and self._delete is None:
            raise Busy(f"the file of {self.ref} is missing; another program may be about to save it", 200)
        if not self.exists:
            raise NotFound(self.ref)

    def require_writable(self) -> Record:
        """The header to change. Raises NotFound, Corrupt, Forbidden (a link that leads out of the workspace)."""
        self.require()
        if self.header is None or (self.transcript is not None and not self.transcript.writable):
            message = f"{self.ref} is damaged: repair or delete it, nothing is written over what is left"
            raise Corrupt(message, (self.folder / "session.jsonl").as_uri(), self.ref)
        if os.path.islink(f"{self.directory}/session.jsonl"):
            confine.check_writable(self.place.root, self.folder / "session.jsonl")
        return self.header

    def value(self) -> Record:
        """What readers see of `header`. Not to be changed."""
        row, header = self.row, self.header
        if header is None:
            return dict(row.derived) if row is not None else {}
        if row is not None and row.remembers(header):
            return row.value
        if self._shown is None or self._shown[0] is not header:
            self._shown = (header, sessions.view(header, self.directory, str(self.place.root), self.place.home))
        return self._shown[1]

    def item(self) -> Item:
        assert self.header is not None
        info = self.row.info if self.row is not None else {}
        return Item(self.id, self.version, self.value(), info)

    @property
    def version(self) -> str:
        if self.header is None:
            return "unreadable"
        if self.row is not None and self.row.readable and not (self._rewrite or self._new):
            return self.row.version  # messages alone do not change it
        return version_of(self.header, sessions.VOLATILE)

    @property
    def draft(self) -> Draft:
        """The messages, staged ones included."""
        if self._draft is None:
            self._draft = Draft(self.transcript, self.directory)
        return self._draft

    def append(self, records: Sequence[Record], header: Record | None = None) -> list[int]:
        """Stage new messages, and *header* if more changed than what follows from them; bytes of each one's line."""
        sizes = self.draft.append(records)
        base = header if header is not None else self.header
        assert base is not None
        self._rewrite = self._rewrite or header is not None
        self.header = sessions.following(base, self.draft.counters, records, viewed=self.viewed)
        return sizes

    def replace(self, position: int, record: Record) -> int:
        """Stage another content of a message; bytes of its line."""
        assert self.header is not None
        before = self.draft.read(position).record
        size = self.draft.replace(position, record)
        news = is_final(record) and not (before is not None and is_final(before))
        self.change(sessions.after_edit(self.header, self.draft.counters, (), news=news, viewed=self.viewed))
        return size

    def take_out(self, positions: Sequence[int], header: Record | None = None) -> None:
        """Stage that some lines go away, and *header* if more changed than what follows from that."""
        base = header if header is not None else self.header
        assert base is not None
        read = base.get("lastReadMessageId")
        removed = {read} if read and any(self.draft.id_of(position) == read for position in positions) else ()
        self.draft.take_out(positions)
        self.change(sessions.after_edit(base, self.draft.counters, removed))

    def to_store(self, record: Record, old: Record | None = None) -> tuple[Record, kept_out.Files]:
        """The message *record*, the successor of *old*, as its line shall be, and the files that this needs."""
        usage = (self.header or {}).get("tokenUsage")
        window = usage.get("contextWindow") if isinstance(usage, dict) else None
        return kept_out.stored(record, old or {}, self.place.root, self.directory, window)

    def keep(self, files: kept_out.Files) -> None:
        """Stage *files*: they are on disk before the lines."""
        self._files |= files

    def repair(self, header: Record, lines: Mapping[int, Mended], original: str) -> None:
        """Stage what damaged *lines* become, and *header* with new counts. *original*: name of the file as it was."""
        self.draft.mend(lines)
        self._original = original
        self.change(sessions.after_edit(header, self.draft.counters, ()))

    def confirm(self) -> None:
        """Stage that what the file holds already is safe there."""
        self._confirm = self.transcript is not None and not self.transcript.safe

    def change(self, header: Record) -> None:
        """Stage another line 1."""
        self.header = header
        self._rewrite = True

    def create(self, header: Record) -> None:
        self.header = header
        self._new = True
        self.gone = False

    def arrive(self, arrival: Arrival, kept: str | None) -> None:
        """Stage that the folder *arrival* becomes the session's; one that is there is called *kept* in the trash."""
        self._arrival, self._left, self._kept = arrival, self.transcript, kept
        self.transcript, self.header, self._draft = arrival.transcript, arrival.header, None
        self._new, self.gone = True, False

    def delete(self, trash: str | None) -> None:
        """Stage the removal of the folder: into `.trash/<trash>`, or for good with ""."""
        self._delete = trash

    # What the queue asks

    def refresh(self) -> list[Change]:
        self.gone = False
        changes = foreign.look(self)
        self._header_base, self._row_met = self.header, self.row
        return changes

    def told_late(self) -> list[Change]:
        return foreign.damage_changes(self._row_met, self.row)

    def mend(self, *, patient: bool = True) -> list[Change]:
        """Do again what a foreign save undid; lost messages go behind what is there now.

        patient: not behind a torn line, which somebody may be about to complete. Never into a file without a line 1.
        """
        transcript = self.transcript
        if not self.owed or self._mended or self.gone or self.header is None:
            return []
        if transcript is None or not transcript.writable:
            return []
        if patient and any(damage.code == "torn-tail" for damage in transcript.damage):
            return []
        old = self.value()
        changes, lost = debts.pay(self.owed, self)
        if lost:
            index = self.draft.count
            sizes = self.append(lost)
            changes.append(telling.appended(self.id, index, lost, sizes, self.draft.count))
        if not changes and not self._rewrite:
            self.owed.clear()
            return []
        self._mended = True
        return [*changes, *self.changed_since(old)]

    def changed_since(self, old: Record) -> list[Change]:
        """What leads readers from the value *old* to what is staged."""
        return telling.changed(self.id, self.version, old, self.value())

    def rebase(self, *, behind: bool = False) -> None:
        """The transcript as it is on disk, with `header`, is the base now."""
        assert self.transcript is not None
        self.row = row_of(self.id, self.place, self.header, self.transcript)
        self.row.behind = behind

    def write(self) -> None:
        try:
            self._write()
        except DirectoryNotFlushed:
            self._settle()  # the new bytes are there; what is not safe yet is their name
            raise
        self._settle()

    def _write(self) -> None:
        if self._arrival is not None and not self._arrival.placed:
            root = self.place.root
            kept = None if self._kept is None else arrivals.in_trash(root, self._kept)
            self._arrival.take_place(self.folder, kept)
            self.owed.clear()
        if self._delete is not None:
            self._remove(self._delete)
        elif self._new and self._arrival is None:
            assert self.header is not None
            line = sessions.header_line(self.header, self.directory)
            try:
                create_session(self.folder, [line, *self.draft.lines], self._files)
            except DirectoryNotFlushed:
                self.transcript = Transcript.load(self.folder / "session.jsonl", self.directory)
                raise
            except FileExistsError:  # in this moment: theirs is looked at, and what is made gets another name
                raise ForeignWrite(self.folder) from None
            path = self.folder / "session.jsonl"  # which somebody else may be saving already
            self.transcript = foreign.patiently(lambda: Transcript.load(path, self.directory), self.folder.exists)
        elif self.transcript is not None:
            draft = self.draft
            kept_out.write(self.folder, self._files)
            if not self._rewrite:
                if draft.lines:
                    self.transcript.append(draft.lines, draft.records)
                elif not self.transcript.safe:
                    self.transcript.make_safe()
                return
            if draft.lost:
                keep_beside(self.place.root, self.folder, draft.lost)
            prepared, self.prepared = self.prepared, None
            self.header = self.complete()
            if (
                prepared is not None
                and prepared.replaced == draft.replaced
                and prepared.first_line == sessions.header_line(self.header, self.directory) + b"\n"
            ):
                with mending.original_kept(self.transcript, self._original):
                    self.transcript.finish(prepared, draft.lines)
                return
            if prepared is not None:
                prepared.discard()
            with mending.original_kept(self.transcript, self._original):
                self.transcript.rewrite(self.header, draft.lines, replaced=draft.replaced)

    def complete(self) -> Record:
        """The header with what every rewrite brings up to date."""
        assert self.header is not None
        root = portable.contract_home(str(self.place.root), self.place.home)
        # The folder's name is the id: where line 1 says another, the app would save into a folder of that name.
        header = at_home(self.header, self.directory, str(self.place.root), self.place.home)
        return sessions.ordered({**header, "id": self.id, "workspaceRootPath": root})

    def _remove(self, trash: str) -> None:
        if self.transcript is not None:
            self.transcript.close()
            self.transcript = None
        if trash:
            bin = self.place.root / TRASH
            trashes.ready(self.place.root)
            disk.move_folder(self.folder, bin / trash)
            self.row, self.header, self.gone = None, None, True
            atomic.flush_names(bin / trash, self.folder)
        else:
            hidden = atomic.temporary_beside(self.folder)
            disk.move_folder(self.folder, hidden)
            self.row, self.header, self.gone = None, None, True
            atomic.discard(hidden)
            atomic.flush_names(self.folder)

    def _settle(self) -> None:
        """What was staged is in the file: it is the base now."""
        if self._delete is None and self.transcript is not None and (self.header is not None or self._arrival):
            version = self.version
            if self._arrival is not None:
                behind = self.transcript.writable and self.header != self.transcript.header
            else:
                was_behind = self.row is not None and self.row.behind
                behind = not (self._rewrite or self._new) and (was_behind or self.draft.touched)
            self.rebase(behind=behind)
            assert self.row is not None
            if self.header is not None:
                self.row.remember(self.header, self.value(), version)
        if self._mended or self.gone:
            self.owed.clear()
        self._forget_staged()
        self._header_base = self.header

    def discard(self) -> None:
        self._forget_staged()
        self.header = self._header_base

    def _forget_staged(self) -> None:
        self._original = None
        if self._arrival is not None:
            if not self._arrival.placed:
                self.transcript = self._left
            elif self._left is not None:
                self._left.close()
        self._arrival = self._left = self._kept = None
        self._mended = False
        self._draft = None
        self._files = {}
        self._rewrite, self._new, self._confirm, self._delete = False, False, False, None

    def publish(self) -> None:
        if self.row is None:
            self.index.remove(self.id)
        elif self.row is not self._row_base:
            self.index.put(self.row)


def create_session(folder: Path, lines: Sequence[bytes], files: Mapping[str, bytes] = MappingProxyType({})) -> None:
    """Make the folder of a new session with everything in it: its *lines*, and *files* by their names in it.

    Raises: FileExistsError, OSError, DirectoryNotFlushed.
    """
    parent = folder.parent
    if not parent.exists():
        disk.make_directory(parent)
        disk.flush_directory(parent.parent)
    transcript = {"session.jsonl": b"".join(line + b"\n" for line in lines)}
    atomic.create_folder(folder, {**files, **transcript}, SUBFOLDERS)


UNREADABLE = ".unreadable.jsonl"
"""Beside a transcript: lines that went away although not everything in them could be read. The app skips dot files."""


def keep_beside(root: Path, folder: Path, lines: Sequence[bytes]) -> None:
    """Append *lines* to what is kept of the session in *folder*, durably. Raises: Forbidden, OSError."""
    path = folder / UNREADABLE
    confine.check_writable(root, path)
    data = b"".join(line + b"\n" for line in lines)
    new = not path.exists()
    fd = disk.create(path) if new else disk.open_append(path)
    try:
        if (size := os.fstat(fd).st_size) and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # behind half of a line for which there was no room
        disk.write(fd, data)
        disk.flush(fd)
    finally:
        disk.close(fd)
    if new:
        disk.flush_directory(folder)


@define(eq=False, kw_only=True)
class SessionCommit(Commit):
    id: str

    @property
    def unit(self) -> str:
        return SESSIONS + self.id


@define(eq=False, kw_only=True)
class CreateSession(SessionCommit):
    """Answers the new Item. known(noun, id): whether a record of another noun is there.

    levels: what decides about a session of a value, besides it.
    """

    value: Record
    known: Callable[[str, str], bool]
    levels: Callable[[Record], Levels]
    labels: Callable[[], Mapping[str, Record]]

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        self.refuse_taken(unit)
        value = self.judged(self.value, None, unit.index, now)
        header = sessions.new_header(value, now, str(unit.place.root), unit.directory, unit.place.home)
        unit.create(header)
        item = unit.item()
        return Planned(item, [telling.created(item)])

    def refuse_taken(self, unit: SessionUnit) -> None:
        """Raises: AlreadyExists; Busy if that is not certain in this moment."""
        if unit.gone and unit.row is not None:
            unit.require()
        if unit.exists or os.path.lexists(unit.folder):
            raise AlreadyExists(unit.ref, unit.item().as_json() if unit.exists and unit.header is not None else None)

    def judged(self, value: Record, base: Record | None, index: Sessions, now: int) -> Record:
        """What the new session's value is. base: what it has from another session, which need not be judged again.

        Raises: ValidationFailed.
        """
        value = header_rules.created(index.inherited(value, self.known), now)
        if base is None:
            value = settings.with_directory(value, self.levels(value))
        value, wrong = label_entries.settle(value, base, self.labels())
        issues = [*sessions.validate(value, base), *header_rules.issues(value, None), *wrong]
        issues += index.references(self.id, value, base, self.known)
        if issues:
            raise ValidationFailed(tuple(issues), Ref("sessions", self.id))
        return value


@define(eq=False, kw_only=True)
class UpdateSession(SessionCommit):
    """Answers Updated. mode: what holds for a session that has no permission mode of its own.

    known: see CreateSession.
    """

    rewrites = True
    patch: Record
    known: Callable[[str, str], bool]
    labels: Callable[[], Mapping[str, Record]]
    mode: Callable[[Record], str | None] = lambda value: None
    expected: str | None = None

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        stored = unit.require_writable()
        if self.expected is not None and unit.version != self.expected:
            item = unit.item()
            raise VersionConflict(unit.ref, {"version": item.version, "item": item.as_json()})
        old = unit.value()
        new = header_rules.patched(old, self.patch, unit.directory, now, self.mode)
        new, wrong = label_entries.settle(new, old, self.labels())
        if not wrong and not patches.diff(old, new):
            unit.confirm()
            return Planned(Updated(unit.item(), changed=False))
        issues = [*sessions.validate(new, old), *header_rules.issues(new, old), *wrong]
        issues += unit.index.references(unit.id, new, old, self.known)
        if issues:
            raise ValidationFailed(tuple(issues), unit.ref)
        unit.change(sessions.ordered(sessions.to_stored(stored, old, new, unit.place.home)))
        return Planned(Updated(unit.item(), changed=True), unit.changed_since(old))


@define(eq=False, kw_only=True)
class DeleteSession(SessionCommit):
    """Answers what there is to say of it: `trash`, its name there, `children` and `branches`, each if there is some."""

    removes = True
    permanent: bool = False
    expected: str | None = None
    missing_ok: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        relations = unit.index.relations(unit.id)
        if self.missing_ok and not unit.exists:
            return Planned(relations)
        unit.require()
        if self.expected is not None and unit.version != self.expected:
            raise VersionConflict(unit.ref, {"version": unit.version})
        name = "" if self.permanent else trashes.free(unit.place.root, now, unit.id).name
        unit.delete(name)
        return Planned({**relations, **({"trash": name} if name else {})}, [telling.deleted(unit.id)])


@define(eq=False, kw_only=True)
class Fold(SessionCommit):
    """Bring line 1 up to date. No event: nothing a reader of craftd sees changes.

    only_if_due: not when an earlier commit of the queue has done it: each copy must have been paid for by appends.
    """

    rewrites = True
    only_if_due: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if unit.exists and unit.header is not None and unit.row is not None and unit.row.behind:
            transcript = unit.transcript
            if not self.only_if_due or (transcript is not None and transcript.needs_fold):
                unit.change(unit.header)
        return Planned(None)


@define(eq=False, kw_only=True)
class Reconcile(SessionCommit):
    """Look at the file. final: a missing folder counts as deleted now."""

    promises = False
    final: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if not unit.gone or unit.row is None:
            return Planned(False)
        if not self.final:
            return Planned(True)
        unit.row = None
        unit.owed.clear()
        return Planned(False, [telling.deleted(unit.id)])


@define(eq=False, kw_only=True)
class Mend(SessionCommit):
    """Put back what is owed, now that nobody has completed the file for a while."""

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        return Planned(None, unit.mend(patient=False))


@define(eq=False, kw_only=True)
class MarkRead(SessionCommit):
    """Everything in the session was read. Answers nothing; a session that is gone meanwhile needs no mark.

    one_of_all: a session that cannot be written is left as it is, nobody named it.
    """

    rewrites = True
    one_of_all: bool = False

    def plan(self, unit: SessionUnit, now: int) -> Planned:
        if not unit.exists:
            return Planned(None)
        try:
            stored = unit.require_writable()
        except (Corrupt, Forbidden):
            if self.one_of_all:
                return Planned(None)
            raise
        marked = sessions.marked_read(stored)
        if marked is stored:
            return Planned(None)
        old = unit.value()
        unit.change(marked)
        return Planned(None, unit.changed_since(old))
