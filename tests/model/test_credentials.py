"""Whose a credential is, what may be known of it, and when it is late; against what the app answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import credentials
from craftd.model.credentials import OWNERS, Identity, Named, Owner, Stored, named, parse, place, refreshed, slots

GOLDEN = Path(__file__).parents[1] / "golden" / "credentials"
IDS = json.loads((GOLDEN / "ids.json").read_bytes())
RULES = json.loads((GOLDEN / "store-rules.json").read_bytes())
REFRESH = json.loads((GOLDEN / "refresh.json").read_bytes())["cases"]
NOW = 1_780_000_000_000
APP = {"workspace": "workspaceId", "source": "sourceId", "connection": "connectionSlug", "platform": "name"}
"""What the app calls our members."""


def as_app(identity: Identity | None) -> dict[str, str] | None:
    if identity is None:
        return None
    names = OWNERS[identity.type]
    return {"type": identity.type, **{APP[n]: p for n, p in zip(names, identity.parts, strict=False)}}


def from_app(id: dict[str, str]) -> Identity:
    """The app falls back to the whole installation where a part is missing or empty."""
    parts = tuple(id.get(APP[name], "") for name in OWNERS.get(id["type"], ()))
    return Identity(id["type"], parts if all(parts) else ())


@pytest.mark.parametrize("case", IDS["toAccount"], ids=lambda case: case["account"])
def test_an_identity_has_the_account_that_the_app_gives_it(case: dict[str, Any]) -> None:
    assert from_app(case["id"]).account == case["account"]
    assert as_app(parse(case["account"])) == case["back"]


@pytest.mark.parametrize("case", IDS["fromAccount"], ids=lambda case: case["account"])
def test_an_account_is_read_as_the_app_reads_it(case: dict[str, Any]) -> None:
    assert as_app(parse(case["account"])) == case["id"]


def test_a_part_that_would_not_be_read_back_is_not_storable() -> None:
    """The app stores it and can never list it again."""
    for case in IDS["toAccount"]:
        if case["back"] is None or len(from_app(case["id"]).parts) != len(OWNERS[case["id"]["type"]]):
            assert not from_app(case["id"]).storable
    assert not Identity("source_oauth", ("a:", "s")).storable
    assert not Identity("source_oauth", ("a\n", "s")).storable
    assert Identity("source_oauth", ("w x/ü", "s.t")).storable


parts = st.text(alphabet="ab:é /", max_size=4)


@given(type=st.sampled_from(sorted(OWNERS)), texts=st.lists(parts, max_size=3))
def test_what_is_storable_is_read_back(type: str, texts: list[str]) -> None:
    identity = Identity(type, tuple(texts))
    if identity.storable:
        assert parse(identity.account) == identity


# When it is late

TIMES: dict[str, dict[str, Any]] = {
    "none": {},
    "noneWithRefresh": {"refreshToken": "r"},
    "past": {"expiresAt": NOW - 1},
    "in1min": {"expiresAt": NOW + 60_000},
    "in1minRefresh": {"expiresAt": NOW + 60_000, "refreshToken": "r"},
    "in1h": {"expiresAt": NOW + 3_600_000},
    "zero": {"expiresAt": 0},
}


def status(type: str, **entry: Any) -> str:
    return Stored.of(f"{type}::w::s", {"value": "x", **entry}, "v").status(NOW)


@pytest.mark.parametrize("case", RULES["expiry"], ids=lambda case: case["credential"])
def test_a_credential_expires_when_the_app_says_so(case: dict[str, Any]) -> None:
    of_source, of_connection = (status(type, **TIMES[case["credential"]]) for type in ("source_oauth", "llm_oauth"))
    assert (of_source == "expired") == case["source"]["expired"]
    assert (of_source in ("expired", "expiring")) == case["source"]["needsRefresh"]
    assert (of_connection == "expired") == case["llm"]["expired"]


def test_an_entry_that_cannot_be_used_says_why() -> None:
    assert Stored.of("a", "text", "v").status(NOW) == "damaged"
    assert Stored.of("a", {"value": 1}, "v").status(NOW) == "damaged"
    assert status("source_oauth", value="") == "empty"
    for never in (True, "soon", -1, float("inf"), 10**400, None):
        assert status("source_oauth", expiresAt=never) == "ready"


@pytest.mark.parametrize("case", [one for one in REFRESH if one["returned"] == "new"], ids=lambda case: case["name"])
def test_a_refreshed_token_is_stored_as_the_app_stores_it(case: dict[str, Any]) -> None:
    old, stored = case["credential"], case["storedAfter"]
    stale = case["name"] == "renew absolute url, own Authorization"
    if stale:  # the app keeps the time at which the old token expired, and renews before every call from then on
        assert stored.pop("expiresAt") == old["expiresAt"]
    answered = {name: member for name, member in stored.items() if name == "expiresAt" or old.get(name) != member}
    assert refreshed(old, answered) == stored


def test_issues_name_members_and_repeat_nothing() -> None:
    wrong = credentials.validate({"value": 5, "refreshToken": ["hush"], "expiresAt": "soon", "else": "hush"}, None)
    assert [issue.path for issue in wrong] == ["value", "refreshToken", "expiresAt"]
    assert "hush" not in repr(wrong)
    assert [issue.path for issue in credentials.validate({}, None)] == ["value"]


# Which one a source uses


@pytest.mark.parametrize("case", RULES["sourceSlots"], ids=lambda case: case["name"])
def test_a_source_finds_its_credential_where_the_app_put_it(case: dict[str, Any]) -> None:
    found = slots(case["config"])
    values = [case["stored"][type]["value"] for type in found if case["stored"].get(type, {}).get("value")]
    loaded = values[0] if values else None
    if case["name"] == "mcp bearer prefers oauth slot":  # an old login must not win over the token set after it
        assert (case["loadedValue"], loaded) == ("o", "b")
    else:
        assert loaded == case["loadedValue"]
    assert found[:1] in ((case["slot"],), ())
    assert bool(found) == (case["name"] != "api none ignores slot")


# Whose it is

ALICE, BOB = Owner("a-1", "notes", "ws_a"), Owner("b-2", "notes", "ws_b")
CAROL = Owner("c-3", "other", "ws_c")


def entry(account: str, mark: str | None = None, version: str = "v") -> Stored:
    return Stored(account, version, mark=mark)


def ids(*entries: Stored, owners: tuple[Owner, ...] = (ALICE, CAROL)) -> dict[str, str | None]:
    return {id: one.problem for id, one in named(entries, owners).items()}


def test_what_the_app_stored_belongs_to_the_workspace_in_that_folder() -> None:
    found = named([entry("source_bearer::notes::x")], (ALICE, CAROL))
    assert {id: one.value for id, one in found.items()} == {
        "source_bearer::a-1::x": {"type": "source_bearer", "workspace": "a-1", "source": "x"}
    }


def test_what_may_be_of_two_workspaces_belongs_to_neither() -> None:
    assert ids(entry("source_bearer::notes::x"), owners=(ALICE, BOB)) == {"source_bearer::notes::x": "ambiguous"}
    assert ids(entry("source_bearer::notes::x", "b-2"), owners=(ALICE, BOB)) == {"source_bearer::b-2::x": None}


def test_a_mark_holds_where_the_folder_was_renamed_or_its_workspace_is_gone() -> None:
    marked = entry("source_bearer::old::x", "c-3")
    assert ids(marked) == {"source_bearer::c-3::x": None}
    assert ids(marked, owners=(Owner("d-4", "old"),)) == {"source_bearer::c-3::x": "unregistered"}


def test_other_types_name_the_workspace_by_its_ids() -> None:
    found = ids(entry("messaging_bearer::ws_a::lark"), entry("workspace_oauth::c-3"), entry("workspace_oauth::notes"))
    assert found == {
        "messaging_bearer::a-1::lark": None, "workspace_oauth::c-3": None, "workspace_oauth::notes": "unregistered"
    }  # fmt: skip


def test_nothing_in_the_file_is_without_an_id() -> None:
    found = ids(
        entry("source_bearer::a::b::x"), entry("craft_oauth::global"), entry("junk"), entry("llm_api_key::global")
    )
    assert sorted(found) == ["craft_oauth::global", "junk", "llm_api_key::global", "source_bearer::a::b::x"]


def test_what_is_marked_counts_before_what_the_app_wrote_later() -> None:
    found = named([entry("source_bearer::notes::x", version="app"), entry("source_bearer::a-1::x", "a-1")], (ALICE,))
    assert found["source_bearer::a-1::x"].stored.mark == "a-1"
    assert found["source_bearer::notes::x"].problem == "shadowed"


def test_a_new_credential_lies_where_the_app_looks_unless_somebody_else_would_find_it() -> None:
    wanted = Identity("source_bearer", ("a-1", "x"))
    assert place(wanted, {}, (ALICE, CAROL)) == "source_bearer::notes::x"
    assert place(wanted, {}, (ALICE, BOB)) == "source_bearer::a-1::x"
    taken = named([entry("source_bearer::notes::x", "gone")], (ALICE,))
    assert place(wanted, taken, (ALICE,)) == "source_bearer::a-1::x"
    assert place(Identity("llm_oauth", ("max",)), {}, ()) == "llm_oauth::max"
    renamed = named([entry("source_bearer::old::x", "a-1")], (ALICE,))
    assert place(wanted, renamed, (ALICE,)) == "source_bearer::notes::x"
    assert place(wanted, renamed, (ALICE, BOB)) == "source_bearer::old::x"
    colon = Owner("a-1", "a::b")
    assert place(wanted, {}, (colon,)) == "source_bearer::a-1::x"


names = st.sampled_from(["a", "b", "ab", "a::b"])
owners = st.lists(st.builds(Owner, names, names, st.none() | names), max_size=3, unique_by=lambda one: one.id)
accounts = st.sampled_from(sorted(OWNERS)).flatmap(
    lambda type: st.lists(names, max_size=2).map(lambda parts: "::".join((type, *parts)))
)
entries = st.lists(
    st.builds(entry, accounts, st.none() | st.sampled_from(["a", "b"])), max_size=6, unique_by=lambda one: one.account
)


@given(entries=entries, owners=owners)
def test_every_entry_has_one_id_and_no_workspace_that_it_may_not_be_of(
    entries: list[Stored], owners: list[Owner]
) -> None:
    found = named(entries, owners)
    assert sorted(one.stored.account for one in found.values()) == sorted(one.account for one in entries)
    for one in found.values():
        workspace = one.owner.get("workspace")
        if workspace is not None and one.stored.mark is not None:
            assert workspace == one.stored.mark
        if workspace is not None and one.owner["type"].startswith("source_") and one.stored.mark is None:
            [mine] = [owner for owner in owners if owner.folder == one.stored.account.split("::")[1]]
            assert mine.id == workspace


@given(entries=entries, owners=owners, type=st.sampled_from(["source_oauth", "llm_oauth", "workspace_oauth"]))
def test_what_is_set_is_found_again_under_its_id(entries: list[Stored], owners: list[Owner], type: str) -> None:
    for owner in owners:
        wanted = Identity(type, {"source_oauth": (owner.id, "b")}.get(type, (owner.id,)))
        known = named(entries, owners)
        account = place(wanted, known, owners)
        before = {one.stored.account: one for one in known.values()}.get(account)
        if not wanted.storable or (before is not None and before.id != wanted.account):
            continue  # refused
        replaced = {account} | ({known[wanted.account].stored.account} if wanted.account in known else set())
        left = [one for one in entries if one.account not in replaced]
        after = named([*left, entry(account, owner.id if wanted.of_workspace else None)], owners)
        assert after[wanted.account].stored.account == account
        others: dict[str, Named] = {one.stored.account: one for one in after.values() if one.stored.account != account}
        assert {name: one.id for name, one in others.items()} == {
            name: one.id
            for name, one in {one.stored.account: one for one in known.values()}.items()
            if name not in replaced
        }
