"""What follows from the registry: JSON Schema, the OpenRPC document, the tables of protocol.md, types for the clients.

Pure functions, and `python -m craftd.protocol.generate [--check]`, which writes the files in the working directory.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import attrs

from craftd.errors import ERRORS
from craftd.model.records import Record
from craftd.protocol import methods as _complete_registry  # noqa: F401
from craftd.protocol import python
from craftd.protocol.codec import Raw, camel
from craftd.protocol.initialize import Abilities, Options, Welcome
from craftd.protocol.registry import REGISTRY, Method, Registry
from craftd.protocol.rendezvous import PROTOCOL, VERSION
from craftd.protocol.typescript import typescript

Schema: TypeAlias = dict[str, Any]

_SCALARS: Mapping[Any, Schema] = {
    Any: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    None: {"type": "null"},
}
_MARKER = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Schemas:
    """JSON Schemas of classes, collected under their names. definitions: what `#/components/schemas/` points into."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def of(self, tp: Any) -> Schema:
        """Schema of a member's or result's type; None (absence) does not enter."""
        if tp in _SCALARS:
            return dict(_SCALARS[tp])
        origin, arguments = get_origin(tp), get_args(tp)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        if origin is dict:
            return {"type": "object"} if arguments[1] is Any else self._map(arguments[1])
        if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
            return {"type": "array", "items": self.of(arguments[0])}
        return self._reference(tp)

    def _map(self, element: Any) -> Schema:
        return {"type": "object", "additionalProperties": self.of(element)}

    def _union(self, choices: Iterable[Any]) -> Schema:
        """Text written before and records cut to some members stand for the class beside them."""
        wanted = [choice for choice in choices if choice not in (type(None), Raw)]
        if any(attrs.has(choice) for choice in wanted):
            wanted = [choice for choice in wanted if choice != Record]
        schemas = [self.of(choice) for choice in wanted]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _reference(self, cls: type) -> Schema:
        name = cls.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # a class may lead back to itself
            self.definitions[name] = self.object(cls)
        return {"$ref": f"#/components/schemas/{name}"}

    def object(self, cls: type) -> Schema:
        """Schema of an attrs class."""
        members = _members(cls)
        schema: Schema = {"type": "object", "description": _summary(cls)}
        schema["properties"] = {camel(member.name): self.member(cls, member) for member in members}
        required = [camel(member.name) for member in members if member.default is attrs.NOTHING]
        return {**schema, "required": required} if required else schema

    def member(self, cls: type, member: attrs.Attribute[Any]) -> Schema:
        schema = self.of(member.type)
        default = member.default
        if isinstance(default, str | int) and "$ref" not in schema:
            schema["default"] = default
        if doc := member_docs(cls).get(member.name):
            schema["description"] = doc
        return schema


@cache
def member_docs(cls: type) -> Mapping[str, str]:
    """The strings that stand below members in the source of *cls* and its bases, by member."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not attrs.has(base) or "__attrs_attrs__" not in base.__dict__:
            continue
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError):  # made by a function: its members are described where they come from
            continue
        for statement, following in pairwise(body.body):  # type: ignore[attr-defined]
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[name] = inspect.cleandoc(doc)
    return docs


def openrpc(registry: Registry = REGISTRY) -> Schema:
    """The OpenRPC document of *registry*, with the notifications and craftd's part of `initialize` as extensions."""
    schemas = Schemas()
    document: Schema = {
        "openrpc": "1.3.2",
        "info": {"title": "craftd", "version": PROTOCOL, "description": f"Workspace daemon, version {VERSION}"},
        "methods": [_method(row, schemas) for _, row in sorted(registry.methods.items())],
        "x-notifications": [
            {"name": name, "description": row.doc, "params": schemas.object(row.params), "x-since": row.since}
            for name, row in sorted(registry.notifications.items())
        ],
        "x-initialize": {
            "options": schemas.of(Options),
            "clientCapability": schemas.of(Abilities),
            "serverCapability": schemas.of(Welcome),
        },
    }
    document["components"] = {
        "schemas": dict(sorted(schemas.definitions.items())),
        "errors": {name: {"code": cls.code, "message": name} for name, cls in ERRORS.items()},
    }
    return document


def _method(row: Method, schemas: Schemas) -> Schema:
    return {
        "name": row.name,
        "summary": row.doc.partition("\n")[0],
        "description": row.doc,
        "paramStructure": "by-name",
        "params": [
            {
                "name": camel(member.name),
                "required": member.default is attrs.NOTHING,
                "schema": schemas.member(row.params, member),
            }
            for member in params_of(row)
        ],
        "result": {"name": "result", "schema": schemas.of(row.result)},
        "x-right": row.right,
        "x-mutates": row.mutates,
        "x-scope": row.scope,
        "x-since": row.since,
    }


def params_of(row: Method) -> tuple[attrs.Attribute[Any], ...]:
    """Members that a client may send; required ones first."""
    members = [member for member in _members(row.params) if member.name != "workspace" or row.scope != "global"]
    return tuple(sorted(members, key=lambda member: member.default is not attrs.NOTHING))


def _members(cls: Any) -> tuple[attrs.Attribute[Any], ...]:
    attrs.resolve_types(cls)
    return tuple(attrs.fields(cls))


def _summary(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]


# Tables


def methods_table(registry: Registry) -> str:
    rows = [
        (f"`{row.name}`", _names(params_of(row)), _result(row), row.right, _oneline(row.doc))
        for _, row in sorted(registry.methods.items())
    ]
    return _table(("Method", "Params", "Result", "Right", ""), rows)


def notifications_table(registry: Registry) -> str:
    rows = [
        (f"`{row.name}`", _names(_members(row.params)), _oneline(row.doc))
        for _, row in sorted(registry.notifications.items())
    ]
    return _table(("Notification", "Members", ""), rows)


def errors_table(_: Registry) -> str:
    rows = [
        (str(cls.code), f"`{name}`", "yes" if cls.retryable else "no", _oneline(inspect.cleandoc(cls.__doc__ or "")))
        for name, cls in ERRORS.items()
    ]
    return _table(("Code", "`data.code`", "Retryable", ""), rows)


TABLES: Mapping[str, Callable[[Registry], str]] = {
    "methods": methods_table,
    "notifications": notifications_table,
    "errors": errors_table,
}


def fill(text: str, registry: Registry = REGISTRY) -> str:
    """*text* with every table between `<!-- generated: name -->` and `<!-- end -->` made anew.

    Raises: KeyError for a name that is none of `TABLES`.
    """
    return _MARKER.sub(lambda found: f"{found[1]}{TABLES[found[2]](registry)}{found[3]}", text)


FILES: Mapping[str, Callable[[str], str]] = {
    "protocol.md": fill,
    "clients/typescript/src/protocol.ts": lambda _: typescript(openrpc()),
    "craftd/client/calls.py": lambda _: python.calls(openrpc()),
    "craftd/client/again.py": lambda _: python.tables(openrpc()),
    "craftd/client/shapes.py": lambda _: python.shapes(openrpc()),
    "craftd/client/errors.py": lambda _: python.errors(),
}
"""Generated files: relative to the checkout, what each becomes of what it is."""


def _names(members: Iterable[attrs.Attribute[Any]]) -> str:
    return ", ".join(camel(m.name) if m.default is attrs.NOTHING else f"{camel(m.name)}?" for m in members)


def _result(row: Method) -> str:
    if row.result is None:
        return "null"
    if not attrs.has(row.result):
        return "object"
    return "{" + _names(_members(row.result)) + "}"


def _oneline(doc: str) -> str:
    return " ".join(doc.partition("\n\n")[0].split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Exit code; with `--check` nothing is written and 1 means that a file is not current."""
    code = 0
    for path, content in FILES.items():
        page = Path(path)
        old = page.read_text(encoding="utf-8") if page.exists() else ""
        new = content(old)
        if new == old:
            continue
        if "--check" in arguments:
            print(f"{page} is not current: run scripts/generate", file=sys.stderr)
            code = 1
        else:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(new, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
