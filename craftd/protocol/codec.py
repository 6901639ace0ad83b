"""JSON <-> the classes of the registry: strict, nothing coerced, every wrong member named by its wire path.

Stored JSON (members typed `Record` or `Any`) passes through as it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import orjson
from cattrs import Converter
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)
from cattrs.gen import make_dict_structure_fn, override

from craftd.errors import InvalidParams, Issue, ParseError
from craftd.model import json_text
from craftd.model.records import Item, Record

_T = TypeVar("_T")

_JSON_NAMES: Mapping[type, str] = {
    str: "a string", int: "an integer", bool: "true or false", float: "a number",
    dict: "an object", list: "an array", type(None): "null",
}  # fmt: skip


Raw = orjson.Fragment
"""JSON text that was written before, spliced into an answer as it is: `Raw(b"{}")`."""


class Mismatch(ValueError):
    """A value is not of the type that its place wants."""


def camel(name: str) -> str:
    """Wire name of a Python name: `missing_ok` -> `missingOk`, `from_` -> `from`."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def loads(body: bytes) -> Any:
    """Raises: ParseError."""
    try:
        return json_text.loads(body)
    except ValueError as error:
        raise ParseError(f"the message cannot be read as JSON: {error}") from None


def structure(cls: type[_T], params: Any) -> _T:
    """An instance of the params class *cls*.

    Absent params are `{}`, and so is an empty list, which is how Lua writes an empty table; null is absence except
    where `Any` is wanted; `_meta` is ignored.
    Raises: InvalidParams with one issue per wrong member.
    """
    if params is None or params == []:
        params = {}
    elif type(params) is not dict:
        raise InvalidParams.of("", f"params must be an object, not {json_name(params)}")
    elif "_meta" in params:
        params = {name: value for name, value in params.items() if name != "_meta"}
    hook = _hooks.get(cls)
    if hook is None:
        hook = _hooks[cls] = _converter.get_structure_hook(cls)
    try:
        instance: _T = hook(params, cls)
    except (BaseValidationError, Mismatch) as failure:
        raise InvalidParams(tuple(issues_of(failure))) from None
    return instance


def dumps(value: Any) -> bytes:
    """JSON text of an answer or event: attrs instances by their wire names without None, `Raw` as it is."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        # What orjson cannot write although JSON can: lone surrogates, integers above 64 bits.
        return json_text.dumps(_expand(value))


def json_name(value: Any) -> str:
    """What a parsed JSON value is, in words."""
    return _JSON_NAMES.get(type(value), type(value).__name__)


def _is_union(tp: Any) -> bool:
    return get_origin(tp) in (Union, types.UnionType)


# Writing


@cache
def _members(cls: type) -> tuple[tuple[str, str], ...]:
    return tuple((a.name, camel(a.name)) for a in attrs.fields(cls))


def _plain(value: Any) -> Any:
    """What orjson does not know, in terms of what it knows.  Raises: TypeError."""
    cls = type(value)
    if cls is Item:
        return value.as_json()
    if attrs.has(cls):
        return {wire: member for name, wire in _members(cls) if (member := getattr(value, name)) is not None}
    raise TypeError(f"{cls.__name__} is no JSON")


def _expand(value: Any) -> Any:
    """*value* in dicts, lists and scalars alone."""
    if isinstance(value, Raw):
        return json_text.loads(orjson.dumps(value))
    if isinstance(value, dict):
        return {name: _expand(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_expand(element) for element in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return _expand(_plain(value))


# Reading

_converter = Converter(forbid_extra_keys=True, detailed_validation=True)
_Hook = Callable[[Any, Any], Any]
_hooks: dict[type, _Hook] = {}
"""By params class: cattrs' own look-up takes as long as two members."""


def be_strict(converter: Converter) -> None:
    """Take scalars as they are or not at all; cattrs by itself makes "5" of 5 and True of "no"."""
    for tp, accepted in ((str, (str,)), (int, (int,)), (bool, (bool,)), (float, (float, int))):
        converter.register_structure_hook(tp, _scalar(tp, accepted))


def _scalar(tp: type, accepted: tuple[type, ...]) -> _Hook:
    def read(value: Any, _: Any) -> Any:
        if type(value) in accepted:  # type, not isinstance: Python counts true among the integers
            return value
        raise _mismatch(_JSON_NAMES[tp], value)

    return read


def _is(tp: Any, generic: Any) -> bool:
    origin: Any = get_origin(tp)
    return origin is generic


be_strict(_converter)


@_converter.register_structure_hook_factory(lambda tp: _is(tp, dict))
def _object(tp: Any) -> _Hook:
    element = get_args(tp)[1]
    inner = None if element is Any else _converter.get_structure_hook(Mapping[str, element])  # type: ignore[valid-type]

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise _mismatch("an object", value)
        return value if inner is None else inner(value, tp)

    return read


@_converter.register_structure_hook_factory(lambda tp: _is(tp, tuple))
def _array(tp: Any) -> _Hook:
    element = get_args(tp)[0]
    inner = None if element is Any else _converter.get_structure_hook(list[element])  # type: ignore[valid-type]
    plain = {element} if element in _JSON_NAMES else {dict} if element == Record else set()

    def read(value: Any, _: Any) -> Any:
        if type(value) is not list:
            raise _mismatch("an array", value)
        if inner is None or plain.issuperset(map(type, value)):
            return tuple(value)
        return tuple(inner(value, tp))

    return read


@_converter.register_structure_hook_factory(lambda tp: _is(tp, Literal))
def _one_of(tp: Any) -> _Hook:
    allowed = get_args(tp)

    def read(value: Any, _: Any) -> Any:
        if type(value) is str and value in allowed:
            return value
        raise Mismatch("expected one of " + ", ".join(allowed))

    return read


@_converter.register_structure_hook_factory(_is_union)
def _union(tp: Any) -> _Hook:
    """Members of a union must differ in their JSON type: that alone decides."""
    choices = {_json_type(choice): choice for choice in get_args(tp)}
    if float in choices:
        choices.setdefault(int, float)  # JSON has one kind of number
    untouched = {kind for kind, choice in choices.items() if choice in _JSON_NAMES or choice == Record}
    hooks = {k: (_converter.get_structure_hook(c), c) for k, c in choices.items() if k not in untouched}
    wanted = " or ".join(
        dict.fromkeys(_JSON_NAMES[choices[kind] if kind is int else kind] for kind in choices if kind is not type(None))
    )

    def read(value: Any, _: Any) -> Any:
        kind = type(value)
        if kind in untouched:
            return value
        if kind not in hooks:
            raise _mismatch(wanted, value)
        hook, choice = hooks[kind]
        return hook(value, choice)

    return read


def _json_type(tp: Any) -> type:
    origin = get_origin(tp)
    if origin is Literal:
        return str
    if origin is tuple:
        return list
    if origin is dict or attrs.has(tp):
        return dict
    return tp if isinstance(tp, type) else object


@_converter.register_structure_hook_factory(attrs.has)
def _instance(cls: type) -> _Hook:
    attrs.resolve_types(cls)
    members = attrs.fields(cls)
    renamed: Any = {member.name: override(rename=camel(member.name)) for member in members}
    inner: Any = make_dict_structure_fn(
        cls, _converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True, **renamed
    )
    verbatim = frozenset(camel(member.name) for member in members if member.type is Any)

    def read(value: Any, _: Any) -> Any:
        if type(value) is not dict:
            raise _mismatch("an object", value)
        if None in value.values():
            value = {name: member for name, member in value.items() if member is not None or name in verbatim}
        return inner(value, cls)

    return read


def _mismatch(wanted: str, value: Any) -> Mismatch:
    return Mismatch(f"expected {wanted}, not {json_name(value)}")


def issues_of(failure: BaseException, path: str = "") -> Iterator[Issue]:
    """What cattrs or a hook of it complained about, each under its wire path below *path*."""
    for note in getattr(failure, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            path = _below(path, camel(note.name))
        elif isinstance(note, IterableValidationNote):
            path = _below(path, str(note.index))
    if isinstance(failure, BaseValidationError):
        for inner in failure.exceptions:
            yield from issues_of(inner, path)
    elif isinstance(failure, ForbiddenExtraKeysError):
        for name in sorted(failure.extra_fields):
            yield Issue(path=_below(path, name), message="unknown member")
    elif isinstance(failure, KeyError):
        yield Issue(path=path, message="required")
    else:
        yield Issue(path=path, message=str(failure) if isinstance(failure, Mismatch) else "not of the type wanted here")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
