"""Where the configuration of a source shows a secret. Only places are told, never what stands there.

Configurations are exported, searched and sent to every client; the credential file is not. What refers to something
(`${NAME}`, `{{token}}`) and one plain short word are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from craftd.model.records import Record

_ALWAYS: Final = frozenset({"googleOAuthClientSecret", "clientSecret", "password", "secret"})
_MAPS: Final = frozenset({"headers", "defaultHeaders", "env"})
_ADDRESSES: Final = frozenset({"url", "baseUrl", "authorizationUrl", "tokenUrl"})
_PROSE: Final = frozenset({"guide", "name", "tagline", "connectionError"})

_CALLED: Final = re.compile(
    r"authorization|cookie|bearer|secret|passw(?:or)?d|passphrase|credential|api[-_]?key|app[-_]?key|access[-_]?key"
    r"|private[-_]?key|(?:^|[-_])(?:token|auth|pat)$|authtoken|accesstoken|refreshtoken",
    re.IGNORECASE,
)
_SHAPED: Final = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:live|test|ant|proj)?[-_]?[A-Za-z0-9_-]{16,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    re.ASCII,
)
_PLAIN: Final = re.compile(r"[a-z]{0,11}|\d{1,5}", re.ASCII)
_REFERENCE: Final = re.compile(r"\$\{?\w+|\{\{.*\}\}", re.ASCII)


def secrets_in(config: Record) -> dict[str, str]:
    """What is in each place that shows a secret, by dotted path."""
    return dict(_within(config, ""))


def _within(value: Any, path: str) -> Iterator[tuple[str, str]]:
    name = path.rpartition(".")[2]
    if isinstance(value, dict):
        for key, member in value.items():
            if path or key not in _PROSE:
                place = f"{path}.{key}" if path else key
                if name in _MAPS and isinstance(member, str) and _CALLED.search(key) and _hidden(member):
                    yield place, member
                else:
                    yield from _within(member, place)
    elif isinstance(value, list):
        yield from _words(value, path) if name == "args" else _each(value, path)
    elif isinstance(value, str) and (
        (name in _ALWAYS and value and not _REFERENCE.search(value))
        or _SHAPED.search(value)
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
            called = flag.startswith("-") and _CALLED.search(flag.lstrip("-")) is not None
            follows = before.startswith("-") and "=" not in before and _CALLED.search(before.lstrip("-")) is not None
            if (
                _SHAPED.search(word)
                or (called and _hidden(value))
                or (follows and not word.startswith("-") and _hidden(word))
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
    return bool(password and not _REFERENCE.search(password)) or any(
        _CALLED.search(name) and _hidden(value) for name, value in asked
    )


def _hidden(value: str) -> bool:
    return _PLAIN.fullmatch(value) is None and _REFERENCE.search(value) is None
