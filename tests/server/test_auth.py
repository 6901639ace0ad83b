from __future__ import annotations

import hmac
import json
import stat
from pathlib import Path

import pytest

from craftd.errors import Corrupt, NotFound, Unauthenticated
from craftd.protocol.rendezvous import Places
from craftd.server import auth as module
from craftd.server.auth import Auth, Caller, Grant, Tokens, is_loopback

HERE = Caller("127.0.0.1", tls=False)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(str(tmp_path))
    Path(places.folder).mkdir()
    return places


class Clock:
    """Time passes only while somebody waits."""

    def __init__(self, auth: Auth) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        auth.clock = self.read
        auth.sleep = self.wait
        auth._failures = module.Failures(self.read)

    def read(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


async def wrong(auth: Auth, caller: Caller = HERE, secret: str = "x" * 43) -> None:
    with pytest.raises(Unauthenticated):
        await auth.grant(secret, caller)


async def test_a_token_gives_its_rights_and_no_others(places: Places) -> None:
    auth = Auth(Tokens(places))
    secret, token = await auth.create("board", ["write", "read"], ["ws_1"])
    assert await auth.grant(secret, HERE) == Grant(token.id, frozenset({"read", "write"}), frozenset({"ws_1"}))
    assert len(secret) == 43


async def test_no_token_and_a_wrong_one_are_refused(places: Places) -> None:
    auth = Auth(Tokens(places))
    secret, _ = await auth.create("", ["read"], None)
    for shown in (None, "", secret[:-1], secret + "A", secret.lower(), "\ud800"):
        with pytest.raises(Unauthenticated):
            await auth.grant(shown, HERE)
        auth._failures = module.Failures(auth.clock)


async def test_a_right_token_is_compared_as_long_as_a_wrong_one(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = Auth(Tokens(places))
    secrets = [(await auth.create("", ["read"], None))[0] for _ in range(3)]
    compared: list[int] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: compared.append(len(two)) or real(one, two))
    for secret in (*secrets, "wrong"):
        auth.tokens.find(secret)
    assert compared == [32] * 12


async def test_what_is_written_down_is_no_token(places: Places) -> None:
    auth = Auth(Tokens(places))
    secret, token = await auth.create("board", ["read"], None)
    path = Path(places.tokens)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in path.read_text()
    assert secret not in repr(token)
    (kept,) = json.loads(path.read_text())["tokens"]
    assert set(kept) == {"id", "name", "rights", "createdAt", "hash"}


async def test_tokens_outlive_the_daemon_and_revoked_ones_do_not(places: Places) -> None:
    auth = Auth(Tokens(places))
    kept, _ = await auth.create("", ["read"], ["ws_1"])
    gone, token = await auth.create("", ["read"], None)
    await auth.revoke(token.id)
    await wrong(auth, secret=gone)
    again = Auth(Tokens(places))
    await again.all()
    assert (await again.grant(kept, HERE)).workspaces == {"ws_1"}
    await wrong(again, secret=gone)
    with pytest.raises(NotFound):
        await again.revoke(token.id)


async def test_five_wrong_tokens_of_a_minute_delay_the_sixth(places: Places) -> None:
    auth = Auth(Tokens(places))
    clock = Clock(auth)
    secret, _ = await auth.create("", ["read"], None)
    for _ in range(5):
        await wrong(auth)
        clock.now += 2
    await auth.grant(secret, Caller("127.0.0.2", tls=False))
    assert clock.waits == []
    await wrong(auth)
    assert clock.waits == [50.0]
    await auth.grant(secret, HERE)  # a right one too, or the delay would tell which is right
    assert clock.waits == [50.0, 2.0]
    clock.now += 60
    await auth.grant(secret, HERE)
    assert clock.waits == [50.0, 2.0]


async def test_one_household_of_ipv6_counts_as_one(places: Places) -> None:
    auth = Auth(Tokens(places))
    clock = Clock(auth)
    for number in range(6):
        await wrong(auth, Caller(f"2001:db8::{number}", tls=True))
    assert len(clock.waits) == 1
    await wrong(auth, Caller("2001:db8:0:1::1", tls=True))
    assert len(clock.waits) == 1


async def test_addresses_are_forgotten_after_a_minute(places: Places) -> None:
    auth = Auth(Tokens(places))
    clock = Clock(auth)
    for number in range(100):
        await wrong(auth, Caller(f"10.0.0.{number}", tls=True))
        clock.now += 1
    assert len(auth._failures._times) <= 61


async def test_nobody_has_secrets_or_starts_programs_where_others_read_along(places: Places) -> None:
    auth = Auth(Tokens(places))
    secret, _ = await auth.create("", ["read", "execute", "secrets"], None)
    for caller, rights in (
        (Caller("192.168.1.7", tls=False), {"read"}),
        (Caller("192.168.1.7", tls=True), {"read", "execute", "secrets"}),
        (Caller("::1", tls=False), {"read", "execute", "secrets"}),
    ):
        assert (await auth.grant(secret, caller)).rights == rights


async def test_a_token_for_some_workspaces_never_has_the_right_over_all(places: Places) -> None:
    auth = Auth(Tokens(places))
    secret, _ = await auth.create("", ["read", "admin"], ["ws_1"])
    assert (await auth.grant(secret, HERE)).rights == {"read"}


def test_the_local_token_is_made_once_and_only_its_owner_can_read_it(places: Places) -> None:
    Tokens(places).ensure_local()
    first = Path(places.token).read_text()
    assert stat.S_IMODE(Path(places.token).stat().st_mode) == 0o600
    Tokens(places).ensure_local()
    assert Path(places.token).read_text() == first


async def test_revoking_the_local_token_makes_another(places: Places) -> None:
    auth = Auth(Tokens(places))
    auth.tokens.ensure_local()
    first = Path(places.token).read_text().strip()
    await auth.revoke("local")
    second = Path(places.token).read_text().strip()
    await wrong(auth, secret=first)
    assert (await auth.grant(second, HERE)).token == "local"
    assert stat.S_IMODE(Path(places.token).stat().st_mode) == 0o600


@pytest.mark.parametrize("weak", ["", "short-one-1234", "abababababababababab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"])
def test_a_local_token_that_can_be_guessed_is_refused_without_being_shown(places: Places, weak: str) -> None:
    Path(places.token).touch(0o600)
    Path(places.token).write_text(weak)
    with pytest.raises(PermissionError, match="too easy to guess") as refused:
        Tokens(places).ensure_local()
    assert not weak or weak not in str(refused.value)


def test_a_local_token_that_others_can_read_is_refused(places: Places) -> None:
    Tokens(places).ensure_local()
    Path(places.token).chmod(0o640)
    with pytest.raises(PermissionError, match="can be read by others"):
        Tokens(places).ensure_local()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": [{"id": "t"}]}', '{"tokens": 1}'])
async def test_a_damaged_file_of_tokens_is_not_written_over(places: Places, content: str) -> None:
    Path(places.tokens).write_text(content)
    auth = Auth(Tokens(places))
    with pytest.raises(Corrupt):
        await auth.create("", ["read"], None)
    assert Path(places.tokens).read_text() == content


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True), ("0.0.0.0", False),
        ("::", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False), ("fe80::1%eth0", False), ("localhost", False),
    ],
)  # fmt: skip
def test_only_addresses_of_this_machine_are_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
