"""The credential file as a unit of the global scope.

What is published is whose a secret is and how it is with it. The secrets are in memory while a round works on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from craftd.errors import (
    Corrupt,
    InvalidState,
    Issue,
    NotFound,
    Ref,
    Undecryptable,
    Unsupported,
    ValidationFailed,
    VersionConflict,
)
from craftd.model import credentials, json_text
from craftd.model.credentials import CREDENTIALS, MARK, Identity, Named, Owner, Stored, named, place
from craftd.model.patch import diff
from craftd.model.records import Item, Record
from craftd.store import atomic, vault
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint, ForeignWrite
from craftd.store.vault import FILE, Content, Header, Keys
from craftd.workspace.changes import Updated
from craftd.workspace.commit import Commit, Planned, Unit
from craftd.workspace.index import Index
from craftd.workspace.journal import Change
from craftd.workspace.registry import REGISTRY
from craftd.workspace.rows import ALL
from craftd.workspace.tables import issue_changes


@frozen
class Row:
    """One credential as the index holds it. How it is with it depends on the time, so no text is kept."""

    named: Named
    now: Callable[[], int]

    @property
    def id(self) -> str:
        return self.named.id

    @property
    def value(self) -> Record:
        return self.named.value

    @property
    def status(self) -> str:
        return self.named.stored.status(self.now())

    def item(self) -> Item:
        info: Record = {"status": self.status}
        if self.named.problem is not None:
            info["problem"] = self.named.problem
        return Item(self.id, self.named.stored.version, self.value, info)

    def text(self, fields: tuple[str, ...] | None) -> bytes:
        return json_text.dumps(self.item().as_json(None if fields in (None, ALL) else fields))


@frozen
class Known:
    """What is published of the file. outdated: sealed with a key that the app would not try."""

    fingerprint: Fingerprint | None = None
    state: str = "absent"
    own_issues: tuple[Issue, ...] = ()
    outdated: bool = False
    stored: Mapping[str, Stored] = field(factory=dict)
    named: Mapping[str, Named] = field(factory=dict)

    @property
    def issues(self) -> list[Issue]:
        return [*self.own_issues, *(_unclear(one) for one in self.named.values() if one.problem == "ambiguous")]


def _unclear(one: Named) -> Issue:
    message = f"{one.id} may be of several workspaces whose folders have one name, so none gets it: set it for each"
    return Issue(
        path=FILE, message=message, severity="warning", code="owner-ambiguous", noun=CREDENTIALS.name, id=one.id
    )


@define(eq=False)
class Vault:
    """The file, and what is published of it. opened: somebody has looked."""

    path: Path
    keys: Keys
    now: Callable[[], int]
    index: Index
    known: Known = field(factory=Known)
    opened: bool = False

    @classmethod
    def of(cls, path: Path, keys: Keys, now: Callable[[], int], epoch: str) -> Vault:
        def status(wanted: Any) -> Callable[[Any], bool]:
            return lambda row: row.status in (wanted if isinstance(wanted, list) else [wanted])

        index = Index(epoch, CREDENTIALS.sort, {"status": status}, frozenset(CREDENTIALS.fields))
        return cls(path, keys, now, index)

    def require_open(self, known: Known | None = None) -> None:
        """Raises: Undecryptable, Corrupt."""
        known = known or self.known
        if known.state in ("undecryptable", "corrupt", "unreadable"):
            message = f"{FILE} {known.own_issues[0].message}"
            raise Undecryptable(message) if known.state == "undecryptable" else Corrupt(message, self.path.as_uri())

    def find(self, id: str) -> Row | None:
        found: Row | None = self.index.get(id)
        return found

    def set_aside(self) -> list[str]:
        """Names of files that could not be opened and were kept."""
        return vault.set_aside(self.path)


@define(eq=False)
class VaultUnit(Unit):
    """The file inside a round. known: what is true with everything staged; owners: the workspaces there are now."""

    vault: Vault
    owners: Sequence[Owner]
    key: str = FILE
    known: Known = field(init=False)
    _base: Known = field(init=False)
    _content: Content | None = None
    _header: Header | None = None
    _staged: Record | None = field(default=None, repr=False)
    _late: list[Change] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.known = self._base = self.vault.known

    @property
    def dirty(self) -> bool:
        return self._staged is not None

    def refresh(self) -> list[Change]:
        before, opened = self._base, self.vault.opened
        if opened and atomic.glance(self.vault.path) == before.fingerprint:
            self._base = evolve(before, named=named(before.stored.values(), self.owners))
        else:
            self._take(vault.load(self.vault.path, self.vault.keys, expected=before.fingerprint is not None))
        self.known = self._base
        if not opened:
            return []  # nobody can have listed anything
        return self.changes(before, self.known) + _told(before, self.known)

    def _take(self, content: Content) -> None:
        self._content, self._header = content, content.header
        stored = {account: self._stored(account, entry) for account, entry in content.entries.items()}
        self._base = Known(
            content.fingerprint,
            content.state,
            content.issues(),
            outdated=content.writable and content.opened is not None and not content.opened.current,
            stored=stored,
            named=named(stored.values(), self.owners),
        )

    def _stored(self, account: str, entry: Any) -> Stored:
        assert self._header is not None
        return Stored.of(account, entry, self.vault.keys.version(self._header.salt, account, entry))

    def content(self) -> Content:
        """The file with its secrets. Raises: ForeignWrite."""
        if self._content is None:
            content = vault.load(self.vault.path, self.vault.keys)
            if content.fingerprint != self._base.fingerprint:
                raise ForeignWrite(self.vault.path)
            self._content, self._header = content, content.header
        return self._content

    def payload(self) -> Record:
        """What is sealed, with everything staged. Not to be changed."""
        if self._staged is not None:
            return self._staged
        opened = self.content().opened
        return {"version": 1, "credentials": {}} if opened is None else opened.payload

    def entry(self, account: str) -> Any:
        """The stored entry, None where there is none."""
        return self.payload().get("credentials", {}).get(account)

    def require_writable(self) -> None:
        """Raises: Unsupported, Corrupt."""
        content = self.content()
        if content.writable:
            return
        if content.problem is not None:
            raise Corrupt(f"{FILE} {content.problem}; nothing is written over it", self.vault.path.as_uri())
        raise Unsupported(f"{FILE} is of a version that is not known; nothing is written over it", "credentials")

    def stage(self, changes: Mapping[str, Record | None], now: int) -> list[Change]:
        """Entries by account; None: it goes. Answers what that changes."""
        payload = self.payload()
        entries = dict(payload.get("credentials", {}))
        stored = dict(self.known.stored)
        for account, entry in changes.items():
            if entry is None:
                del entries[account], stored[account]
            else:
                entries[account] = entry
                stored[account] = self._stored(account, entry)
        times = payload.get("metadata")
        times = times if isinstance(times, dict) else {}
        self._staged = {
            **payload,
            "credentials": entries,
            "metadata": {"createdAt": now, **times, "updatedAt": now},
        }
        before = self.known
        self.known = evolve(before, stored=stored, named=named(stored.values(), self.owners))
        return self.changes(before, self.known)

    def stage_anew(self) -> None:
        """The same, sealed with the key that the app takes."""
        self._staged = self.payload()

    def item(self, id: str) -> Item:
        return Row(self.known.named[id], self.vault.now).item()

    def changes(self, before: Known, after: Known) -> list[Change]:
        noun = CREDENTIALS.name
        changes = [Change(f"{noun}/didDelete", noun, {"id": id}) for id in before.named if id not in after.named]
        for id, new in after.named.items():
            old = before.named.get(id)
            if old is None:
                item = Row(new, self.vault.now).item().as_json()
                changes.append(Change(f"{noun}/didCreate", noun, {"item": item}))
            elif old.stored.version != new.stored.version or old.value != new.value:
                # Another secret alone is an empty patch with another version.
                members = {"changes": [{"id": id, "version": new.stored.version}], "patch": diff(old.value, new.value)}
                changes.append(Change(f"{noun}/didChange", noun, members))
        return changes

    def write(self) -> None:
        if self._staged is None:
            return
        content = self.content()
        assert self._header is not None
        try:
            self._settle(vault.save(self.vault.path, content, self._header, self._staged, self.vault.keys))
        except DirectoryNotFlushed as error:
            self._settle(error.result)  # it is there; what is not safe yet is its name
            raise

    def _settle(self, saved: Content) -> None:
        before = self._base
        self._content, self._staged = saved, None
        self.known = self._base = evolve(
            self.known, fingerprint=saved.fingerprint, state=saved.state, own_issues=saved.issues(), outdated=False
        )
        self._late = _told(before, self._base)

    def told_late(self) -> list[Change]:
        return self._late

    def discard(self) -> None:
        self._staged, self.known = None, self._base

    def publish(self) -> None:
        self.vault.known, self.vault.opened = self._base, True
        index, shown = self.vault.index, self._base.named
        for id in [row.id for row in index if row.id not in shown]:
            index.remove(id)
        for id, one in shown.items():
            old = self.vault.find(id)
            if old is None or old.named != one:
                index.put(Row(one, self.vault.now))


def _told(before: Known, after: Known) -> list[Change]:
    return issue_changes({FILE: before.issues}, {FILE: after.issues})


@define(eq=False, kw_only=True)
class LookAtVault(Commit):
    """The unit does the work. Answers nothing."""

    promises = False
    reads: frozenset[str] = frozenset({REGISTRY})

    @property
    def unit(self) -> str:
        return FILE

    def plan(self, unit: VaultUnit, now: int) -> Planned:
        return Planned(None)


@define(eq=False, kw_only=True)
class SealAnew(LookAtVault):
    """With the key that the app takes on this machine: it throws away what it cannot open."""

    def plan(self, unit: VaultUnit, now: int) -> Planned:
        if unit.known.outdated:
            unit.stage_anew()
        return Planned(None)


@define(eq=False, kw_only=True)
class CredentialCommit(LookAtVault):
    id: str

    @property
    def ref(self) -> Ref:
        return Ref(CREDENTIALS.name, self.id)

    def found(self, unit: VaultUnit) -> Named:
        """Raises: NotFound; Undecryptable, Corrupt: nobody knows."""
        unit.vault.require_open(unit.known)
        found = unit.known.named.get(self.id)
        if found is None:
            raise NotFound(self.ref)
        return found


@frozen
class Secret:
    """One entry as stored."""

    version: str
    entry: Any = field(repr=False)


@define(eq=False, kw_only=True)
class Reveal(CredentialCommit):
    """Answers the Secret."""

    def plan(self, unit: VaultUnit, now: int) -> Planned:
        found = self.found(unit)
        entry = unit.entry(found.stored.account)
        if isinstance(entry, dict):
            entry = {name: member for name, member in entry.items() if name != MARK}
        return Planned(Secret(found.stored.version, entry))


@define(eq=False, kw_only=True)
class SetCredential(CredentialCommit):
    """Store *value* in the place of what is there. refreshed: what it does not say stays. Answers Updated.

    expected: version believed to be there, "" = there must be none.
    """

    promises = True
    identity: Identity
    value: Record = field(repr=False)
    refreshed: bool = False
    expected: str | None = None

    def plan(self, unit: VaultUnit, now: int) -> Planned:
        unit.require_writable()
        workspace = self.identity.parts[0] if self.identity.of_workspace else None
        if workspace is not None and workspace not in {owner.id for owner in unit.owners}:
            raise NotFound(Ref("workspaces", workspace))
        current = self.found(unit) if self.refreshed else unit.known.named.get(self.id)
        refuse_another(unit, current, self.ref, self.expected)
        account = place(self.identity, unit.known.named, unit.owners)
        before = account if current is None else current.stored.account
        if current is None and account in unit.known.stored:
            raise InvalidState(f"{account} is somebody else's", "taken", (), self.ref)
        old = unit.entry(before)
        entry = {name: member for name, member in self.value.items() if name != MARK}
        if self.refreshed and isinstance(old, dict):
            entry = credentials.refreshed(old, entry)
        if issues := credentials.validate(entry, None):
            raise ValidationFailed(tuple(evolve(issue, path=f"value.{issue.path}") for issue in issues), self.ref)
        if workspace is not None:
            entry[MARK] = workspace
        if account == before and old is not None and json_text.canonical(old) == json_text.canonical(entry):
            return Planned(Updated(unit.item(self.id), changed=False))
        moved = {} if account == before else {before: None}
        changes = unit.stage({**moved, account: entry}, now)
        return Planned(Updated(unit.item(self.id), changed=True), changes)


@define(eq=False, kw_only=True)
class DeleteCredential(CredentialCommit):
    promises = True
    missing_ok: bool = False
    expected: str | None = None

    def plan(self, unit: VaultUnit, now: int) -> Planned:
        try:
            found = self.found(unit)
        except NotFound:
            if self.missing_ok:
                return Planned(None)
            raise
        unit.require_writable()
        refuse_another(unit, found, self.ref, self.expected)
        return Planned(None, unit.stage({found.stored.account: None}, now))


def refuse_another(unit: VaultUnit, current: Named | None, ref: Ref, expected: str | None) -> None:
    """Raises VersionConflict where *current* is not the version *expected*."""
    if expected is None or expected == ("" if current is None else current.stored.version):
        return
    if current is None:
        raise VersionConflict(ref, {"version": ""})
    item = unit.item(current.id)
    raise VersionConflict(ref, {"version": item.version, "item": item.as_json()})


def identity_of(id: str) -> Identity | None:
    """What a client may set under *id*; None where it is none that would be found again."""
    identity = credentials.parse(id)
    return identity if identity is not None and identity.storable else None
