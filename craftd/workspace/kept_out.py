"""What a new line does not hold itself: long results of tools, images. It goes into files of the session first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from craftd.errors import Forbidden
from craftd.model import embedded, long_results
from craftd.model.records import Record
from craftd.store import atomic, confine, disk

Files = dict[str, bytes]
"""Content by its name relative to the session's folder."""


def stored(record: Record, old: Record, root: Path, directory: str, context_window: object) -> tuple[Record, Files]:
    """The message *record* as its line shall be, and the files that this needs. old: what there is of it already.

    Only members that are new or another than in *old* are looked at. Where a file cannot be had under its name (what
    leads there is a link, or somebody else's file has it) the line keeps what it would have held: nothing is cut.
    """
    files: Files = {}
    for judge in (_result, _images):
        line, more = judge(record, old, directory, context_window)
        if all(_can_be(root, Path(directory), name, data) for name, data in more.items()):
            record, files = line, files | more
    return record, files


def forms(record: Record, directory: str) -> Iterator[Record]:
    """What the line of the message *record* may have become, whichever limit counted at the time."""
    yield record
    record, _ = embedded.moved(record, directory)
    yield record
    if _has_result(record):
        yield long_results.moved(record, directory)[0]


def _result(record: Record, old: Record, directory: str, context_window: object) -> tuple[Record, Files]:
    if not _has_result(record) or record["toolResult"] == old.get("toolResult"):
        return record, {}
    if not long_results.is_long(record["toolResult"], context_window):
        return record, {}
    return long_results.moved(record, directory)


def _has_result(record: Record) -> bool:
    return record.get("type") == "tool" and isinstance(record.get("toolResult"), str) and bool(record.get("id"))


def _images(record: Record, old: Record, directory: str, context_window: object) -> tuple[Record, Files]:
    if "attachments" in record and record["attachments"] == old.get("attachments"):
        return record, {}
    return embedded.moved(record, directory)


def _can_be(root: Path, folder: Path, name: str, data: bytes) -> bool:
    path = folder / name
    try:
        confine.check_writable(root, path)
        return not path.is_symlink() and (not path.exists() or _holds(path, data))
    except (Forbidden, OSError):
        return False


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file says just this: an append that is tried again finds what it wrote."""
    return path.stat().st_size == len(data) and path.read_bytes() == data


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Have *files* in the session's *folder*, safe from a power loss, before a line speaks of them.

    What an attempt that failed later leaves behind is found again by the next one.
    Raises: OSError; ForeignWrite where somebody else's file has the name.
    """
    for name, data in files.items():
        path = folder / name
        if not path.parent.exists():
            disk.make_directory(path.parent)
        if path.exists():
            if not _holds(path, data):
                raise atomic.ForeignWrite(path)
            _make_safe(path)
            continue
        temporary = atomic.temporary_beside(folder / path.name)
        atomic.write_new(temporary, data, mode=None, like=None)
        try:
            disk.rename_new(temporary, path)
        except FileExistsError:
            atomic.discard(temporary)
            raise atomic.ForeignWrite(path) from None
        except BaseException:
            atomic.discard(temporary)
            raise
    # The folder, too: whoever made the one below need not have flushed its name.
    for parent in ({(folder / name).parent for name in files} | {folder}) if files else ():
        disk.flush_directory(parent)


def _make_safe(path: Path) -> None:
    fd = disk.open_read(path)
    try:
        disk.flush_full(fd)
    finally:
        disk.close(fd)
