"""What a value may be, said once per noun as data: small checks that put together make a schema.

A check takes a value and its dotted path and yields what is wrong; it never raises and never changes anything.
Members a schema does not name are nobody's business here: they are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, TypeAlias

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model.records import Record

Check: TypeAlias = Callable[[Any, str], Iterator[Issue]]


def _wrong(path: str, message: str, code: str = "schema") -> Issue:
    return Issue(path=path, message=message, code=code)


def text(*, empty: bool = True, pattern: re.Pattern[str] | None = None, what: str = "", code: str = "schema") -> Check:
    """A string; *pattern* must match it entirely, and *what* says so in words, *code* in one."""

    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, str):
            yield _wrong(path, "must be text")
        elif not empty and not value:
            yield _wrong(path, "must not be empty")
        elif pattern is not None and pattern.fullmatch(value) is None:
            yield _wrong(path, what, code)

    return check


def anything(value: Any, path: str) -> Iterator[Issue]:
    """A member the app shows as it is."""
    return iter(())


def flag(value: Any, path: str) -> Iterator[Issue]:
    """true or false."""
    if not isinstance(value, bool):
        yield _wrong(path, "must be true or false")


def whole(value: Any, path: str) -> Iterator[Issue]:
    """An integer from 0 on; times are milliseconds since 1970 UTC."""
    number = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not number or value < 0:
        yield _wrong(path, "must be a whole number, not negative")


def one_of(*words: str) -> Check:
    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, str) or value not in words:
            yield _wrong(path, f"must be one of {', '.join(words)}")

    return check


def nullable(inner: Check) -> Check:
    """*inner*, or null."""
    return lambda value, path: iter(()) if value is None else inner(value, path)


def listing(inner: Check) -> Check:
    """A list of what *inner* accepts."""

    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, list):
            yield _wrong(path, "must be a list")
            return
        for index, item in enumerate(value):
            yield from inner(item, f"{path}.{index}")

    return check


def mapping(inner: Check) -> Check:
    """An object with any keys and values that *inner* accepts."""

    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield _wrong(path, "must be an object")
            return
        for name, member in value.items():
            yield from inner(member, f"{path}.{name}" if path else name)

    return check


def shape(fields: Mapping[str, Check], required: tuple[str, ...] = ()) -> Check:
    """An object in which the named members are as told, where they are there."""

    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield _wrong(path, "must be an object")
            return
        for name, inner in fields.items():
            place = f"{path}.{name}" if path else name
            if name in value:
                yield from inner(value[name], place)
            elif name in required:
                yield _wrong(place, "is missing")

    return check


_SYSTEM_COLOUR = re.compile(r"(?:accent|info|success|destructive|foreground)(?:/(?:0?\d{1,2}|100))?", re.ASCII)
_NUMBER = r"\s*[+-]?\d*\.?\d+%?\s*"
_CSS_COLOUR = re.compile(
    r"#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})"
    rf"|(?:rgba?|hsla?)\({_NUMBER}(?:,{_NUMBER}){{2,3}}\)"
    r"|oklch\(\s*[\d.]+\s+[\d.]+\s+[\d.]+\s*(?:/\s*[\d.]+%?\s*)?\)",
    re.ASCII | re.IGNORECASE,
)


def colour(value: Any, path: str) -> Iterator[Issue]:
    """A system word, optionally with `/0..100`, or `{light, dark?}` of CSS colours.  App 0.11.1."""
    if isinstance(value, str):
        if _SYSTEM_COLOUR.fullmatch(value) is None:
            yield _wrong(path, "is no colour", "bad-color")
    elif not isinstance(value, dict):
        yield _wrong(path, "must be a colour word or {light, dark}")
    else:
        for name in ("light", "dark"):
            member = value.get(name)
            if name == "dark" and "dark" not in value:
                continue
            if not isinstance(member, str) or _CSS_COLOUR.fullmatch(member) is None:
                yield _wrong(f"{path}.{name}", "is no CSS colour", "bad-color")


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_NOT_IN_HOST = re.compile(r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]")


def web_address(value: Any, path: str) -> Iterator[Issue]:
    """A URL as the app's validator takes it: any scheme, and for http and https a proper host.

    The rules of the WHATWG parser as far as they decide the recorded cases, golden `sources/urls.json`.
    """
    if not isinstance(value, str):
        yield _wrong(path, "must be text")
        return
    address = re.sub(r"[\t\n\r]", "", value.strip("".join(map(chr, range(0x21)))))
    scheme = _SCHEME.match(address)
    if scheme is None or (scheme.group(1).lower() in ("http", "https") and not _has_host(address[scheme.end() :])):
        yield _wrong(path, "is no URL", "bad-url")


def _has_host(rest: str) -> bool:
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("["):
        host, _, port = authority[1:].partition("]")
        try:
            IPv6Address(host)
        except AddressValueError:
            return False
        port = port.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
        host = host.replace("​", "")
        if not host or _NOT_IN_HOST.search(host) or not _number_or_name(host):
            return False
    return not port or (port.isdecimal() and int(port) <= 65535)


def _number_or_name(host: str) -> bool:
    """A host whose last part is a number is an IPv4 address, in which parts may be left out."""
    parts = host.removesuffix(".").split(".")
    if not parts[-1].isdecimal():
        return True
    if len(parts) > 4 or not all(part.isdecimal() for part in parts):
        return False
    try:
        IPv4Address(".".join([*parts[:-1], *["0"] * (4 - len(parts)), parts[-1]]))
    except AddressValueError:
        return len(parts) < 4 and int(parts[-1]) < 256 ** (5 - len(parts)) and all(int(p) < 256 for p in parts[:-1])
    return True


def validator(check: Check) -> Callable[[Record, Record | None], list[Issue]]:
    """`Noun.validate` from a schema. Members that are as they were are not held against a change of others."""

    def validate(value: Record, old: Record | None) -> list[Issue]:
        return [issue for issue in check(value, "") if old is None or not _as_before(value, old, issue.path)]

    return validate


def _as_before(value: Record, old: Record, path: str) -> bool:
    first = path.partition(".")[0]
    if first not in value and first not in old:
        return bool(first)
    return first in value and first in old and json_text.canonical(value[first]) == json_text.canonical(old[first])
