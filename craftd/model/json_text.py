"""JSON text exactly as ECMAScript's `JSON.stringify` writes it, because the app's search and its diffs depend on it.

One deviation: integers keep all their digits (the app rounds beyond 2^53). Source: ECMA-262 `JSON.stringify`,
`Number::toString`, app 0.11.1, golden `vectors.jsonText`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from json.encoder import encode_basestring as _quoted
from typing import Any, NoReturn

import orjson

MAX_DEPTH = 200
"""Deepest nesting that is read. Chosen so that recursion over a parsed value can never exhaust Python's stack."""

JS_WHITESPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)
"""ECMAScript's white space and line terminators; differs from Python's `str.strip()` by U+FEFF, U+0085, U+001C-001F."""

_DIGITS_ALIKE = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_NESTED = frozenset({dict, list})
_COMPARED_AS_THEY_ARE = frozenset({str, int, bool})
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAY_INDEX_LIMIT = 2**32 - 1


def loads(data: bytes | str) -> Any:
    """Parse one JSON text; integers keep all digits, lone surrogates are allowed, of equal keys the last one counts.

    Raises: ValueError for what is no JSON (NaN, a byte order mark, invalid UTF-8) or nests deeper than MAX_DEPTH.
    """
    if isinstance(data, str):
        if _SURROGATE.search(data):
            return _loads_slowly(data)
        data = data.encode()
    if _has_long_run(data):
        return _loads_slowly(data.decode())
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_slowly(data.decode())
    if len(data) > 2 * MAX_DEPTH:
        _check_depth(value)
    return value


def dumps(value: Any) -> bytes:
    """*value* (anything `loads` can return) as compact UTF-8 JSON text; infinity and NaN become null.

    Raises: TypeError for values that JSON does not have.
    """
    if _is_plain(value):
        try:
            return orjson.dumps(value)
        except orjson.JSONEncodeError:
            pass
    return _dumps_slowly(value, sort=False)


def dumps_to_keep(value: Any) -> bytes:
    """`dumps` for text that stays in memory: orjson's results hold on to room for several kilobytes more."""
    return bytes(memoryview(dumps(value)))


def dumps_indented(value: Any, *, newline: bool = False) -> bytes:
    """`JSON.stringify(value, null, 2)`, the form of the app's configuration files; *newline*: end with LF."""
    parts: list[str] = []
    _write_indented(value, "\n", parts)
    return _encode("".join(parts)) + (b"\n" if newline else b"")


def canonical(value: Any) -> bytes:
    """Text for comparing and hashing: `dumps` with sorted keys. 1 and 1.0 are equal, 1 and true are not."""
    if _is_plain(value):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            pass
    return _dumps_slowly(value, sort=True)


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values have the same `canonical` text."""
    if one is other:
        return True
    kind = type(one)
    if kind is type(other) and kind in _COMPARED_AS_THEY_ARE:
        return bool(one == other)
    return canonical(one) == canonical(other)


def depth_exceeds(value: Any, limit: int) -> bool:
    """Whether *value* nests more than *limit* containers."""
    level = [value] if type(value) in _NESTED else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) in _NESTED
        ]
    return bool(level)


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units: what the app calls the length of a string."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def utf16_cut(text: str, units: int) -> str:
    """The longest beginning of *text* with at most *units* UTF-16 code units; never half of a surrogate pair."""
    if len(text) <= units // 2 or (text.isascii() and len(text) <= units):
        return text
    data = text[:units].encode("utf-16-le", "surrogatepass")
    if len(data) <= 2 * units:
        return text[:units]
    if 0xD8 <= data[2 * units - 1] <= 0xDB and 0xDC <= data[2 * units + 1] <= 0xDF:
        units -= 1
    return data[: 2 * units].decode("utf-16-le", "surrogatepass")


def js_trim(text: str) -> str:
    """`String.prototype.trim`."""
    return text.strip(JS_WHITESPACE)


def js_number(number: float) -> str:
    """`Number::toString` (ECMA-262, 6.1.6.1.20): shortest digits that round-trip; null for what JSON cannot say."""
    if number != number or number in (float("inf"), float("-inf")):
        return "null"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _loads_slowly(text: str) -> Any:
    try:
        value = _PARSER.decode(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    _check_depth(value)
    return value


def _has_long_run(data: bytes) -> bool:
    """Whether 19 digits follow each other: orjson reads an integer above 64 bits as a float and says nothing."""
    # Of every nth byte a run of 19 holds at least 19 // n, and of a long text looking at a sixth is enough as a rule.
    for step in (6, 3, 1) if len(data) > 4096 else (1,):
        if b"0" * (19 // step) not in data[::step].translate(_DIGITS_ALIKE):
            return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _integer(digits: str) -> int | float:
    # Python refuses to convert more (a guard against quadratic work); such a number is infinite to the app as well.
    return int(digits) if len(digits) <= 4300 else float(digits)


_PARSER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_integer)


def _check_depth(value: Any) -> None:
    if depth_exceeds(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")


def _is_plain(value: Any) -> bool:
    """Whether orjson's text of *value* is ECMAScript's: no float written differently, no key that would move."""
    kind = type(value)
    members: Iterable[Any] = value
    if kind is dict:
        # "9" < ":": most objects have no key that begins with a digit or a lesser character.
        if value and min(value) < ":" and any(map(_is_array_index, value)):
            return False
        members = value.values()
    elif kind is not list:
        members = (value,)
    for member in members:
        kind = type(member)
        if kind is str or kind is int or kind is bool or member is None:
            continue
        if kind is float:
            if not (1e-5 <= abs(member) < 1e16 and member % 1):
                return False
        elif (kind is not dict and kind is not list) or not _is_plain(member):
            return False
    return True


def _is_array_index(key: str) -> bool:
    """Integer-like keys come first in an ECMAScript object."""
    return (key.isdigit() and key.isascii() and (key[0] != "0" or key == "0") and len(key) <= 10) and int(
        key
    ) < _ARRAY_INDEX_LIMIT


def _in_order(value: dict[str, Any]) -> dict[str, Any]:
    indexes = sorted((key for key in value if _is_array_index(key)), key=int)
    if not indexes:
        return value
    return {key: value[key] for key in indexes} | value


def _dumps_slowly(value: Any, *, sort: bool) -> bytes:
    parts: list[str] = []
    _write(value, parts, sort)
    return _encode("".join(parts))


def _write(value: Any, parts: list[str], sort: bool) -> None:
    if isinstance(value, dict):
        opening = "{"
        for key, member in sorted(value.items()) if sort else _in_order(value).items():
            parts += (opening, _quoted(key), ":")
            _write(member, parts, sort)
            opening = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        opening = "["
        for member in value:
            parts.append(opening)
            _write(member, parts, sort)
            opening = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(_scalar(value))


def _write_indented(value: Any, indent: str, parts: list[str]) -> None:
    """*indent*: LF and the blanks of the line that *value* begins on."""
    if isinstance(value, dict) and value:
        opening = "{"
        for key, member in _in_order(value).items():
            parts += (opening, indent, "  ", _quoted(key), ": ")
            _write_indented(member, indent + "  ", parts)
            opening = ","
        parts += (indent, "}")
    elif isinstance(value, list) and value:
        opening = "["
        for member in value:
            parts += (opening, indent, "  ")
            _write_indented(member, indent + "  ", parts)
            opening = ","
        parts += (indent, "]")
    else:
        _write(value, parts, sort=False)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return js_number(value)
    raise TypeError(f"JSON has no {type(value).__name__}")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Halves that meet are one character; those that stay alone are escaped, as well-formed JSON.stringify does.
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", joined).encode()
