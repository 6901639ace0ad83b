"""TypeScript types of the protocol: text that follows from the OpenRPC document alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_HEAD: Final = """\
// Made by scripts/generate from craftd's registry of methods. Changes made by hand are lost.

/** A JSON object whose members this protocol does not fix. */
export type JsonObject = Record<string, unknown>;
"""
_SCALARS: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(document: Schema) -> str:
    """Types of everything in *document* (as `generate.openrpc` makes it), and the few tables a client needs to run."""
    parts = [_HEAD]
    for name, schema in document["components"]["schemas"].items():
        parts.append(f"{_comment(schema, '')}export interface {name} {_object(schema, '')}\n")
    parts.append("/** Every method: what it takes and what it answers. */\nexport interface Methods {\n")
    parts += map(_method, document["methods"])
    parts.append(
        "}\n\n/** Every notification that the daemon sends, with its params. */\nexport interface Notifications {\n"
    )
    for row in document["x-notifications"]:
        parts.append(f"{_comment(row, '  ')}  {json.dumps(row['name'])}: {_object(row['params'], '  ')};\n")
    parts.append("}\n\n/** Every error by its name, `data.code`. */\nexport const ERROR_CODES = {\n")
    parts += [f"  {name}: {error['code']},\n" for name, error in document["components"]["errors"].items()]
    parts.append("} as const;\n\n")
    parts.append(
        "/** Methods that take a `key`: the same change sent again with the same key is made once. */\n"
        f"export const KEYED: ReadonlySet<string> = new Set([\n{_names(document['methods'], _is_keyed)}]);\n\n"
        "/** Methods that change nothing: asking again is harmless. */\n"
        f"export const READS: ReadonlySet<string> = new Set([\n{_names(document['methods'], _is_read)}]);\n"
    )
    return _spaced(parts)


def _method(row: Schema) -> str:
    params = {
        "properties": {param["name"]: param["schema"] for param in row["params"]},
        "required": [param["name"] for param in row["params"] if param["required"]],
    }
    return (
        f"{_comment(row, '  ')}  {json.dumps(row['name'])}: {{\n"
        f"    params: {_object(params, '    ')};\n"
        f"    result: {_type(row['result']['schema'], '    ')};\n"
        "  };\n"
    )


def _is_keyed(row: Schema) -> bool:
    return any(param["name"] == "key" for param in row["params"])


def _is_read(row: Schema) -> bool:
    return row["x-right"] in ("none", "read") and not row["x-mutates"]


def _names(rows: Iterable[Schema], wanted: Callable[[Schema], bool]) -> str:
    return "".join(f"  {json.dumps(row['name'])},\n" for row in rows if wanted(row))


def _type(schema: Schema, indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(choice, indent) for choice in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    kind = schema.get("type")
    if kind == "array":
        element = _type(schema["items"], indent)
        return f"({element})[]" if " | " in element else f"{element}[]"
    if kind == "object":
        if "additionalProperties" in schema:
            return f"Record<string, {_type(schema['additionalProperties'], indent)}>"
        return _object(schema, indent) if "properties" in schema else "JsonObject"
    return "unknown" if kind is None else _SCALARS[kind]


def _object(schema: Schema, indent: str) -> str:
    """Members in braces; what stands on lines of its own is indented by two more."""
    properties: Schema = schema.get("properties", {})
    if not properties:
        return "{}"
    required = schema.get("required", ())
    inner = indent + "  "
    lines = [
        f"{_comment(member, inner)}{inner}{name}{'' if name in required else '?'}: {_type(member, inner)};\n"
        for name, member in properties.items()
    ]
    return "{\n" + "".join(lines) + indent + "}"


def _comment(schema: Schema, indent: str) -> str:
    """The description as a comment that stands before what it describes."""
    text = schema.get("description", "").replace("*/", "* /").strip()
    if not text:
        return ""
    first, *more = text.split("\n")
    if not more:
        return f"{indent}/** {first} */\n"
    return (
        f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in (first, *more)) + f"{indent} */\n"
    )


def _spaced(parts: Iterable[str]) -> str:
    """One text, with an empty line between declarations."""

    def lines() -> Iterator[str]:
        before = ""
        for part in parts:
            if part.startswith(("export", "/**")) and before.endswith(("}\n", ";\n")) and not before.startswith("  "):
                yield "\n"
            yield part
            before = part

    return "".join(lines())
