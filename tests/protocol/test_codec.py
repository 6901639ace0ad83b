from __future__ import annotations

from typing import Any, Literal

import pytest
from attrs import frozen

from craftd.errors import InvalidParams, ParseError
from craftd.model.records import Item, Record
from craftd.protocol.codec import Raw, camel, dumps, loads, structure


@frozen(kw_only=True)
class Since:
    epoch: str
    revision: int


@frozen(kw_only=True)
class Params:
    id: str
    limit: int | None = None
    missing_ok: bool = False
    ratio: float = 1.0
    days: float | None = None
    direction: Literal["forward", "backward"] = "forward"
    topics: tuple[str, ...] | Literal["*"] | None = None
    messages: tuple[Record, ...] = ()
    since: Since | None = None
    several: tuple[Since, ...] = ()
    by_name: dict[str, int] | None = None
    set_: Record | None = None
    value: Any = 7


def issues(params: Any) -> dict[str, str]:
    with pytest.raises(InvalidParams) as refused:
        structure(Params, params)
    return {issue.path: issue.message for issue in refused.value.issues}


def test_members_have_their_wire_names() -> None:
    got = structure(Params, {"id": "a", "missingOk": True, "since": {"epoch": "e", "revision": 3}, "set": {"x": 1}})
    assert got == Params(id="a", missing_ok=True, since=Since(epoch="e", revision=3), set_={"x": 1})


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ("id", 5), ("id", True), ("limit", "5"), ("limit", 5.0), ("limit", True), ("missingOk", "false"),
        ("missingOk", 0), ("ratio", "1"), ("ratio", False), ("days", "1"), ("direction", "up"), ("direction", 1),
        ("topics", 3), ("topics", "all"), ("messages", "ab"), ("messages", {}), ("since", "now"), ("since", []),
        ("byName", []), ("set", "x"), ("set", [1]),
    ],
)  # fmt: skip
def test_nothing_is_coerced(member: str, wrong: Any) -> None:
    assert list(issues({"id": "a", member: wrong})) == [member]


@pytest.mark.parametrize("days", [3, 0.5])
def test_a_number_is_written_with_a_point_or_without(days: float) -> None:
    assert structure(Params, {"id": "a", "ratio": days, "days": days}).days == days


def test_every_wrong_member_is_named_by_its_wire_path() -> None:
    wrong = {
        "limit": "5",
        "missing_ok": True,
        "expectedVerson": "x",
        "messages": [{}, 3],
        "since": {"epoch": 1, "revison": 3},
        "several": [{"epoch": "e", "revision": 1}, {"epoch": "e", "revision": "1"}],
        "byName": {"a": 1, "b": "2"},
    }
    assert issues(wrong) == {
        "id": "required",
        "limit": "expected an integer, not a string",
        "missing_ok": "unknown member",
        "expectedVerson": "unknown member",
        "messages.1": "expected an object, not an integer",
        "since.epoch": "expected a string, not an integer",
        "since.revision": "required",
        "since.revison": "unknown member",
        "several.1.revision": "expected an integer, not a string",
        "byName.b": "expected an integer, not a string",
    }


def test_null_is_absence_except_where_any_json_is_wanted() -> None:
    got = structure(Params, {"id": "a", "limit": None, "missingOk": None, "since": None, "value": None})
    assert got == Params(id="a", value=None)
    assert issues({"id": None}) == {"id": "required"}
    assert issues({"id": "a", "since": {"epoch": None, "revision": 1}}) == {"since.epoch": "required"}


def test_null_inside_stored_json_stays() -> None:
    message = {"class": None, "toolInput": {"jsonrpc": "2.0", "": [None], "__proto__": {}}}
    assert structure(Params, {"id": "a", "messages": [message]}).messages == (message,)


@pytest.mark.parametrize("wrong", ["oops", [1], 5, True])
def test_params_that_are_no_object_are_refused(wrong: Any) -> None:
    assert list(issues(wrong)) == [""]


def test_absent_params_are_an_empty_object_and_meta_is_ignored() -> None:
    assert issues(None) == {"id": "required"}
    assert structure(Params, {"id": "a", "_meta": {"trace": 1}}) == Params(id="a")


def test_answers_have_wire_names_and_no_members_that_are_none() -> None:
    assert dumps(Params(id="a", since=Since(epoch="e", revision=1), value=None)) == (
        b'{"id":"a","missingOk":false,"ratio":1.0,"direction":"forward","messages":[],'
        b'"since":{"epoch":"e","revision":1},"several":[]}'
    )


def test_an_item_keeps_nulls_of_its_value() -> None:
    assert dumps({"item": Item("a", "v", {"x": None})}) == b'{"item":{"id":"a","version":"v","value":{"x":null}}}'


def test_written_json_is_spliced_in_as_it_is() -> None:
    assert dumps({"items": [Raw(b'{"a": 1.50}')], "n": 1}) == b'{"items":[{"a": 1.50}],"n":1}'


def test_what_only_the_standard_library_can_write_is_written() -> None:
    text = dumps({"a": "\ud83d", "b": 2**70, "c": (Raw(b'{"x":1}'), Since(epoch="e", revision=1)), "d": float("inf")})
    assert loads(text) == {"a": "\ud83d", "b": 2**70, "c": [{"x": 1}, {"epoch": "e", "revision": 1}], "d": None}


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object()])
def test_what_is_no_json_raises(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps({"x": value})


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"NaN", b"\xef\xbb\xbf{}", b"[" * 5000])
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(ParseError):
        loads(body)


def test_what_cannot_be_read_is_told_with_the_reason() -> None:
    with pytest.raises(ParseError, match="deeper than 200"):
        loads(b"[" * 201 + b"]" * 201)
    with pytest.raises(ParseError, match="line 1 column"):
        loads(b"{bad")


def test_big_integers_keep_their_digits() -> None:
    assert dumps(loads(b'{"n":9007199254740993123456789}')) == b'{"n":9007199254740993123456789}'


def test_wire_names() -> None:
    assert [camel(name) for name in ("id", "missing_ok", "from_", "in_")] == ["id", "missingOk", "from", "in"]
