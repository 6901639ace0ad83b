"""Names of files in a workspace: how a client writes them, and which are kept from every client."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from craftd.errors import Forbidden, InvalidParams

NAME_BYTES: Final = 255
"""Longest name of a file on the common file systems."""
PATH_BYTES: Final = 4096

_SECRET: Final = re.compile(
    r"credentials(\..*)?|secrets?\..*|id_(rsa|dsa|ecdsa|ed25519).*"
    r"|.*\.(pem|key|p8|p12|pfx|ppk|jks|keystore|kdbx)",
    re.DOTALL,
)


def parts_of(path: str, member: str = "path") -> tuple[str, ...]:
    """The names in a relative path with slashes; none for "", the folder itself. One spelling each: no `.`, no `//`.

    Bytes that are no UTF-8 stand as lone surrogates, as lists show them.
    Raises: InvalidParams.
    """
    if path == "":
        return ()
    if path.startswith("/"):
        raise InvalidParams.of(member, "must be relative")
    names = tuple(path.split("/"))
    for name in names:
        if name in ("", ".", ".."):
            raise InvalidParams.of(member, f"has the part {name!r}: every part must be a name")
        if "\0" in name:
            raise InvalidParams.of(member, "has a NUL")
        if len(_encoded(name, member)) > NAME_BYTES:
            raise InvalidParams.of(member, f"has a name of more than {NAME_BYTES} bytes")
    if len(_encoded(path, member)) > PATH_BYTES:
        raise InvalidParams.of(member, f"has more than {PATH_BYTES} bytes")
    return names


def _encoded(text: str, member: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidParams.of(member, "has a lone surrogate that stands for no byte") from None


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is kept from clients: dotfiles, and what looks like a key or password.

    However it is spelt: file systems may ignore case, compatibility forms and characters without width.
    """
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return seen.startswith(".") or _SECRET.fullmatch(unicodedata.normalize("NFKC", seen).casefold()) is not None


def check_open(parts: tuple[str, ...]) -> None:
    """Raises: Forbidden if one of the names is kept from clients."""
    for name in parts:
        if is_hidden(name):
            raise Forbidden(f"{name} is not served: hidden files, keys and passwords are not", path="/".join(parts))
