"""Settings and connections: parts of the global `config.json`, changed in its unit, the list of workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve

from craftd.errors import AlreadyExists, Issue, NotFound, Ref, ValidationFailed, VersionConflict
from craftd.model import app_records as model
from craftd.model import patch as patches
from craftd.model.app_records import CONNECTIONS, PREFERENCES, SETTINGS
from craftd.model.noun import Facts, Noun
from craftd.model.records import Item, Record, version_of
from craftd.store import files
from craftd.workspace.changes import Updated, refuse_immutable
from craftd.workspace.commit import Commit, Planned
from craftd.workspace.index import Index
from craftd.workspace.journal import Change
from craftd.workspace.rows import PlainRow

if TYPE_CHECKING:
    from craftd.workspace.home import Home
    from craftd.workspace.registry import RegistryUnit

REGISTRY = "config.json"


def settings_item(config: Record) -> Item:
    value = model.settings_of(config)
    return Item(SETTINGS.name, version_of(value), value)


def connection_item(config: Record, slug: str) -> Item:
    """Raises: NotFound."""
    entry = model.connections_of(config).get(slug)
    if entry is None:
        raise NotFound(Ref(CONNECTIONS.name, slug))
    info = {"default": True} if model.default_connection(config) == slug else {}
    return Item(slug, version_of(entry), entry, info)


def connections(config: Record, epoch: str) -> Index:
    """All connections, to be listed."""
    index = Index(epoch, CONNECTIONS.sort, fields=frozenset(CONNECTIONS.fields))
    items = [connection_item(config, slug) for slug in model.connections_of(config)]
    index.fill(PlainRow(one.id, REGISTRY, one.value, one.version, one.info, None) for one in items)
    return index


def item(home: Home, noun: str, id: str) -> Item:
    """Raises: NotFound."""
    config = home.file.value or {}
    if noun == PREFERENCES.name:
        row = home.tables[noun].find(noun)
        assert row is not None
        return row.item()
    return settings_item(config) if noun == SETTINGS.name else connection_item(config, id)


def of_workspace(item: Item) -> Item:
    """The settings of a workspace: it without its place. The version is the same."""
    value = {name: member for name, member in item.value.items() if name != "path"}
    return evolve(item, id=SETTINGS.name, value=value)


def differences(before: Record, after: Record) -> list[Change]:
    """What leads who knows *before* of the global `config.json` to *after*."""
    changes: list[Change] = []
    old, new = model.settings_of(before), model.settings_of(after)
    if patch := patches.diff(old, new):
        changes.append(_changed(SETTINGS, SETTINGS.name, version_of(new), patch))
    was, now = model.connections_of(before), model.connections_of(after)
    name = CONNECTIONS.name
    changes += [Change(f"{name}/didDelete", name, {"id": slug}) for slug in was if slug not in now]
    for slug, entry in now.items():
        if slug not in was:
            changes.append(Change(f"{name}/didCreate", name, {"item": connection_item(after, slug).as_json()}))
        elif patch := patches.diff(was[slug], entry):
            changes.append(_changed(CONNECTIONS, slug, version_of(entry), patch))
    return changes


def _changed(noun: Noun, id: str, version: str, patch: Record) -> Change:
    members = {"changes": [{"id": id, "version": version}], "patch": patch}
    return Change(f"{noun.name}/didChange", noun.name, members)


@define(eq=False, kw_only=True)
class ConfigCommit(Commit):
    """expected: version believed to be there."""

    expected: str | None = None

    @property
    def unit(self) -> str:
        return REGISTRY

    def _expect(self, ref: Ref, now: Item) -> None:
        if self.expected is not None and now.version != self.expected:
            raise VersionConflict(ref, {"version": now.version, "item": now.as_json()})


@define(eq=False, kw_only=True)
class UpdateGlobalSettings(ConfigCommit):
    """Answers Updated."""

    patch: Record

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        ref, there = Ref(SETTINGS.name, SETTINGS.name), settings_item(config)
        self._expect(ref, there)
        old = there.value
        new = patches.apply(old, self.patch)
        if not patches.diff(old, new):
            return Planned(Updated(there, changed=False))
        if issues := [*SETTINGS.validate(new, old), *model.named_wrongly(new, config, old)]:
            raise ValidationFailed(tuple(issues), ref)
        changed = files.graft(config, old, new)
        unit.stage(changed)
        return Planned(Updated(settings_item(changed), changed=True), differences(config, changed))


@define(eq=False, kw_only=True)
class ConnectionCommit(ConfigCommit):
    slug: str

    @property
    def ref(self) -> Ref:
        return Ref(CONNECTIONS.name, self.slug)

    def found(self, unit: RegistryUnit) -> Item:
        """Raises: NotFound, VersionConflict."""
        there = connection_item(unit.config(), self.slug)
        self._expect(self.ref, there)
        return there


@define(eq=False, kw_only=True)
class CreateConnection(ConfigCommit):
    """Answers the new Item. id: a slug that was asked for."""

    value: Record
    facts: Facts
    id: str | None = None

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        facts = evolve(self.facts, now=now, taken=frozenset(model.connections_of(config)), id=self.id)
        slug, entry = model.new_connection(self.value, facts)
        ref = Ref(CONNECTIONS.name, slug)
        if slug in model.connections_of(config):
            raise AlreadyExists(ref, connection_item(config, slug).as_json())
        issues = _errors(CONNECTIONS.validate(entry, None))
        if CONNECTIONS.id_pattern.fullmatch(slug) is None:
            issues.append(Issue(path="slug", message="must be letters, digits and inner hyphens"))
        if issues:
            raise ValidationFailed(tuple(issues), ref)
        changed = model.with_connection(config, slug, entry)
        unit.stage(changed)
        return Planned(connection_item(changed, slug), differences(config, changed))


@define(eq=False, kw_only=True)
class UpdateConnection(ConnectionCommit):
    """Answers Updated."""

    patch: Record

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config, there = unit.config(), self.found(unit)
        new = patches.apply(there.value, self.patch)
        if not patches.diff(there.value, new):
            return Planned(Updated(there, changed=False))
        refuse_immutable(CONNECTIONS, there.value, new, self.ref)
        if issues := _errors(CONNECTIONS.validate(new, there.value)):
            raise ValidationFailed(tuple(issues), self.ref)
        changed = model.with_connection(config, self.slug, files.graft(there.value, there.value, new))
        unit.stage(changed)
        return Planned(Updated(connection_item(changed, self.slug), changed=True), differences(config, changed))


@define(eq=False, kw_only=True)
class AskForConnection(ConnectionCommit):
    """Whether it may be deleted. Answers nothing."""

    promises = False

    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        self.found(unit)
        return Planned(None)


@define(eq=False, kw_only=True)
class DeleteConnection(ConnectionCommit):
    def plan(self, unit: RegistryUnit, now: int) -> Planned:
        config = unit.config()
        self.found(unit)
        changed = model.with_connection(config, self.slug, None)
        unit.stage(changed)
        return Planned(None, differences(config, changed))


def _errors(issues: list[Issue]) -> list[Issue]:
    return [issue for issue in issues if issue.severity == "error"]
