"""The encrypted file of all credentials, byte for byte as the app has it.  App 0.11.1.

    0 magic (8) - 8 flags (4) - 12 salt (32) - 44 reserved (20) - 64 nonce (12) - 76 tag (16) - 92 ciphertext

AES-256-GCM without additional data. The key follows from the machine and the salt, so this keeps a copied file shut,
not other programs of the same user out. Which of several machine strings sealed it, the file does not say: all are
tried, and what one of the others opened is sealed anew with the one that the app would take.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field, frozen

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model.records import Record
from craftd.store import atomic, disk
from craftd.store.atomic import Fingerprint
from craftd.store.locate import ABSENCE_MS
from craftd.store.machine import Machine

FILE: Final = "credentials.enc"

MAGIC: Final = b"CRAFT01\0"
ROUNDS: Final = 100_000
PRIVATE: Final = 0o600

_SALT, _NONCE, _TAG, _TEXT = 12, 64, 76, 92
"""Where they begin."""


@define
class Unreadable(Exception):
    """The file gives no credentials. code: file_corrupted, decryption_failed, file_unreadable (the system says no)."""

    code: str
    message: str

    def __str__(self) -> str:
        return self.message


@frozen
class Header:
    """What a rewrite keeps: the app writes zeros into all but the salt, and looks at none of it."""

    salt: bytes
    flags: bytes = bytes(4)
    reserved: bytes = bytes(20)


@frozen
class Opened:
    """payload: what was sealed, a JSON object. current: by the key that the app would take on this machine."""

    header: Header
    payload: Record = field(repr=False)
    current: bool


@define(eq=False)
class Keys:
    """The keys of one machine. Each takes 40 ms to derive, so those of the last salt are kept."""

    machine: Callable[[], Machine] = Machine.here
    _secrets: list[bytes] = field(factory=list, repr=False)
    _salt: bytes = b""
    _derived: dict[bytes, bytes] = field(factory=dict, repr=False)

    def of(self, salt: bytes) -> Iterator[bytes]:
        """Every key that may fit, the app's own first."""
        if not self._secrets:
            self._secrets = list(dict.fromkeys(secrets_of(self.machine())))
        if salt != self._salt:
            self._salt, self._derived = salt, {}
        for secret in self._secrets:
            if secret not in self._derived:
                self._derived[secret] = hashlib.pbkdf2_hmac("sha256", secret, salt, ROUNDS, 32)
            yield self._derived[secret]

    def current(self, salt: bytes) -> bytes:
        return next(self.of(salt))

    def version(self, salt: bytes, account: str, entry: Any) -> str:
        """16 hex digits that differ when anything of *entry* does, and help nobody to guess it who has no key."""
        text = json_text.canonical([account, entry])
        key = hashlib.blake2b(b"craftd versions", key=self.current(salt)).digest()
        return hashlib.blake2b(text, digest_size=8, key=key).hexdigest()


def secrets_of(machine: Machine) -> Iterator[bytes]:
    """Since 0.2.23: of the machine id, else of user and home. An id that is blank is taken as it is; one that could not
    be read at that time, or was read from the other file, may have sealed a file too. Before: of host, user and home.
    """
    person = f"{machine.user}:{machine.home}"
    for text in (*machine.ids, person, ""):
        yield _secret(text, "craft-agent-v2")
    yield _secret(machine.host + machine.user + machine.home, "craft-agent-v1")


def _secret(text: str, label: str) -> bytes:
    return hashlib.sha256((text + label).encode("utf-8", "surrogatepass")).digest()


def unseal(data: bytes, keys: Keys) -> Opened:
    """Raises: Unreadable."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(data) < _TEXT or not data.startswith(MAGIC):
        raise Unreadable("file_corrupted", "is no credential file, or only a part of one")
    header = Header(data[_SALT:44], data[8:_SALT], data[44:_NONCE])
    sealed = data[_TEXT:] + data[_TAG:_TEXT]
    for number, key in enumerate(keys.of(header.salt)):
        try:
            text = AESGCM(key).decrypt(data[_NONCE:_TAG], sealed, None)
        except InvalidTag:
            continue
        return Opened(header, _payload(text), current=number == 0)
    message = "cannot be decrypted: it was written on another machine or by another person, or is damaged"
    raise Unreadable("decryption_failed", message)


def _payload(text: bytes) -> Record:
    try:
        payload = json_text.loads(text)
    except ValueError:
        payload = None
    if not isinstance(payload, dict) or not isinstance(payload.get("credentials", {}), dict):
        raise Unreadable("file_corrupted", "was decrypted, but holds no credentials")
    return payload


def seal(payload: Record, header: Header, key: bytes, nonce: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealed = AESGCM(key).encrypt(nonce, json_text.dumps(payload), None)
    text, tag = sealed[:-16], sealed[-16:]
    return b"".join((MAGIC, header.flags, header.salt, header.reserved, nonce, tag, text))


# The file


@frozen(kw_only=True)
class Content:
    """The file as it was read. opened: None where it is not there or gives nothing; data: then its bytes, if any."""

    fingerprint: Fingerprint | None = None
    opened: Opened | None = None
    problem: Unreadable | None = None
    wide: bool = False
    """Others than its owner may read it."""
    data: bytes = field(default=b"", repr=False)

    @property
    def writable(self) -> bool:
        """Not what nobody may read; nor a payload of an unknown version: it is left to whoever knows it."""
        if self.problem is not None:
            return self.problem.code != "file_unreadable"
        return self.opened is None or self.opened.payload.get("version", 1) in (1, None)

    @property
    def header(self) -> Header:
        """Of what is written in its place."""
        return Header(os.urandom(32)) if self.opened is None else self.opened.header

    @property
    def entries(self) -> dict[str, Any]:
        entries: dict[str, Any] = {} if self.opened is None else self.opened.payload.get("credentials", {})
        return entries

    @property
    def state(self) -> str:
        """absent, ready, undecryptable, corrupt, unreadable, unsupported."""
        if self.problem is not None:
            states = {"decryption_failed": "undecryptable", "file_corrupted": "corrupt"}
            return states.get(self.problem.code, "unreadable")
        if self.opened is None:
            return "absent"
        return "ready" if self.writable else "unsupported"

    def issues(self) -> tuple[Issue, ...]:
        found = []
        if self.problem is not None:
            then = f"; the next change keeps it as {FILE}.unreadable-<time> and begins a new one"
            message = f"{self.problem.message}{then if self.writable else ''}"
            found.append(Issue(path=FILE, message=message, code=self.problem.code, noun="credentials"))
        elif not self.writable:
            message = "is of a version that is not known: it is read, and nothing is written over it"
            found.append(Issue(path=FILE, message=message, code="version-unknown", noun="credentials"))
        if self.wide:
            message = "others than its owner may read it; the next change takes that away"
            wide = Issue(path=FILE, message=message, severity="warning", code="mode-wide", noun="credentials")
            found.append(wide)
        return tuple(found)


def load(path: Path, keys: Keys, *, expected: bool = False) -> Content:
    """What is there. Not in the moment in which somebody saves it: the app empties the file and then fills it.

    expected: it was there before. Raises: ForeignWrite.
    """
    deadline = time.monotonic() + ABSENCE_MS / 1000
    while True:
        content = _look(path, keys)
        print = content.fingerprint
        saving = expected if print is None else content.problem is not None and atomic.is_fresh(print)
        if not saving or time.monotonic() > deadline:
            return content
        time.sleep(0.002)


def _look(path: Path, keys: Keys) -> Content:
    try:
        data, print = atomic.read(path)
        wide = bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except FileNotFoundError:
        return Content()
    except OSError as error:
        problem = Unreadable("file_unreadable", f"cannot be read: {error.strerror}")
        return Content(fingerprint=atomic.glance(path), problem=problem)
    try:
        return Content(fingerprint=print, opened=unseal(data, keys), wide=wide)
    except Unreadable as problem:
        return Content(fingerprint=print, problem=problem, wide=wide, data=data)


def save(path: Path, content: Content, header: Header, payload: Record, keys: Keys) -> Content:
    """Seal *payload* in the place of *content*; bytes that cannot be opened are kept beside.

    Readable for the owner alone, whatever it was. Raises: ForeignWrite, OSError up to the swap: the old file stays.
    DirectoryNotFlushed: the new one is there, but not yet safe.
    """
    if content.problem is not None:
        _set_aside(path, content)
    if content.wide:
        disk.set_mode(path, PRIVATE)  # a file keeps its mode when it is replaced
    data = seal(payload, header, keys.current(header.salt), os.urandom(12))
    saved = Content(opened=Opened(header, payload, current=True))
    try:
        print = atomic.replace(path, data, expect=content.fingerprint, mode=PRIVATE)
    except atomic.DirectoryNotFlushed as error:
        error.result = evolve(saved, fingerprint=error.result)
        raise
    return evolve(saved, fingerprint=print)


def _set_aside(path: Path, content: Content) -> None:
    """Keep the bytes of a file that is about to be replaced; once, however often that is tried.  Raises: OSError."""
    assert content.fingerprint is not None
    name = f"{path.name}.unreadable-{content.fingerprint.mtime_ns // 1_000_000}"
    for ending in ("", *(f"-{number}" for number in range(2, 1000))):
        beside = path.with_name(name + ending)
        if _holds(beside, content.data):
            disk.flush_directory(path.parent)  # an earlier try may not have come so far
            return
        if not os.path.lexists(beside):
            try:
                atomic.replace(beside, content.data, expect=None, mode=PRIVATE)
            except atomic.DirectoryNotFlushed as error:
                raise OSError(error.errno, error.strerror, error.filename) from error  # nothing was replaced yet
            return
    raise OSError(errno.EEXIST, "too many files were set aside", str(path))


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def set_aside(path: Path) -> list[str]:
    """Names of what was kept beside *path*, oldest first."""
    try:
        return sorted(found.name for found in path.parent.glob(f"{path.name}.unreadable-*"))
    except OSError:
        return []
