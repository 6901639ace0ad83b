"""Records that are folders: one main file, texts in files beside it, and whatever else people keep there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from attrs import evolve, field, frozen

from craftd.errors import Corrupt, InvalidParams, Issue, Ref
from craftd.model.noun import Facts, Noun
from craftd.model.records import Record
from craftd.store import atomic, confine, disk, files
from craftd.store.atomic import DirectoryNotFlushed, Fingerprint, ForeignWrite, Staged
from craftd.store.files import Document, Form, JsonForm, Parsed, Problem

FOLDER_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,199}", re.ASCII)
"""What a name from a client must match before it becomes a path. Folders made by hand may have any name."""

APP_FOLDER_NAME: Final = re.compile(r"[a-z0-9-]+", re.ASCII)
"""What the app calls a slug."""

TRASH: Final = ".trash"


@frozen(kw_only=True)
class Folders:
    """Shelf of a noun with one folder per record.

    folder: where they lie. main: the file that makes a folder a record. texts: member -> file whose text it is.
    paths: members that are paths and portable on disk. slug: member that repeats the folder's name.
    inside: empty folders a new record begins with.
    """

    noun: Noun
    folder: str
    main: str
    form: Form = field(factory=JsonForm)
    texts: Mapping[str, str] = field(factory=dict)
    paths: tuple[tuple[str, ...], ...] = ()
    slug: str | None = None
    inside: tuple[str, ...] = ()

    def keys(self, root: Path) -> list[str]:
        return [f"{self.folder}/{name}" for name, _ in files.visible_folders(root, self.folder)]

    def key_of(self, path: str) -> str | None:
        first, _, rest = path.partition("/")
        name, _, file = rest.partition("/")
        if first != self.folder or not name or name.startswith("."):
            return None
        return f"{first}/{name}" if file in ("", self.main, *self.texts.values()) else None

    def key_for(self, id: str, value: Record) -> str:
        name = id if self.slug is None else value.get(self.slug)
        if not isinstance(name, str) or FOLDER_NAME.fullmatch(name) is None:
            raise InvalidParams.of(self.slug or "id", "must be lower-case letters, digits and hyphens")
        return f"{self.folder}/{name}"

    def load(self, root: Path, key: str) -> Document | None:
        content: dict[str, bytes | None] = {}
        prints: dict[str, Fingerprint | None] = {}
        for name in (self.main, *self.texts.values()):
            path = f"{key}/{name}"
            try:
                found = files.read(root / path)
            except files.Unreadable as error:
                prints[path] = atomic.glance(root / path)
                return self._unreadable(root, key, path, str(error.message), prints)
            if found is None and name == self.main:
                return None
            content[path], prints[path] = found or (None, None)
        return self._document(root, key, content, prints)

    def check(self, data: bytes, folder: str | None) -> list[Issue]:
        """What `load` would report of a record in *folder* (None: in none yet) if its main file held *data*. Pure."""
        parsed = self.form.parse(data)
        value: Record = parsed.value
        if folder is None:
            return self._issues(self.main, data, None, None, value, parsed)
        key = f"{self.folder}/{folder}"
        return self._issues(f"{key}/{self.main}", data, folder, self._id(key, value), value, parsed)

    def save(
        self, root: Path, key: str, document: Document | None, changes: Mapping[str, Record | None], facts: Facts
    ) -> Document | None:
        if document is not None:
            files.require_unchanged(root, document.prints)
            if any(id in document.records and new is None for id, new in changes.items()):
                self._delete(root, key, facts.now)
                document = None
        kept = {id: new for id, new in changes.items() if new is not None}
        if not kept:
            return document
        [(id, new)] = kept.items()
        if document is not None and not document.sound:
            raise Corrupt(f"{key}/{self.main} cannot be read", (root / key).as_uri(), Ref(self.noun.name, id))
        contents = self._contents(root, key, document, id, new)
        return self._write(root, key, document, contents)

    def incoming(self, root: Path, key: str, contents: Mapping[str, bytes]) -> Document:
        """What the folder *key* would be with *contents* (by path inside of it) and nothing else. Reads nothing."""
        named = {f"{key}/{name}": contents.get(name) for name in (self.main, *self.texts.values())}
        return evolve(self._document(root, key, named, {}), linked=False)

    def install(
        self, root: Path, key: str, document: Document | None, contents: Mapping[str, bytes], now: int
    ) -> Document:
        """Make *contents* all that the folder *key* holds; a folder that is there goes into the trash.

        Raises: Forbidden (links), ForeignWrite, DirectoryNotFlushed, OSError: then what was there is there.
        """
        if document is not None:
            files.require_unchanged(root, document.prints)
        confine.check_writable(root, root / key / self.main)
        files.make_folders(root / self.folder, root)
        try:
            if (root / key).exists():
                atomic.replace_folder(root / key, contents, self._in_trash(root, key, now))
            else:
                atomic.create_folder(root / key, contents)
        except FileExistsError:
            raise ForeignWrite(root / key) from None
        except DirectoryNotFlushed as error:
            error.result = self._installed(root, key, contents)
            raise
        return self._installed(root, key, contents)

    def _installed(self, root: Path, key: str, contents: Mapping[str, bytes]) -> Document:
        document = self.incoming(root, key, contents)
        return evolve(document, prints=_prints(root, document.content))

    def _contents(
        self, root: Path, key: str, document: Document | None, id: str, new: Record
    ) -> dict[str, bytes | None]:
        """What every file is to hold, by relative path; None = no file."""
        main = f"{key}/{self.main}"
        before = {} if document is None else document.content
        old: Record = {} if document is None else document.records[id]
        stored: Record = self._stored(before.get(main))
        target = files.graft(stored, self._portable(stored, old, old), self._portable(stored, old, new))
        data = before.get(main)
        unchanged = data is not None and files.same(stored, target)
        contents: dict[str, bytes | None] = {main: data if unchanged else self.form.format(target, data)}
        for member, file in self.texts.items():
            path = f"{key}/{file}"
            known, text = before.get(path), new.get(member)
            if known is None or text != old.get(member):
                known = None if text is None else files.encoded(text)
            contents[path] = known
        return contents

    def _stored(self, data: bytes | None) -> Record:
        return {} if data is None else dict(self.form.parse(data).value)

    def _portable(self, stored: Record, old: Record, value: Record) -> Record:
        """*value* as the main file holds it; paths that are what they were stay as they are written there."""
        kept = {name: member for name, member in value.items() if name not in self.texts}
        result = files.contracted(kept, self.paths)
        for path in self.paths:
            if old and files.same(_at(old, path), _at(value, path)) and _at(stored, path) is not None:
                result = _put(result, path, _at(stored, path))
        return result

    def _write(
        self, root: Path, key: str, document: Document | None, contents: dict[str, bytes | None]
    ) -> Document | None:
        before = {} if document is None else document.content
        for path, data in contents.items():
            if data != before.get(path):
                confine.check_writable(root, root / path)
        if document is None and not (root / key).exists():
            files.make_folders(root / self.folder, root)
            inside = {path.rpartition("/")[2]: data for path, data in contents.items() if data is not None}
            try:
                atomic.create_folder(root / key, inside, self.inside)
            except FileExistsError:
                raise ForeignWrite(root / key) from None
            except DirectoryNotFlushed as error:
                error.result = self._document(root, key, contents, _prints(root, contents))
                raise
            return self._document(root, key, contents, _prints(root, contents))
        prints: dict[str, Fingerprint | None] = dict.fromkeys(contents)
        prints |= {} if document is None else document.prints
        # The main file last: it is what makes the change visible to the app.
        changed = {path: data for path, data in reversed(contents.items()) if data != before.get(path)}
        self._swap(root, before, changed, prints)
        try:
            atomic.flush_names(*(root / path for path in changed))
        except DirectoryNotFlushed as error:
            error.result = self._document(root, key, contents, prints)
            raise
        return self._document(root, key, contents, prints)

    def _swap(
        self,
        root: Path,
        before: Mapping[str, bytes | None],
        changed: Mapping[str, bytes | None],
        prints: dict[str, Fingerprint | None],
    ) -> None:
        """Put all files in place, or none: what can fail for want of room comes first, and is done beside."""
        staged: dict[str, Staged] = {}
        swapped: list[str] = []
        try:
            for path, data in changed.items():
                if data is not None:
                    staged[path] = atomic.stage(root / path, data)
            for path in changed:
                new = staged.pop(path, None)
                if new is None:
                    disk.remove(root / path)
                    prints[path] = None
                else:
                    new.swap(prints[path])
                    prints[path] = new.new
                swapped.append(path)
        except BaseException:
            for one in staged.values():
                one.discard()
            for path in reversed(swapped):
                _take_back(root / path, before.get(path), prints[path])
            raise

    def _delete(self, root: Path, key: str, now: int) -> None:
        """One rename into the trash; a link is removed and what it leads to stays."""
        folder = root / key
        confine.check_removable(root, folder)
        if folder.is_symlink():
            disk.remove(folder)
            atomic.flush_names(folder)
            return
        target = self._in_trash(root, key, now)
        disk.move_folder(folder, target)
        atomic.flush_names(target, folder)

    def _in_trash(self, root: Path, key: str, now: int) -> Path:
        """A free name in the trash, which is there."""
        files.make_folders(root / TRASH, root)
        wanted = root / TRASH / f"{now}-{self.noun.name}-{key.rpartition('/')[2]}"
        target, count = wanted, 1
        while target.exists():
            count += 1
            target = wanted.with_name(f"{wanted.name}-{count}")
        return target

    # -- from bytes to a document --

    def _document(
        self, root: Path, key: str, content: Mapping[str, bytes | None], prints: Mapping[str, Fingerprint | None]
    ) -> Document:
        main = f"{key}/{self.main}"
        data = content[main] or b""
        parsed = self.form.parse(data)
        stored: Record = parsed.value
        value = files.expanded({name: m for name, m in stored.items() if name not in self.texts}, self.paths, root)
        for member, file in self.texts.items():
            text = content[f"{key}/{file}"]
            if text is not None:
                value[member] = text.decode("utf-8", "replace")
        id = self._id(key, value)
        return Document(
            key=key,
            records={id: value},
            prints=dict(prints),
            issues=tuple(self._issues(main, data, key.rpartition("/")[2], id, value, parsed)),
            sound=parsed.sound,
            linked=(root / key).is_symlink(),
            content=content,
        )

    def _id(self, key: str, value: Record) -> str:
        folder = key.rpartition("/")[2]
        id = folder if self.noun.id_member is None else value.get(self.noun.id_member)
        return id if isinstance(id, str) and id else folder

    def _issues(
        self, main: str, data: bytes, folder: str | None, id: str | None, value: Record, parsed: Parsed
    ) -> list[Issue]:
        noun = self.noun.name
        issues = [problem.issue(main, noun, id) for problem in parsed.problems]
        if not parsed.sound:
            return issues
        if folder is not None and APP_FOLDER_NAME.fullmatch(folder) is None:
            message = f"the folder's name {folder!r} is not lower-case letters, digits and hyphens"
            issues.append(Problem(message=message, code="bad-slug", severity="warning").issue(main, noun, id))
        if (
            folder is not None
            and self.slug is not None
            and isinstance(slug := value.get(self.slug), str)
            and slug != folder
        ):
            message = f"{self.slug} differs from the folder's name {folder!r}"
            range = self.form.ranges_of(data, [self.slug])[self.slug]
            issues.append(Problem(message=message, code="slug-mismatch", range=range).issue(main, noun, id))
        found = [evolve(issue, id=id) for issue in self.noun.validate(value, None)]
        return [*issues, *files.in_file(main, noun, self.form, data, found, elsewhere=self.texts)]

    def _unreadable(
        self, root: Path, key: str, path: str, message: str, prints: dict[str, Fingerprint | None]
    ) -> Document:
        id = key.rpartition("/")[2]
        issue = Problem(message=message, code="unreadable").issue(path, self.noun.name, id)
        linked = (root / key).is_symlink()
        return Document(key=key, records={id: {}}, prints=prints, issues=(issue,), sound=False, linked=linked)


def _prints(root: Path, paths: Iterable[str]) -> dict[str, Fingerprint | None]:
    return {path: atomic.glance(root / path) for path in paths}


def _take_back(path: Path, before: bytes | None, now: Fingerprint | None) -> None:
    """Best effort: where it fails, the file is read as if somebody else had written it."""
    try:
        if before is None:
            disk.remove(path)
        else:
            atomic.replace(path, before, expect=now)
    except (OSError, ForeignWrite):
        pass


def _at(value: Record, path: tuple[str, ...]) -> object:
    member: object = value
    for name in path:
        member = member.get(name) if isinstance(member, dict) else None
    return member


def _put(value: Record, path: tuple[str, ...], member: object) -> Record:
    first, *rest = path
    return {**value, first: _put(value[first], tuple(rest), member) if rest else member}
