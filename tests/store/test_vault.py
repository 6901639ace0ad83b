"""The credential file: what the app wrote opens, what we write the app opens, and nothing is ever thrown away."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.model import json_text
from craftd.store import machine as machines
from craftd.store import vault
from craftd.store.atomic import ForeignWrite
from craftd.store.machine import Machine
from craftd.store.vault import Content, Header, Keys, Unreadable, load, save, seal, secrets_of, unseal

GOLDEN = Path(__file__).parents[1] / "golden" / "credentials"
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())
RECORDED = EXPECTED["files"]
CRANE = "source_bearer::lighthouse::crane-api"


def machine(name: str) -> Machine:
    said = EXPECTED["machines"][name]
    ids = () if said["machineId"] is None else (said["machineId"],)
    return Machine(ids=ids, host=said["hostname"], user=said["username"], home=said["home"])


def keys(name: str = "A") -> Keys:
    return Keys(lambda: machine(name))


def case_id(case: dict[str, Any]) -> str:
    return f"{case['file']} on {case['machine']}"


recorded = pytest.mark.parametrize("case", RECORDED, ids=case_id)


@pytest.mark.parametrize("name", EXPECTED["machines"])
def test_the_secrets_of_a_machine_are_the_apps(name: str) -> None:
    found = [secret.hex() for secret in secrets_of(machine(name))]
    assert found[0] == EXPECTED["machines"][name]["v2Secret"]
    assert found[-1] == EXPECTED["machines"][name]["v1Secret"]


def test_a_file_that_was_sealed_when_the_id_came_from_elsewhere_opens() -> None:
    person = {"host": "h", "user": "ada", "home": "/home/ada"}
    now = list(secrets_of(Machine(ids=("dbus", "etc"), **person)))
    for ids in (("etc",), (), ("",)):
        assert next(secrets_of(Machine(ids=ids, **person))) in now[1:]


def scheme(case: dict[str, Any]) -> str | None:
    """What opens the file here; the app tries less."""
    same = [one for one in RECORDED if one["file"] == case["file"] and "scheme" in one]
    if case_id(case) == "v2-fallback-id.enc on A":
        return "other"  # written while the machine id could not be read: the app throws it away, we do not
    if case_id(case) == "v2-linux.enc on renamed":
        return "v2"
    return next((str(one["scheme"]) for one in same if one["machine"] == case["machine"]), None)


@recorded
def test_a_recorded_file_opens_where_it_opened_for_the_app(case: dict[str, Any]) -> None:
    data = (GOLDEN / case["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == case["sha256"]
    opens = scheme(case)
    payload = next((one["plaintext"] for one in RECORDED if one["file"] == case["file"] and "plaintext" in one), None)
    if opens is None or not isinstance(payload, dict):
        with pytest.raises(Unreadable) as failed:
            unseal(data, keys(case["machine"]))
        damaged = data[:8] != vault.MAGIC or len(data) < 92 or opens is not None
        assert failed.value.code == ("file_corrupted" if damaged else "decryption_failed")
        return
    opened = unseal(data, keys(case["machine"]))
    assert json_text.canonical(opened.payload) == json_text.canonical(payload)
    assert opened.current == (opens == "v2")
    if "salt" in case:
        assert opened.header.salt.hex() == case["salt"]
        assert int.from_bytes(opened.header.flags, "little") == case["flags"]


@pytest.mark.parametrize("case", [one for one in RECORDED if one.get("plaintextCompact") and "key" in one], ids=case_id)
def test_what_the_app_sealed_is_sealed_to_the_same_bytes(case: dict[str, Any]) -> None:
    data = (GOLDEN / case["file"]).read_bytes()
    header = Header(data[12:44], data[8:12], data[44:64])
    assert seal(case["plaintext"], header, bytes.fromhex(case["key"]), data[64:76]) == data


@recorded
def test_a_change_keeps_what_was_there(tmp_path: Path, case: dict[str, Any]) -> None:
    """What the app cannot open it deletes; here the bytes stay, and the new file opens for the app."""
    path = tmp_path / vault.FILE
    before = (GOLDEN / case["file"]).read_bytes()
    path.write_bytes(before)
    found = load(path, keys(case["machine"]))
    if not found.writable:
        assert case["file"] == "plain-version-2.enc"  # the app writes over it
        return
    payload = dict(found.opened.payload) if found.opened else {}
    added = {**found.entries, "llm_api_key::new": {"value": "new"}}
    save(path, found, found.header, {**payload, "credentials": added}, keys(case["machine"]))
    after = load(path, keys(case["machine"]))
    assert after.opened is not None
    assert after.opened.current
    assert list(after.entries) == list(added)
    if found.opened is not None:
        assert after.opened.header == found.opened.header
        assert vault.set_aside(path) == []
    else:
        [kept] = vault.set_aside(path)
        assert (tmp_path / kept).read_bytes() == before
    for name in os.listdir(tmp_path):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["v1-hostname.enc", "bad-tag.enc", "zero-length.enc", "plain-no-metadata.enc"])
def test_reading_changes_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / vault.FILE
    path.write_bytes((GOLDEN / name).read_bytes())
    before = path.read_bytes(), path.stat()
    load(path, keys())
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before[0], before[1].st_mtime_ns)
    assert os.listdir(tmp_path) == [vault.FILE]


states = {
    "zero-length.enc": "corrupt", "bad-magic.enc": "corrupt", "bad-tag.enc": "undecryptable",
    "plain-null.enc": "corrupt", "plain-array.enc": "corrupt", "plain-version-2.enc": "unsupported",
    "plain-no-credentials.enc": "ready", "v2-empty.enc": "ready",
}  # fmt: skip


@pytest.mark.parametrize(("name", "state"), states.items())
def test_a_file_says_what_is_wrong_with_it(tmp_path: Path, name: str, state: str) -> None:
    path = tmp_path / vault.FILE
    path.write_bytes((GOLDEN / name).read_bytes())
    path.chmod(0o600)
    content = load(path, keys())
    assert content.state == state
    assert bool(content.issues()) == (state != "ready")
    path.chmod(0o644)
    assert [issue.code for issue in load(path, keys()).issues()][-1] == "mode-wide"


def test_what_is_not_there_is_no_fault(tmp_path: Path) -> None:
    content = load(tmp_path / vault.FILE, keys())
    assert (content.state, content.issues(), content.entries) == ("absent", (), {})


def test_what_nobody_may_read_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / vault.FILE).mkdir()
    content = load(tmp_path / vault.FILE, keys())
    assert (content.state, content.writable) == ("unreadable", False)


def test_a_file_that_somebody_else_wrote_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / vault.FILE
    save(path, Content(), Header(bytes(32)), {"credentials": {}}, keys())
    found = load(path, keys())
    theirs = (GOLDEN / "v2-linux.enc").read_bytes()
    path.write_bytes(theirs)
    with pytest.raises(ForeignWrite):
        save(path, found, found.header, {"credentials": {}}, keys())
    assert path.read_bytes() == theirs
    assert os.listdir(tmp_path) == [vault.FILE]


def test_two_files_that_cannot_be_opened_are_both_kept(tmp_path: Path) -> None:
    path = tmp_path / vault.FILE
    for garbage in (b"one", b"two", b"one"):
        path.write_bytes(garbage)
        os.utime(path, (1, 1))
        save(path, load(path, keys()), Header(bytes(32)), {"credentials": {}}, keys())
    assert vault.set_aside(path) == [f"{vault.FILE}.unreadable-1000", f"{vault.FILE}.unreadable-1000-2"]
    assert {(tmp_path / name).read_bytes() for name in vault.set_aside(path)} == {b"one", b"two"}


def test_each_writing_has_a_nonce_of_its_own_and_the_salt_stays(tmp_path: Path) -> None:
    path = tmp_path / vault.FILE
    content, seen = Content(), set()
    for _ in range(5):
        content = save(path, content, content.header, {"credentials": {}}, keys())
        data = path.read_bytes()
        seen.add((data[12:44], data[64:76]))
    assert len({salt for salt, _ in seen}) == 1
    assert len({nonce for _, nonce in seen}) == 5


def test_a_key_is_derived_once_for_a_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = []
    real = hashlib.pbkdf2_hmac
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *args: derived.append(args) or real(*args))  # type: ignore[func-returns-value]
    kept = keys()
    for _ in range(3):
        unseal((GOLDEN / "v2-linux.enc").read_bytes(), kept)
    assert len(derived) == 1


def test_the_first_id_file_counts_even_when_it_is_blank(tmp_path: Path) -> None:
    dbus, etc = tmp_path / "dbus", tmp_path / "etc"
    assert machines._linux_ids((dbus, etc)) == ()
    etc.write_text(" feed \n")
    assert machines._linux_ids((dbus, etc)) == ("feed",)
    dbus.write_text("\n")
    assert machines._linux_ids((dbus, etc)) == ("", "feed")


def test_nothing_secret_is_shown_by_repr() -> None:
    opened = unseal((GOLDEN / "v2-linux.enc").read_bytes(), kept := keys())
    shown = repr((opened, Content(opened=opened, data=b"fake-crane"), kept))
    assert "fake" not in shown
    assert EXPECTED["files"][0]["key"] not in shown


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)


@settings(max_examples=30)
@given(
    entries=st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=5), json_values, max_size=3)),
    more=st.dictionaries(st.text(max_size=3), json_values, max_size=2),
    flags=st.binary(min_size=4, max_size=4),
)
def test_what_is_sealed_is_opened_again(entries: Any, more: Any, flags: bytes) -> None:
    payload = {**more, "version": 1, "credentials": entries}
    header = Header(bytes(32), flags)
    data = seal(payload, header, _KEYS.current(bytes(32)), bytes(12))
    opened = unseal(data, _KEYS)
    assert (opened.header, json_text.canonical(opened.payload)) == (header, json_text.canonical(payload))


@settings(max_examples=25, deadline=None)
@given(at=st.integers(0, 253), bit=st.integers(0, 7))
def test_one_changed_bit_gives_no_credentials_or_the_same(at: int, bit: int) -> None:
    data = bytearray((GOLDEN / "v2-mac-id.enc").read_bytes())
    data[at] ^= 1 << bit
    try:
        found = unseal(bytes(data), Keys(lambda: machine("mac")))
    except Unreadable:
        return
    assert found.payload["credentials"][CRANE] == {"value": "fake-crane-token"}
    assert 8 <= at < 12 or 44 <= at < 64  # what nobody looks at


_KEYS = keys()
