"""What plain YAML words mean to the app, as JSON values: in front matter the YAML 1.1 flavour of js-yaml 3.

`yes` is text, `010` is eight, `1:30` is ninety. What JSON does not have (dates, infinities, binary) stays the text
it was written as. Source: app 0.11.1 with js-yaml 3.14; golden skills. Tasks are YAML 1.2: `core`; golden tasks.
"""

from __future__ import annotations

import re
from typing import Any, Final

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_BINARY: Final = re.compile(r"[-+]?0b[01_]*[01]", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"[-+]?0x[0-9a-fA-F_]*[0-9a-fA-F]", re.ASCII)
_OCTAL: Final = re.compile(r"[-+]?0[0-7_]*[0-7]", re.ASCII)
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9](?:[0-9_]*[0-9])?)", re.ASCII)
_SEXAGESIMAL: Final = re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_SEXAGESIMAL_FLOAT: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*", re.ASCII)
_NO_JSON_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?",
    re.ASCII,
)

LONGEST: Final = 400
"""Characters of a number; the app would show more than about 309 digits as infinite."""

KINDS: Final = {bool: "true or false", int: "a number", float: "a number", type(None): "empty"}


def plain(text: str) -> Any:
    """JSON value of a plain (unquoted) scalar."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    whole = integer(text)
    number = real(text) if whole is None else whole
    return text if number is None else number


_CORE_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_CORE_BASED: Final = re.compile(r"0o([0-7]+)|0x([0-9a-fA-F]+)", re.ASCII)
_CORE_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


def core(text: str) -> Any:
    """JSON value of a plain scalar by the core schema of YAML 1.2; infinities and `.nan` are floats."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if len(text) > LONGEST:
        return text
    if _CORE_INTEGER.fullmatch(text):
        return int(text)
    if based := _CORE_BASED.fullmatch(text):
        return int(based[1], 8) if based[1] else int(based[2], 16)
    if _CORE_FLOAT.fullmatch(text) or _NO_JSON_NUMBER.fullmatch(text):
        number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return int(number) if number.is_integer() and abs(number) < 1e21 else number
    return text


def integer(text: str) -> int | None:
    """Value of *text* as a YAML integer, None if it is none or has more than LONGEST characters."""
    if len(text) > LONGEST:
        return None
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if _DECIMAL.fullmatch(text):
        return sign * int(digits)
    if _BINARY.fullmatch(text):
        return sign * int(digits[2:], 2)
    if _HEXADECIMAL.fullmatch(text):
        return sign * int(digits[2:], 16)
    if _OCTAL.fullmatch(text):
        return sign * int(digits, 8)
    if _SEXAGESIMAL.fullmatch(text):
        return sign * int(_base_60(digits))
    return None


def real(text: str) -> float | int | None:
    """Value of *text* as a finite YAML float (whole ones as int, as JSON shows them), None if it is none."""
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if text.endswith("_"):
        return None
    if _FLOAT.fullmatch(text):
        number = float(digits)
    elif _SEXAGESIMAL_FLOAT.fullmatch(text):
        number = _base_60(digits)
    else:
        return None
    if number in (float("inf"), float("-inf")):
        return None
    return sign * (int(number) if number.is_integer() and number < 1e21 else number)


def is_other_than_text(text: str) -> str | None:
    """What the app takes an unquoted *text* for, in words; None if for text."""
    value = plain(text)
    if not isinstance(value, str):
        return KINDS[type(value)]
    if _TIME.fullmatch(text):
        return "a date"
    return "a number" if _NO_JSON_NUMBER.fullmatch(text) else None


def _base_60(digits: str) -> float:
    value = 0.0
    for part in digits.split(":"):
        value = value * 60 + float(part)
    return value
