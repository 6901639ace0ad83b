"""What a secret looks like: by the name it stands under, or by itself. The one place that knows.

Three questions are asked of a name, because a mistake costs different things: `is_called` refuses a change and must not
take anything else for a secret; `names_a_secret` takes a member out; `could_be_secret` leaves a header or flag out of
what goes to somebody else, where one too many does no harm.
"""

from __future__ import annotations

import re
from typing import Any, Final

from craftd.model.records import Record

REDACTED: Final = "[redacted]"

_WORDS: Final = r"secret|passw(?:or)?d|passphrase|credential|bearer"
_KEYS: Final = r"(?:api|app|access|private)[-_]?key"

_CALLED: Final = re.compile(
    rf"authorization|cookie|{_WORDS}|{_KEYS}|(?:^|[-_])(?:token|auth|pat)$|(?:auth|access|refresh)token", re.IGNORECASE
)
_MEMBER: Final = re.compile(
    rf"(?i:.*(?:{_WORDS}|{_KEYS}|(?:access|refresh)[-_]?token)s?|(?:.*[-_])?token|auth|authorization|cookie)"
    r"|.*(?:[aA]piKey|Token|Secret|Password)"
)
_BROAD: Final = re.compile(r"auth|token|secret|passw|api[-_]?key|credential|cookie|bearer", re.IGNORECASE)

_SHAPES: Final = (
    r"\b(?:sk|pk|rk)[-_](?:live|test|ant|proj)?[-_]?[A-Za-z0-9_-]{16,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{8,300}+\.[\w-]{8,}+\.[\w-]+"
)
_KEY_BLOCK: Final = r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
_SHAPED: Final = re.compile(f"{_SHAPES}|{_KEY_BLOCK}", re.ASCII)
_PLAIN: Final = re.compile(r"[a-z]{0,11}|\d{1,5}", re.ASCII)
_REFERENCE: Final = re.compile(r"\$\{?\w+|\{\{.{0,200}\}\}", re.ASCII)


def is_called(name: str) -> bool:
    """Whether what stands under *name* (of a header, a variable, a flag, a part of a query) is a secret."""
    return _CALLED.search(name) is not None


def names_a_secret(name: str) -> bool:
    """The same of a member, wherever it stands."""
    return _MEMBER.fullmatch(name) is not None


def could_be_secret(name: str) -> bool:
    """Whether it is better to leave out what stands under *name*."""
    return _BROAD.search(name) is not None


def is_shaped(text: str) -> bool:
    """Whether a secret that says so itself is in *text*."""
    return _SHAPED.search(text) is not None


def refers(text: str) -> bool:
    """Whether *text* refers to something (`${NAME}`, `{{token}}`): that is none."""
    return _REFERENCE.search(text) is not None


def is_hidden(text: str) -> bool:
    """Whether *text* under the name of a secret is one, and no reference or plain short word."""
    return _PLAIN.fullmatch(text) is None and not refers(text)


# -- in what people read --

_IN_TEXT: Final = re.compile(
    rf"(?P<block>{_KEY_BLOCK}(?:[^-]{{0,20000}}-----END [A-Z ]*PRIVATE KEY-----|(?:[^`\n]|\n(?!\s*\n)){{0,8000}}+))"
    rf"|(?P<shaped>{_SHAPES})"
    r"|(?<=://)(?P<user>[^\s/:@\"']{0,200}):(?P<password>[^\s/@\"']{1,200})(?=@)"
    r"|(?<![\w-])(?P<header>(?i:(?:proxy-)?authorization|(?:set-)?cookie)\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?)"
    r"(?P<rest>[^\"'`\\\n]{4,2000})"
    r"|\b(?P<scheme>(?i:bearer|basic))(?P<gap>\s+)(?P<sent>[A-Za-z0-9._~+/-]{12,}={0,2})"
    r"|(?<![\w-])(?P<dash>--?|)(?=[\w-]{0,80}(?i:auth|token|secret|passw|key|credential|cookie|bearer|pat\b|pass\b|pwd\b)"
    r"|(?i:api|access|secret|private) (?i:key))"
    r"(?P<name>(?:(?i:api|access|secret|private) (?=(?i:key)))?[A-Za-z_][\w-]{0,80}+)"
    r"(?P<sign>\\?[\"'`*]{0,3}\s{0,3}(?:[:=|]|=>)>?\*{0,2}\s{0,3}|\s)"
    r"(?:(?P<quote>\\?[\"'`])(?P<quoted>[^\"'`\\\n]{4,400})(?=(?P=quote))"
    r"|(?P<open>\\?[\"'`]?)(?P<value>[^\s\"'`,;&|<>(){}\[\]\\]{4,400}))",
    re.ASCII | re.DOTALL,
)
_UPPER: Final = re.compile(r"[A-Z0-9_]+_(?:KEY|PASS|PWD)")
"""Names of variables, in texts: what else ends so is too often no secret."""


def redacted(text: str) -> tuple[str, int]:
    """*text* with everything in it that looks like a secret taken out, and how much that was."""
    at, count = 0, 0
    pieces: list[str] = []
    while (found := _IN_TEXT.search(text, at)) is not None:
        kept = _kept(found)
        if kept is None:
            # What stands behind a name may be a name itself: `-H Authorization: Bearer x`.
            end = found.end("name") if found["name"] is not None else found.end()
            kept = text[found.start() : end]
        else:
            end, count = found.end(), count + 1
        pieces += (text[at : found.start()], kept)
        at = end
    return "".join((*pieces, text[at:])), count


def _kept(found: re.Match[str]) -> str | None:
    if found["block"] is not None or found["shaped"] is not None:
        return REDACTED
    if found["password"] is not None:
        known = found["password"] == REDACTED or refers(found["password"])
        return None if known else f"{found['user']}:{REDACTED}"
    if found["sent"] is not None:
        return f"{found['scheme']}{found['gap']}{REDACTED}" if is_hidden(found["sent"]) else None
    if found["rest"] is not None:
        words = re.split(r"[\s=;:]+", found["rest"])
        told = REDACTED in found["rest"] or not any(is_hidden(word) for word in words)
        return None if told else f"{found['header']}{REDACTED}"
    name, sign = found["name"], found["sign"]
    value = found["quoted"] or found["value"]
    if not sign.strip() and (not found["dash"] or value.startswith("-")):
        return None  # `--token abc`; else words beside each other are words
    if "|" in sign and not re.search(r"\d", value):
        return None  # the head of a table
    called = name.replace(" ", "_")
    if not (is_called(called) or names_a_secret(called) or _UPPER.fullmatch(called)):
        return None
    if not is_hidden(value) or value.lower() in ("bearer", "basic") or value == REDACTED:
        return None
    return f"{found['dash']}{name}{sign}{found['quote'] or found['open']}{REDACTED}"


def without_secrets(value: Any) -> tuple[Any, int]:
    """*value* (JSON) with members that are called like a secret, and secrets in its texts, taken out; how many."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, list):
        pairs = [without_secrets(inner) for inner in value]
        return [inner for inner, _ in pairs], sum(count for _, count in pairs)
    if not isinstance(value, dict):
        return value, 0
    kept: Record = {}
    total = 0
    pair = isinstance(value.get("name"), str) and is_called(value["name"])  # {name: "Authorization", value: "..."}
    for name, member in value.items():
        if names_a_secret(name) or is_called(name) or (pair and name == "value"):
            kept[name], count = _emptied(member)
        else:
            kept[name], count = without_secrets(member)
        total += count
    return kept, total


def _emptied(member: Any) -> tuple[Any, int]:
    """What stands under the name of a secret: its texts are some, unless they refer to one."""
    if isinstance(member, str):
        return (REDACTED, 1) if is_hidden(member) else redacted(member)
    if isinstance(member, list):
        pairs = [_emptied(inner) for inner in member]
        return [inner for inner, _ in pairs], sum(count for _, count in pairs)
    return without_secrets(member)
