"""Where the configuration of a source shows a secret. Only places are told, never what stands there.

Configurations are exported, searched and sent to every client; the credential file is not. What refers to something
(`${NAME}`, `{{token}}`) and one plain short word are no secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from craftd.model.records import Record
from craftd.model.secret_text import is_called, is_hidden, is_shaped, refers

_ALWAYS: Final = frozenset({"googleOAuthClientSecret", "clientSecret", "password", "secret"})
_MAPS: Final = frozenset({"headers", "defaultHeaders", "env"})
_ADDRESSES: Final = frozenset({"url", "baseUrl", "authorizationUrl", "tokenUrl"})
_PROSE: Final = frozenset({"guide", "name", "tagline", "connectionError"})


def secrets_in(config: Record) -> dict[str, str]:
    """What is in each place that shows a secret, by dotted path."""
    return dict(_within(config, ""))


def _within(value: Any, path: str) -> Iterator[tuple[str, str]]:
    name = path.rpartition(".")[2]
    if isinstance(value, dict):
        for key, member in value.items():
            if path or key not in _PROSE:
                place = f"{path}.{key}" if path else key
                if name in _MAPS and isinstance(member, str) and is_called(key) and is_hidden(member):
                    yield place, member
                else:
                    yield from _within(member, place)
    elif isinstance(value, list):
        yield from _words(value, path) if name == "args" else _each(value, path)
    elif isinstance(value, str) and (
        (name in _ALWAYS and value and not refers(value))
        or is_shaped(value)
        or (name in _ADDRESSES and _told_by(value))
    ):
        yield path, value


def _each(values: list[Any], path: str) -> Iterator[tuple[str, str]]:
    for index, value in enumerate(values):
        yield from _within(value, f"{path}.{index}")


def _words(words: list[Any], path: str) -> Iterator[tuple[str, str]]:
    """Of a command line: what follows `--token`, or stands behind `--token=`."""
    before = ""
    for index, word in enumerate(words):
        if isinstance(word, str):
            flag, _, value = word.partition("=")
            called = flag.startswith("-") and is_called(flag.lstrip("-"))
            follows = before.startswith("-") and "=" not in before and is_called(before.lstrip("-"))
            if (
                is_shaped(word)
                or (called and is_hidden(value))
                or (follows and not word.startswith("-") and is_hidden(word))
            ):
                yield f"{path}.{index}", word
        before = word if isinstance(word, str) else ""


def _told_by(address: str) -> bool:
    """Whether it has a password, or a secret in its query."""
    try:
        parts = urlsplit(address)
        password = parts.password
    except ValueError:
        return False
    asked = parse_qsl(parts.query)
    return bool(password and not refers(password)) or any(is_called(name) and is_hidden(value) for name, value in asked)
