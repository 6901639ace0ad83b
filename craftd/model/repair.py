"""What the lines and the header of a damaged transcript become when it is mended. Pure.

Nothing is made up: what can be read stays as it is, what cannot goes, and whoever writes keeps the bytes beside. A
header that nobody can read is made of what is left of it, the name of the folder and the messages.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Container
from itertools import count
from typing import Any, Final, NoReturn

from attrs import frozen

from craftd.model import json_text, sessions
from craftd.model.messages import MAX_ID, MESSAGE_TYPES, Counters, is_message
from craftd.model.portable import dump_line, expand_line, parse_line
from craftd.model.records import Record, milliseconds

TRIES: Final = 16
"""Places in a line that cannot be read at which a whole message may begin; each is tried at the price of the line."""

_MESSAGE_STARTS: Final = re.compile(rb'\{\s*"(?:id|type|role|content|timestamp)"\s*:')
_MEMBER: Final = re.compile(r'\s*[{,]\s*"(\w+)"\s*:\s*')
_AFTER_NUMBER: Final = re.compile(r"\s*[,}]")
_DATE: Final = re.compile(r"(\d\d)(\d\d)(\d\d)-")


@frozen
class Finding:
    """Something wrong with a session's file. remedy: what mending makes of it, None = it stays.

    code, line, message: as in `info.damage` (protocol.md, Damage).
    """

    code: str
    line: int | None
    message: str
    remedy: str | None


@frozen
class Mended:
    """What becomes of a line that is not as it should be: another (without LF) with its record, or (None) nothing."""

    line: bytes | None
    record: Record | None
    remedy: str


def mend_line(
    raw: bytes,
    record: Record | None,
    twin: Callable[[str], Record | None],
    taken: Container[str | None],
    directory: str,
) -> Mended:
    """What to make of the damaged line *raw*; *record*: what could be read of it.

    twin: the earlier message with an id, None if there is none. taken: all ids in use. Raises what *twin* raises.
    """
    remedies: list[str] = []
    line, whole = raw, record
    if whole is None:
        found = last_message(raw, directory)
        if found is None:
            return Mended(None, None, "is taken out")
        line, whole = found
        remedies.append("the whole message at its end stays, what stands before it is taken out")
    elif (text := raw.decode("utf-8", "replace").encode()) != raw:
        line = text
        remedies.append("U+FFFD takes the place of what is no UTF-8")
    id = whole.get("id")
    if isinstance(id, str) and (first := twin(id)) is not None:
        if json_text.canonical(first) == json_text.canonical(whole):
            return Mended(None, None, "is taken out: an earlier line says the same")
        new = free_id(id, taken)
        line, whole = _called(line, whole, new, directory), {**whole, "id": new}
        remedies.append(f"its id becomes {new}")
    return Mended(line, whole, "; ".join(remedies) or "stays")


def last_message(raw: bytes, directory: str) -> tuple[bytes, Record] | None:
    """The whole message that a line which cannot be read ends with: somebody appended behind half a line."""
    for number, start in enumerate(_MESSAGE_STARTS.finditer(raw, 1)):
        if number == TRIES:
            break
        text = raw[start.start() :]
        try:
            record = parse_line(text, directory)
        except ValueError:
            continue
        if is_message(record):
            return text, record
    return None


def free_id(id: str, taken: Container[str | None]) -> str:
    """An id like *id* that no message has."""
    base = id[: MAX_ID - 10]
    return next(name for number in count(2) if (name := f"{base}-{number}") not in taken)


def _called(line: bytes, record: Record, id: str, directory: str) -> bytes:
    """*line*, whose message is *record*, with another id; the rest as it is written, numbers in any spelling."""
    member = b'"id":' + json_text.dumps(record["id"])
    named = line.replace(member, b'"id":' + json_text.dumps(id), 1)
    wanted = {**record, "id": id}
    try:
        if json_text.canonical(parse_line(named, directory)) == json_text.canonical(wanted):
            return named
    except ValueError:
        pass
    return dump_line(wanted, directory)


def salvaged(data: bytes, directory: str) -> Record:
    """What is left of the header in the bytes of a line 1 that cannot be read.

    Up to the first fault every member counts, behind it those that a header has and that are of the right kind. Of a
    message nothing is taken.
    """
    text = expand_line(data, directory).decode("utf-8", "replace")
    found: Record = {}
    sound, at = True, text.find("{")
    while at >= 0 and (member := _MEMBER.search(text, at)) is not None:
        sound = sound and member.start() == at
        name, at = member[1], member.end()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            sound = False
            continue
        if type(value) in (int, float) and not _AFTER_NUMBER.match(text, end):
            sound = False  # digits may be missing
            continue
        at = end
        if name not in found and (sound or name in _KNOWN) and sessions.fits(name, value):
            found[name] = value
    if "content" in found or found.get("type") in MESSAGE_TYPES:
        return {}
    return {name: value for name, value in found.items() if name not in sessions.COUNTED}


def rebuilt(left: Record, directory: str, counters: Counters, first: int | None, made: int) -> Record:
    """The header of the session in *directory* of which only *left* is known.

    counters: of its messages; first: when the first of them was written; made: when the file was, where nothing else
    says how old the session is. Milliseconds since 1970 UTC.
    """
    id = directory.rpartition("/")[2]
    created = next(at for at in (milliseconds(left.get("createdAt")), first, day_of(id), made) if at is not None)
    last = counters.last_timestamp
    # As the app has it at creation; a session that has lost this one cannot be resumed anywhere else either.
    sdk_cwd = left.get("sdkCwd", left.get("workingDirectory", directory))
    header: Record = {**left, "id": id, "sdkCwd": sdk_cwd, "createdAt": created}
    if milliseconds(left.get("lastUsedAt")) is None:
        header["lastUsedAt"] = created if last is None else last
    if milliseconds(left.get("lastMessageAt")) is None and last is not None:
        header["lastMessageAt"] = last
    return sessions.ordered({**header, **counters.header_fields()})


def day_of(id: str) -> int | None:
    """The beginning of the day that a session's id names, ms since 1970; UTC, as nobody knows where it was made."""
    named = _DATE.match(id)
    if named is None:
        return None
    year, month, day = map(int, named.groups())
    try:
        return int(datetime.datetime(2000 + year, month, day, tzinfo=datetime.UTC).timestamp()) * 1000
    except ValueError:
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER: Final[Any] = json.JSONDecoder(parse_constant=_refuse)
_KNOWN: Final = frozenset(sessions.PERSISTENT) | {"tokenUsage"}
