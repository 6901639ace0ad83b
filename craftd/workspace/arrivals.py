"""Sessions that come as a whole folder: built beside their place, then given their name by one commit."""

from __future__ import annotations

from pathlib import Path

from attrs import define

from craftd.model.records import Record
from craftd.store import atomic, files, trash
from craftd.store.atomic import ForeignWrite
from craftd.store.locate import scan_file
from craftd.store.transcript import Transcript
from craftd.workspace.rows import Place


@define(eq=False)
class Arrival:
    """A session's folder, complete and flushed, under a hidden name in the room of sessions. header: in stored form.

    placed: it has its name.
    """

    staged: Path
    header: Record
    transcript: Transcript
    placed: bool = False

    @classmethod
    def of(cls, staged: Path, id: str, place: Place, header: Record) -> Arrival:
        """In a thread: the transcript is read once, here. Raises: OSError."""
        path, directory = place.folder(id) / "session.jsonl", place.directory(id)
        there = staged / "session.jsonl"
        return cls(staged, header, Transcript(path, directory, there, *scan_file(there, id, directory)))

    def take_place(self, folder: Path, kept: Path | None) -> None:
        """Raises: ForeignWrite (somebody else has the name now), OSError, DirectoryNotFlushed (it is in its place)."""
        self.transcript.hold()
        try:
            atomic.put_folder(self.staged, folder, kept, again=True)
        except FileExistsError:
            raise ForeignWrite(folder) from None
        except atomic.DirectoryNotFlushed:
            self._settle(safe=False)
            raise
        self._settle(safe=True)

    def _settle(self, *, safe: bool) -> None:
        self.placed = True
        self.transcript.in_place(safe=safe)

    def discard(self) -> None:
        """Nothing is left of one that did not come to its place."""
        if self.placed:
            return
        self.transcript.close()
        there = atomic.glance(self.staged / "session.jsonl")
        if there is not None and there.inode == self.transcript.fingerprint.inode:  # not the one it took the place of
            atomic.discard(self.staged)


def ready(place: Place) -> None:
    """Make the room of sessions, if there is none. Raises: OSError."""
    files.make_folders(place.root / "sessions", place.root)


def in_trash(root: Path, name: str) -> Path:
    """A free place in the trash, which is there, for what is to be called *name* or a bit later."""
    trash.ready(root)
    at, _, id = name.partition("-")
    return trash.free(root, int(at), id).folder(root)
