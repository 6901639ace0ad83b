"""A session as Markdown for people: what was said in order, tools by name, or with what they were given and gave.

Not meant to be read back. What a person does not see in the app (hidden messages, states) is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from craftd.model.records import Record, milliseconds

LEFT_OUT: Final = frozenset({"status"})

_TICKS: Final = re.compile(r"`+")
_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "plan": "Plan"}


def head(header: Record, id: str) -> str:
    """The beginning of the document. *header* as clients see it."""
    name = header.get("name") or header.get("preview") or id
    facts = [f"Session `{id}`"]
    if (at := _time(header.get("createdAt"))) is not None:
        facts.append(f"begun {at}")
    if isinstance(status := header.get("sessionStatus"), str):
        facts.append(f"status {status}")
    if isinstance(labels := header.get("labels"), list) and labels:
        facts.append(f"labels {', '.join(map(str, labels))}")
    return f"# {_line(name)}\n\n{', '.join(facts)}\n"


def message(record: Record, *, tools: bool) -> str:
    """One message as a section, "" for one that nobody sees. tools: what tools were given and gave, too."""
    kind = record.get("type")
    if record.get("hidden") is True or kind in LEFT_OUT:
        return ""
    blocks = [block for block in _blocks(record, str(kind), tools) if block.strip()]
    return "\n" + "\n\n".join(blocks) + "\n" if blocks else ""


def _blocks(record: Record, kind: str, tools: bool) -> Iterator[str]:
    content = _text(record.get("content"))
    if kind == "tool":
        yield from _tool(record, tools)
    elif kind in _SPEAKERS:
        deep = "###" if record.get("isIntermediate") else "##"
        yield _heading(deep, _SPEAKERS[kind], record)
        yield content
        yield "\n".join(_attachments(record))
    elif kind == "error":
        yield _heading("###", f"Error: {_line(record.get('errorTitle') or 'something failed')}", record)
        yield content
        details = record.get("errorDetails")
        yield "\n".join(f"- {_line(one)}" for one in (details if isinstance(details, list) else ()))
    elif kind in ("info", "warning"):
        yield _quoted(content)
    elif kind == "auth-request":
        name = record.get("authSourceName") or record.get("authSourceSlug") or "a source"
        yield _heading("###", f"Signing in to {_line(name)}: {_line(record.get('authStatus') or 'asked')}", record)
    else:
        yield _heading("###", _line(kind), record)
        yield content
    yield from _notes(record)


def _tool(record: Record, tools: bool) -> Iterator[str]:
    name = record.get("toolDisplayName") or record.get("toolName") or "a tool"
    state = "failed" if record.get("isError") is True else record.get("toolStatus")
    yield _heading("###", f"Tool {_line(name)}" + (f": {_line(state)}" if isinstance(state, str) else ""), record)
    yield _text(record.get("toolIntent"))
    if tools:
        if isinstance(given := record.get("toolInput"), dict) and given:
            yield fenced(json.dumps(given, ensure_ascii=False, indent=2), "json")
        if isinstance(result := record.get("toolResult"), str) and result:
            yield fenced(result)


def fenced(text: str, language: str = "") -> str:
    """*text* as a code block, whatever is in it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def _attachments(record: Record) -> Iterator[str]:
    attachments = record.get("attachments")
    for one in attachments if isinstance(attachments, list) else ():
        if isinstance(one, dict):
            where = one.get("storedPath")
            name = _line(one.get("name") or "a file")
            yield f"- Attachment: {name}" + (f" (`{_line(where)}`)" if isinstance(where, str) else "")


def _notes(record: Record) -> Iterator[str]:
    """What people noted on the message."""
    annotations = record.get("annotations")
    for one in annotations if isinstance(annotations, list) else ():
        if not isinstance(one, dict) or one.get("deletedAt"):
            continue
        said = [part["text"] for part in _list(one.get("body")) if isinstance(part.get("text"), str)]
        target = one.get("target")
        selectors = _list(target.get("selectors")) if isinstance(target, dict) else []
        exact = next((each["exact"] for each in selectors if isinstance(each.get("exact"), str)), None)
        if said:
            yield _quoted("**Note**" + (f" on “{_line(exact)}”" if exact else "") + ": " + "\n".join(said))


def _list(value: Any) -> list[Record]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _heading(marks: str, text: str, record: Record) -> str:
    at = _time(record.get("timestamp"))
    return f"{marks} {text}" + (f" · {at}" if at is not None else "")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n")) if text.strip() else ""


def _text(value: Any) -> str:
    return value.strip("\n") if isinstance(value, str) else ""


def _line(value: Any) -> str:
    return " ".join(str(value).split())


def _time(value: Any) -> str | None:
    at = milliseconds(value)
    if at is None:
        return None
    try:
        return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return None
