"""What is wrong with a transcript, what every line of it becomes when it is mended, and a copy of what it was."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from craftd.model import repair, sessions
from craftd.model.records import Record, milliseconds
from craftd.model.repair import Finding, Mended
from craftd.store import atomic
from craftd.store.atomic import DirectoryNotFlushed
from craftd.store.transcript import Transcript

FIRST_MESSAGES: Final = 200
"""How many messages are asked when the session began."""

_REMEDIES: Final[Mapping[str, str]] = {
    "header-missing": "line 1 is made anew",
    "header-unreadable": "line 1 is made anew",
    "blank-first-line": "the blank lines are taken out",
    "line-unreadable": "each record gets a line of its own",
    "nul-bytes": "the NUL bytes are taken out",
    "id-mismatch": "line 1 says the folder's name",
    "count-mismatch": "line 1 counts anew",
    "rescued": "the file gets its name",
}
"""What becomes of damage that is no single line's."""


@frozen
class Plan:
    """found: everything that is wrong. lines: what damaged lines become, by position. header: line 1, in stored form,
    but for what it has from the messages.
    """

    found: tuple[Finding, ...] = ()
    lines: Mapping[int, Mended] = {}
    header: Record | None = None

    @property
    def mends(self) -> bool:
        """Whether there is anything that writing the file anew takes away."""
        return any(one.remedy is not None for one in self.found)


def plan(transcript: Transcript, known: Record | None) -> Plan:
    """*known*: the last header that could be read, lines included that it does not count yet; None = there was none.

    Raises: ForeignWrite, OSError.
    """
    damage = transcript.damage
    if not damage:
        return Plan()
    if any(one.code == "linked" for one in damage):
        return Plan(tuple(Finding(one.code, one.line, one.message, None) for one in damage))
    lines = _lines(transcript)
    header, source = _header(transcript, known)
    places = {id(flaw): position for position, flaw in transcript.flaws.items()}
    by_number = {flaw.line: position for position, flaw in transcript.flaws.items()}
    found = []
    for one in damage:
        remedy = _REMEDIES.get(one.code)
        position = places.get(id(one))
        if position is None and one.code == "id-repeated":
            position = by_number.get(one.line)
        if position is not None:
            remedy = lines[position].remedy
        elif one.code in ("header-missing", "header-unreadable"):
            remedy = f"{remedy}, of {source}"
        elif one.code == "header-oversized":
            counted = transcript.counters_with({at: made.record for at, made in lines.items()}).header_fields()
            line = sessions.header_line({**header, **counted}, transcript.directory)
            remedy = "line 1 is written shorter" if len(line) <= sessions.LINE_ONE else None
        found.append(Finding(one.code, one.line, one.message, remedy))
    return Plan(tuple(found), lines, header)


def name_beside(folder: Path, now: int) -> str:
    """A free name in *folder* for a transcript that is mended *now* (ms since 1970): hidden, so the app skips it."""
    names = (f".damaged-{now}.jsonl", *(f".damaged-{now}-{number}.jsonl" for number in range(2, 100)))
    return next(name for name in names if not (folder / name).exists())


@contextmanager
def original_kept(transcript: Transcript, name: str | None) -> Iterator[None]:
    """The file is written anew inside of it, and what it was stays beside under *name* (None: no need), durable before
    the first byte is written. If nothing comes of the writing, nothing is left beside. Raises: ForeignWrite, OSError.
    """
    if name is None:
        yield
        return
    beside = transcript.path.with_name(name)
    transcript.copy_to(beside)
    try:
        yield
    except DirectoryNotFlushed:
        raise
    except BaseException:
        atomic.discard(beside)
        raise


def _lines(transcript: Transcript) -> dict[int, Mended]:
    """Every line that another takes the place of, and those that share theirs with the next."""
    first: dict[str | None, int] = {}
    for position in range(len(transcript)):
        first.setdefault(transcript.id_of(position), position)
    given: dict[str | None, Record] = {}
    taken = ChainMap[str | None, Any](given, first)
    lines: dict[int, Mended] = {}
    for position in sorted(transcript.flaws):
        [segment] = transcript.read(position, position + 1)

        def twin(id: str, position: int = position) -> Record | None:
            at = first.get(id, position)
            return given.get(id) if at == position else transcript.read(at, at + 1)[0].record

        lines[position] = repair.mend_line(segment.raw, segment.record, twin, taken, transcript.directory)
        if (record := lines[position].record) is not None and isinstance(id := record.get("id"), str):
            given.setdefault(id, record)
    if any(one.code == "line-unreadable" for one in transcript.damage):
        stays = False  # whether anything is left of what stands behind on the same line
        joints = set(transcript.joints())
        for position in sorted(joints, reverse=True):
            behind = lines.get(position + 1)
            stays = behind is None or behind.line is not None or (stays and position + 1 in joints)
            if stays and position not in lines:
                [segment] = transcript.read(position, position + 1)
                lines[position] = Mended(segment.raw, segment.record, "gets a line of its own")
    return lines


def _header(transcript: Transcript, known: Record | None) -> tuple[Record, str]:
    """The header to write, and in words what it is made of."""
    if known is not None:
        return known, "what was known of it"
    if transcript.header:
        return transcript.header, "what it says"
    left = repair.salvaged(transcript.first_line, transcript.directory)
    header = repair.rebuilt(left, transcript.directory, transcript.counters, _began(transcript), _written(transcript))
    return header, "what is left of it and the messages" if left else "the folder's name and the messages"


def _began(transcript: Transcript) -> int | None:
    segments = transcript.read(0, FIRST_MESSAGES)
    times = (milliseconds(segment.record.get("timestamp")) for segment in segments if segment.record is not None)
    return next((at for at in times if at is not None), None)


def _written(transcript: Transcript) -> int:
    return max(0, transcript.fingerprint.mtime_ns) // 1_000_000
