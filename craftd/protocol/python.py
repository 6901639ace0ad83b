"""Python's half of the contract: the typed calls, shapes and errors of `craftd.client`, as text.

Calls and shapes follow from the OpenRPC document alone, errors from `craftd.errors`.
"""

from __future__ import annotations

import inspect
import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from craftd.errors import ERRORS

Schema: TypeAlias = Mapping[str, Any]

_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_CAPITAL: Final = re.compile("[A-Z]")
_TOKENS: Final = {"workDoneToken": "on_progress", "partialResultToken": "on_part"}
"""Params that a client makes itself, and the callback that asks for it."""
_HIDDEN: Final = frozenset({"message", "ref", "extra", "what"})
"""Fields of errors that are not members of `error.data`."""

_MADE: Final = "Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost."

_CALLS_HEAD: Final = f'''\
"""Every method of the protocol as a typed call: `client.sessions.list(workspace="notes")`.

{_MADE}
Names are snake_case here and camelCase on the wire; None stands for absence. What comes back is the JSON as sent.
"""

from __future__ import annotations

TYPE_CHECKING = False  # programs that only call need neither `typing` nor the shapes
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from typing import Any, Literal, Protocol

    from craftd.client.shapes import (
{{imports}}
    )

    class Door(Protocol):
        """What carries the calls out. `params`: by wire name, None where absent."""

        async def call(
            self,
            method: str,
            params: Mapping[str, Any] | None = None,
            *,
            on_progress: Callable[[Any], None] | None = None,
            on_part: Callable[[Any], None] | None = None,
        ) -> Any: ...

        def pages(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[Any]: ...


class Noun:
    """Calls of one noun."""

    __slots__ = ("_door",)

    def __init__(self, door: Door) -> None:
        self._door = door

'''

_TABLES_HEAD: Final = f'''\
"""Which methods may be sent once more.

{_MADE}
"""

from __future__ import annotations
'''

_SHAPES_HEAD: Final = f'''\
"""What the daemon answers and says, as types: the JSON as it is on the wire.

{_MADE}
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Item(TypedDict):
    """One record. value: as stored; info: computed."""

    id: str
    version: str
    value: dict[str, Any]
    info: NotRequired[dict[str, Any]]
    uri: NotRequired[str]
'''

_ERRORS_HEAD: Final = f'''\
"""Every failure that the daemon answers with, one class each: `except VersionConflict as failure: failure.current`.

{_MADE}
"""

from __future__ import annotations

from craftd.client.failures import CallFailed

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know the name
if TYPE_CHECKING:
    from typing import Any
'''


def snake(name: str) -> str:
    """Python name of a wire name: `missingOk` -> `missing_ok`, `from` -> `from_`."""
    name = _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)
    return f"{name}_" if keyword.iskeyword(name) else name


def pascal(*words: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in words)


def calls(document: Schema) -> str:
    """One class per noun, and `Calls`, which has them all."""
    nouns: dict[str, list[Schema]] = {}
    for row in document["methods"]:
        nouns.setdefault(row["name"].partition("/")[0], []).append(row)
    classes = [_noun(name, rows) for name, rows in nouns.items()]
    text = "".join(classes)
    named = sorted({"Item", *document["components"]["schemas"]})
    used = [name for name in named if re.search(rf"\b{name}\b(?!:)", "\n".join(_annotations(text)))]
    parts = [_CALLS_HEAD.format(imports="\n".join(f"        {name}," for name in used)), text]
    parts.append('\nclass Calls:\n    """All nouns."""\n\n    def __init__(self, door: Door) -> None:\n')
    parts += [f"        self.{name} = {pascal(name)}Calls(door)\n" for name in nouns]
    return "".join(parts)


def tables(document: Schema) -> str:
    """What a client has to know of a method to send it once more."""
    parts = [_TABLES_HEAD, "\nKEYED = frozenset(\n    {\n"]
    parts += [f'        "{row["name"]}",\n' for row in document["methods"] if _has(row, "key")]
    parts.append('    }\n)\n"""Methods that take a `key`: the same change sent again with its key is made once."""\n')
    parts.append("\nREADS = frozenset(\n    {\n")
    parts += [f'        "{row["name"]}",\n' for row in document["methods"] if is_read(row)]
    parts.append('    }\n)\n"""Methods that change nothing: asking again is harmless."""\n')
    return "".join(parts)


def is_read(row: Schema) -> bool:
    return row["x-right"] in ("none", "read") and not row["x-mutates"]


def _annotations(text: str) -> Iterator[str]:
    """The lines of *text* that name types."""
    return (line for line in text.split("\n") if "->" in line or re.match(r" {8}\w+: ", line))


def _has(row: Schema, param: str) -> bool:
    return any(member["name"] == param for member in row["params"])


def _noun(name: str, rows: Iterable[Schema]) -> str:
    methods = "".join(_method(row) for row in rows)
    return f'\nclass {pascal(name)}Calls(Noun):\n    """The methods `{name}/...`."""\n\n    __slots__ = ()\n{methods}\n'


def _method(row: Schema) -> str:
    verb = snake(row["name"].partition("/")[2])
    params = [param for param in row["params"] if param["name"] not in _TOKENS]
    callbacks = [callback for token, callback in _TOKENS.items() if _has(row, token)]
    result = _type(row["result"]["schema"])
    signature = "".join(f"        {_param(param)},\n" for param in params)
    signature += "".join(f"        {callback}: Callable[[Any], None] | None = None,\n" for callback in callbacks)
    passed = _passed(params) + "".join(f"            {name}={name},\n" for name in callbacks)
    call = f'await self._door.call(\n            "{row["name"]}",\n{passed}        )\n'
    body = f"        {call}" if result == "None" else f"        result: {result} = {call}        return result\n"
    doc = _docstring(_doc(row, params), 8)
    text = f"\n    async def {verb}({_arguments(signature)}) -> {result}:\n{doc}{body}"
    return text + _iterate(row, params) if verb == "list" and _has(row, "cursor") else text


def _doc(row: Schema, params: Iterable[Schema]) -> str:
    """What the method does, then what is known of its params."""
    said = [(param["name"], param["schema"].get("description")) for param in params]
    lines = [f"{snake(name)}: {doc}" for name, doc in said if doc]
    return "\n".join([row["description"], *(["", *lines] if lines else [])])


def _iterate(row: Schema, params: Iterable[Schema]) -> str:
    """All pages as one iterator."""
    kept = [param for param in params if param["name"] != "cursor"]
    signature = "".join(f"        {_param(param)},\n" for param in kept)
    return (
        f"\n    def iterate({_arguments(signature)}) -> AsyncIterator[Item]:\n"
        f'        """All items of `list`, page after page."""\n'
        f'        return self._door.pages(\n            "{row["name"]}",\n{_passed(kept)}        )\n'
    )


def _arguments(signature: str) -> str:
    return f"\n        self,\n        *,\n{signature}    " if signature else "self"


def _passed(params: Iterable[Schema]) -> str:
    members = [f'                "{param["name"]}": {snake(param["name"])},\n' for param in params]
    return "            {\n" + "".join(members) + "            },\n" if members else "            {},\n"


def _param(param: Schema) -> str:
    wanted = _type(param["schema"], given=True)
    name = snake(param["name"])
    if param["required"]:
        return f"{name}: {wanted}"
    if wanted == "Any":
        return f"{name}: {wanted} = None"
    told = f"{name}: {wanted} | None = None"
    return told if len(told) < 120 - len("        ,") else f"{name}: {wanted}\n        | None = None"


def shapes(document: Schema) -> str:
    """A TypedDict per answer and per notification, and `Notification`, which is any of these."""
    parts = [_SHAPES_HEAD]
    for name, schema in document["components"]["schemas"].items():
        if name != "Item":
            parts.append(_shape(name, schema, schema.get("description", "")))
    events = []
    for row in document["x-notifications"]:
        name = pascal(*row["name"].split("/"))
        parts.append(_shape(name, row["params"], row["description"]))
        events.append(f"{name}Event")
        parts.append(f'\n\nclass {name}Event(TypedDict):\n    method: Literal["{row["name"]}"]\n    params: {name}\n')
    parts.append("\n\nNotification: TypeAlias = (\n    " + "\n    | ".join(events) + "\n)\n")
    return "".join(parts)


def _shape(name: str, schema: Schema, doc: str) -> str:
    lines = [f"\n\nclass {name}(TypedDict):\n", _docstring(doc, 4)]
    properties: Schema = schema.get("properties", {})
    if properties:
        lines.append("\n")
    for member, inner in properties.items():
        wanted = _type(inner)
        lines += _comment(inner.get("description", ""))
        required = member in schema.get("required", ())
        lines.append(f"    {member}: {wanted}\n" if required else f"    {member}: NotRequired[{wanted}]\n")
    return "".join(lines)


def _comment(doc: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(doc.split()), 110):
        yield f"    # {line}\n"


def errors() -> str:
    """An exception per error, and `ERRORS`, which finds them by their wire name."""
    parts = [_ERRORS_HEAD]
    for name, cls in ERRORS.items():
        parts.append(f"\n\nclass {name}(CallFailed):\n{_docstring(inspect.cleandoc(cls.__doc__ or ''), 4)}")
        members = [member for member in attrs.fields(cls) if member.name not in _HIDDEN]  # type: ignore[arg-type]
        if members:
            parts.append("\n")
        parts += [f"    {member.name}: {_said(member)}\n" for member in members]
    parts.append("\n\nERRORS: dict[str, type[CallFailed]] = {\n")
    parts += [f'    "{name}": {name},\n' for name in ERRORS]
    parts.append("}\n")
    return "".join(parts)


def _said(member: attrs.Attribute[Any]) -> str:
    """Type of a member of `error.data`: JSON, so issues are objects and tuples are lists."""
    text = str(member.type)
    text = re.sub(r"tuple\[(\w+), \.\.\.\]", r"list[\1]", text).replace("Issue", "dict[str, Any]")
    return text


def _type(schema: Schema, *, given: bool = False) -> str:
    """given: what a caller may pass, else what is got."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(choice, given=given) for choice in schema["anyOf"])
    if "enum" in schema:
        return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
    kind = schema.get("type")
    if kind == "array":
        return f"{'Sequence' if given else 'list'}[{_type(schema['items'], given=given)}]"
    if kind == "object":
        inner = _type(schema["additionalProperties"], given=given) if "additionalProperties" in schema else "Any"
        return f"{'Mapping' if given else 'dict'}[str, {inner}]"
    return "Any" if kind is None else _SCALARS[kind]


def _docstring(doc: str, indent: int) -> str:
    margin = " " * indent
    first, *rest = [line for part in doc.split("\n") for line in (textwrap.wrap(part, 110 - indent) or [""])] or [""]
    if not rest:
        return f'{margin}"""{first}"""\n'
    return f'{margin}"""{first}\n' + "".join(f"{margin}{line}".rstrip() + "\n" for line in rest) + f'{margin}"""\n'
