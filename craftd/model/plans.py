"""Plans of a session: Markdown files that agents write. What they are called, and what they say.  App 0.11.1.

The text is the plan: nothing here writes it anew. `outline` reads what it can and leaves the rest to people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from craftd.errors import InvalidParams
from craftd.model.files import is_hidden, parts_of
from craftd.model.json_text import JS_WHITESPACE, utf16_cut
from craftd.model.records import Record

SUFFIX: Final = ".md"
STATES: Final = ("creating", "refining", "ready", "executing", "completed", "cancelled")
SLUG_UNITS: Final = 40
CONTEXT_UNITS: Final = 50
"""UTF-16 units of a slug, and of a context that stands for a title."""
PENDING: Final = "pendingPlanExecution"
"""The field of a session that says which plan waits to be carried out."""

_NOT_IN_SLUGS: Final = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f]')
_BLANKS: Final = re.compile(f"[{JS_WHITESPACE}]+")
_HYPHENS: Final = re.compile("-+")
_FIELD: Final = re.compile(r"\*\*(Status|Created|Updated|Feedback|Questions):\*\* (.*)")
_STEP: Final = re.compile(r"- \[([ xX])\] (.*)")
_TOOLS: Final = "  - Tools: "
_RUNNING: Final = " *(in progress)*"
_MARKS: Final = {"awaitingCompaction": True, "executionDispatched": False}
_ROUND: Final = re.compile(r"### Round (\d{1,9})")


def slug(title: str, context: str = "") -> str:
    """What stands in a file name for a plan called *title*; may be empty."""
    text = (title or utf16_cut(context, CONTEXT_UNITS) or "untitled").lower()
    text = _HYPHENS.sub("-", _BLANKS.sub("-", _NOT_IN_SLUGS.sub("", text)))
    return utf16_cut(text.removeprefix("-").removesuffix("-"), SLUG_UNITS).removesuffix("-")


def file_name(day: str, slug: str, number: int = 1) -> str:
    """day: `YYYY-MM-DD` in UTC. number: of the plans that would have the same name."""
    return f"{day}-{slug}{'' if number < 2 else f'-{number}'}{SUFFIX}"


def is_name(name: str) -> bool:
    """Whether a file in the folder of plans is one."""
    return len(name) > len(SUFFIX) and name.endswith(SUFFIX) and not is_hidden(name)


def check_id(id: str) -> None:
    """Raises: InvalidParams for what is no name of a plan's file."""
    if not is_name(id) or len(parts_of(id, "id")) != 1:
        raise InvalidParams.of("id", f"is no name of a plan: a file name that ends with {SUFFIX}")


def title_of(text: str) -> str | None:
    """What the first heading says."""
    return next((line[2:].strip() for line in _lines(text) if line.startswith("# ")), None)


def with_title(text: str, title: str) -> str:
    """*text* with *title* in its first heading, or with a heading on top where it has none."""
    if title_of(text) == title:
        return text
    mark, rest = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    lines = rest.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("# "):
            lines[at] = f"# {title}" + ("\r" if line.endswith("\r") else "")
            return mark + "\n".join(lines)
    return f"{mark}# {title}\n" + (f"\n{rest}" if rest else "")


def outline(text: str) -> Record:
    """What the plan *text* says: `title?, state, context, steps: [{description, status, details?}], refinements,
    createdAt?, updatedAt?` (times as they are written). A state nobody knows is `ready`, as in the app.
    """
    lines = list(_lines(text))
    head, context, steps, history = _parts(lines)
    fields = {found[1]: found[2] for line in head if (found := _FIELD.fullmatch(line))}
    state = fields.get("Status", "")
    told: Record = {} if (title := title_of(text)) is None else {"title": title}
    told["state"] = state if state in STATES else "ready"
    told["context"] = "\n".join(context).strip("\n")
    told["steps"] = list(_steps(steps))
    told["refinements"] = list(_rounds(history))
    times = {"createdAt": fields.get("Created"), "updatedAt": fields.get("Updated")}
    return told | {name: time for name, time in times.items() if time is not None}


def _parts(lines: list[str]) -> tuple[list[str], list[str], list[str], list[str]]:
    """What stands above the first section; in the summary; below the steps; in the history of refinements.

    The last `## Steps` begins the steps: a summary may quote one.
    """
    history = _last(lines, "## Refinement History", len(lines))
    steps = _last(lines[:history], "## Steps", history)
    summary = next((at for at, line in enumerate(lines[:steps]) if line == "## Summary"), steps)
    first = next((at for at, line in enumerate(lines) if line.startswith("## ")), len(lines))
    return lines[:first], lines[summary + 1 : steps], lines[steps + 1 : history], lines[history + 1 :]


def _last(lines: list[str], heading: str, missing: int) -> int:
    return next((at for at in range(len(lines) - 1, -1, -1) if lines[at] == heading), missing)


def _steps(lines: list[str]) -> Iterator[Record]:
    step: Record | None = None
    for line in lines:
        if found := _STEP.fullmatch(line):
            if step is not None:
                yield step
            running = found[1] == " " and found[2].endswith(_RUNNING)
            status = "in_progress" if running else "pending" if found[1] == " " else "completed"
            step = {"description": found[2].removesuffix(_RUNNING) if running else found[2], "status": status}
        elif line.startswith("## "):
            break
        elif step is not None and line.startswith(_TOOLS):
            step["details"] = line.removeprefix(_TOOLS)
        elif step is not None and line and "details" not in step:
            step["description"] += f"\n{line}"
    if step is not None:
        yield step


def _rounds(lines: list[str]) -> Iterator[Record]:
    told: Record | None = None
    for line in lines:
        if found := _ROUND.fullmatch(line):
            if told is not None:
                yield told
            told = {"round": int(found[1]), "feedback": "", "questions": []}
        elif told is not None and (found := _FIELD.fullmatch(line)):
            if found[1] == "Feedback":
                told["feedback"] = found[2]
            elif found[1] == "Questions":
                told["questions"] = found[2].split(", ")
    if told is not None:
        yield told


def _lines(text: str) -> Iterator[str]:
    for line in text.removeprefix("\ufeff").split("\n"):
        yield line.removesuffix("\r")


def pending(old: Record, new: Record, given: Any) -> Record:
    """The value *new*, the successor of *old*, with a pending plan that is whole. given: what the change says of it.

    A plan that becomes pending waits for the compaction; where none is pending, there is nothing to mark.
    """
    before, now = old.get(PENDING), new.get(PENDING)
    if not isinstance(now, dict) or not isinstance(given, dict) or now == before:
        return new
    known = before.get("planPath") if isinstance(before, dict) else None
    if "planPath" not in now:
        return {name: value for name, value in new.items() if name != PENDING} if given.keys() <= _MARKS.keys() else new
    return new if now["planPath"] == known else {**new, PENDING: {"planPath": now["planPath"], **_MARKS, **given}}
