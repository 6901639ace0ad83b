"""Changes to a record as data: `{unset, set, remove, add}`, applied in that order (protocol.md, resource contract).

`unset` takes pointers away; `set` merges objects deeply and replaces everything else; `remove` and `add` treat arrays
as sets. Pointers are RFC 6901 and lead through objects only. Values are compared as JSON text: 1 is 1.0, True is not 1.
Results share unchanged parts with their inputs: records are never changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from craftd.errors import InvalidParams, Issue
from craftd.model import json_text
from craftd.model.json_text import MAX_DEPTH, equal
from craftd.model.records import Record

Patch: TypeAlias = dict[str, Any]
Tokens: TypeAlias = tuple[str, ...]

MEMBERS = ("unset", "set", "remove", "add")
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+", re.DOTALL)
_ABSENT: Any = object()


def parse_pointer(pointer: str) -> Tokens:
    """The keys that a well-formed, non-empty pointer names: `/a~1b/c` -> ("a/b", "c")."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def format_pointer(tokens: Iterable[str]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def check(patch: object) -> list[Issue]:
    """What is wrong with the shape of a patch from a client."""
    if not isinstance(patch, dict):
        return [Issue(path="patch", message="must be an object")]
    return [Issue(path=path, message=message) for path, message in _problems(patch)]


def apply(record: Record, patch: Patch) -> Record:
    """*record* after *patch* (one that `check` accepts). What is not there is not unset or removed; no error.

    `add` makes the array and the objects above it if they are missing.
    Raises: InvalidParams where `remove` or `add` meet something that is no array, or lead through no object.
    """
    for pointer in patch.get("unset", ()):
        record = _without(record, parse_pointer(pointer))
    record = _merged(record, patch.get("set", {}))
    for pointer, elements in patch.get("remove", {}).items():
        tokens = parse_pointer(pointer)
        found = _find(record, tokens, "remove", pointer)
        if found is not _ABSENT:
            record = _replaced(record, tokens, _subtract(_array(found, "remove", pointer), elements))
    for pointer, elements in patch.get("add", {}).items():
        tokens = parse_pointer(pointer)
        found = _find(record, tokens, "add", pointer)
        record = _replaced(record, tokens, _unite([] if found is _ABSENT else _array(found, "add", pointer), elements))
    return record


def diff(old: Record, new: Record) -> Patch:
    """A small patch that leads from *old* to *new*; {} when they are equal as JSON. The order of keys is no difference.

    An array is changed by `remove` and `add` where that says less than the whole array.
    """
    patch: Patch = {"unset": [], "set": {}, "remove": {}, "add": {}}
    _diff((), old, new, patch, patch["set"])
    return {name: member for name, member in patch.items() if member}


def merge(base: Record, mine: Record, theirs: Record) -> Record:
    """Both changes of *base*, field by field; where both changed one leaf, *theirs* stays.

    Arrays of strings that both changed merge as ordered sets. Keys stand as in *theirs*, then those only *mine* has.
    """
    merged: Record = {}
    for key in (*theirs, *(key for key in mine if key not in theirs)):
        value = _merge(base.get(key, _ABSENT), mine.get(key, _ABSENT), theirs.get(key, _ABSENT))
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _problems(patch: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in patch:
        if name not in MEMBERS:
            yield f"patch.{name}", "is not a member of a patch"
    unset = patch.get("unset", [])
    if isinstance(unset, list):
        for index, pointer in enumerate(unset):
            if not (isinstance(pointer, str) and _POINTER.fullmatch(pointer)):
                yield f"patch.unset.{index}", "must be a JSON pointer that begins with /"
    else:
        yield "patch.unset", "must be an array of JSON pointers"
    if not isinstance(patch.get("set", {}), dict):
        yield "patch.set", "must be an object"
    for name in ("remove", "add"):
        changes = patch.get(name, {})
        if not isinstance(changes, dict):
            yield f"patch.{name}", "must be an object of arrays by JSON pointer"
            continue
        for pointer, elements in changes.items():
            path = f"patch.{name}.{pointer}"
            if not _POINTER.fullmatch(pointer):
                yield path, "must be a JSON pointer that begins with /"
            elif not isinstance(elements, list):
                yield path, "must be an array"
            elif json_text.depth_exceeds(elements, MAX_DEPTH - pointer.count("/")):
                yield path, f"nests deeper than {MAX_DEPTH}"


def _refuse(member: str, pointer: str, message: str) -> InvalidParams:
    return InvalidParams.of(f"patch.{member}.{pointer}", message)


def _array(value: Any, member: str, pointer: str) -> list[Any]:
    if not isinstance(value, list):
        raise _refuse(member, pointer, "there is no array")
    return value


def _find(value: Any, tokens: Tokens, member: str, pointer: str) -> Any:
    for token in tokens:
        if not isinstance(value, dict):
            raise _refuse(member, pointer, "leads through something that is no object")
        if token not in value:
            return _ABSENT
        value = value[token]
    return value


def _replaced(record: Record, tokens: Tokens, value: Any) -> Record:
    """*record* with *value* at *tokens*, missing objects made."""
    key, rest = tokens[0], tokens[1:]
    return {**record, key: _replaced(record.get(key, {}), rest, value) if rest else value}


def _without(record: Any, tokens: Tokens) -> Any:
    """*record* without what is at *tokens*; the same object if nothing is."""
    key, rest = tokens[0], tokens[1:]
    if not isinstance(record, dict) or key not in record:
        return record
    if not rest:
        return {name: member for name, member in record.items() if name != key}
    member = _without(record[key], rest)
    return record if member is record[key] else {**record, key: member}


def _merged(old: Record, new: Record) -> Record:
    """*old* with the members of *new*; objects that meet are merged."""
    merged = dict(old)
    for key, value in new.items():
        present = old.get(key)
        merged[key] = _merged(present, value) if isinstance(value, dict) and isinstance(present, dict) else value
    return merged


def _subtract(array: list[Any], elements: list[Any]) -> list[Any]:
    gone = {json_text.canonical(element) for element in elements}
    return [element for element in array if json_text.canonical(element) not in gone]


def _unite(array: list[Any], elements: list[Any]) -> list[Any]:
    seen = {json_text.canonical(element) for element in array}
    united = list(array)
    for element in elements:
        text = json_text.canonical(element)
        if text not in seen:
            seen.add(text)
            united.append(element)
    return united


def _diff(path: Tokens, old: Record, new: Record, patch: Patch, into: Record) -> None:
    """Adds what leads from *old* to *new*, both at *path*, to *patch*; *into*: the place of *path* in its `set`."""
    for key in old:
        if key not in new:
            patch["unset"].append(format_pointer((*path, key)))
    for key, value in new.items():
        present = old.get(key, _ABSENT)
        if present is not _ABSENT and equal(present, value):
            continue
        here = (*path, key)
        if isinstance(present, dict) and isinstance(value, dict):
            inner: Record = {}
            _diff(here, present, value, patch, inner)
            if inner:
                into[key] = inner
        elif not (isinstance(present, list) and isinstance(value, list) and _diff_sets(here, present, value, patch)):
            into[key] = value


def _diff_sets(path: Tokens, old: list[Any], new: list[Any], patch: Patch) -> bool:
    """Whether `remove` and `add` lead from *old* to *new* in fewer elements than *new* has; if so, adds them."""
    removed, added = _subtract(old, new), _subtract(new, old)
    if len(removed) + len(added) >= len(new) or not equal(_unite(_subtract(old, removed), added), new):
        return False
    pointer = format_pointer(path)
    if removed:
        patch["remove"][pointer] = removed
    if added:
        patch["add"][pointer] = added
    return True


def _merge(base: Any, mine: Any, theirs: Any) -> Any:
    if _same(mine, theirs) or _same(base, mine):
        return theirs
    if _same(base, theirs):
        return mine
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return merge(base if isinstance(base, dict) else {}, mine, theirs)
    if _are_strings(mine) and _are_strings(theirs):
        before = base if _are_strings(base) else []
        kept = [element for element in theirs if element in mine or element not in before]
        return kept + [element for element in mine if element not in before and element not in theirs]
    return theirs


def _same(one: Any, other: Any) -> bool:
    if one is _ABSENT or other is _ABSENT:
        return one is other
    return equal(one, other)


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)
