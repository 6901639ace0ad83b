"""What becomes of damaged lines and headers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.json_text import canonical, dumps
from craftd.model.messages import Counters
from craftd.model.portable import dump_line
from craftd.model.repair import day_of, free_id, last_message, mend_line, rebuilt, salvaged
from craftd.model.sessions import header_line
from tests.model import golden
from tests.strategies import json_values

FOLDER = "/w/sessions/s"
WHOLE = golden.lines("260301-amber-brook")[0]
HEADER: dict[str, Any] = json.loads(WHOLE.replace(b"{{SESSION_PATH}}", FOLDER.encode()))
COMPUTED = {"messageCount", "lastMessageRole", "preview", "lastFinalMessageId"}


def message(id: str, content: str = "text", **more: Any) -> dict[str, Any]:
    return {"id": id, "content": content, **more, "type": "user"}


def nobody(id: str) -> None:
    return None


def test_of_a_torn_header_every_whole_member_is_left() -> None:
    for end in range(len(WHOLE)):
        left = salvaged(WHOLE[:end], FOLDER)
        assert left.items() <= {**HEADER, **left}.items()
        assert all(canonical(left[name]) == canonical(HEADER[name]) for name in left), end
    before_the_last = {name: value for name, value in HEADER.items() if name not in COMPUTED}
    assert salvaged(WHOLE[: WHOLE.rindex(b'"lastFinalMessageId"')], FOLDER) == before_the_last


def test_digits_at_the_tear_are_no_number() -> None:
    assert salvaged(b'{"name":"n","createdAt":17750', FOLDER) == {"name": "n"}


def test_behind_a_hole_fields_of_a_header_are_found_and_others_are_not() -> None:
    torn = b'{"id":"s","own":1,"na' + bytes(9) + b'ls":["x"],"model":"m","labels":["bug"],"isFlagged":"?","own2":2,"x'
    assert salvaged(torn, FOLDER) == {"id": "s", "own": 1, "model": "m", "labels": ["bug"]}


@pytest.mark.parametrize(
    "line", [b"", b"null", b"[1,2,3]", b"\0\0\0", b'{"id":"m1","type":"user","content":"x","name":']
)
def test_of_what_never_was_a_header_nothing_is_taken(line: bytes) -> None:
    assert salvaged(line, FOLDER) == {}


@given(st.binary())
def test_any_bytes_can_be_looked_through(data: bytes) -> None:
    salvaged(data, FOLDER)
    last_message(data, FOLDER)


@given(left=st.dictionaries(st.text(), json_values, max_size=5), made=st.integers(1, 10**13))
def test_a_rebuilt_header_is_one_whatever_was_left(left: dict[str, Any], made: int) -> None:
    header = rebuilt(left, FOLDER, Counters(count=2, last_timestamp=7), None, made)
    assert header["id"] == "s"
    assert header["messageCount"] == 2
    assert isinstance(header["createdAt"], int)
    assert header_line(header, FOLDER).startswith(b"{")


def test_a_session_is_as_old_as_its_first_message_its_name_or_its_file() -> None:
    counters = Counters(count=1, last_timestamp=9)
    dated = "/w/sessions/260412-a-b"
    assert rebuilt({}, dated, counters, 5, 1)["createdAt"] == 5
    assert rebuilt({"createdAt": 3}, dated, counters, 5, 1)["createdAt"] == 3
    assert rebuilt({}, dated, Counters(), None, 1)["createdAt"] == 1775952000000
    assert rebuilt({}, "/w/hex", Counters(), None, 1) == {
        "id": "hex", "sdkCwd": "/w/hex", "createdAt": 1, "lastUsedAt": 1, "messageCount": 0,
    }  # fmt: skip
    assert rebuilt({"workingDirectory": "/code"}, "/w/hex", counters, 5, 1) == {
        "id": "hex", "sdkCwd": "/code", "createdAt": 5, "lastUsedAt": 9, "lastMessageAt": 9,
        "workingDirectory": "/code", "messageCount": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("id", "day"), [("260412-a-b", 1775952000000), ("269999-a-b", None), ("x", None)])
def test_the_day_of_an_id_is_one_of_the_calendar(id: str, day: int | None) -> None:
    assert day_of(id) == day


def test_a_message_appended_behind_half_a_line_is_found() -> None:
    whole = dump_line(message("m4", "a { b"), FOLDER)
    for half in (b'{"id":"m3","content":"half', b'{"id":', b"\xff", b'{"id":"m3","toolInput":{"id":"x"'):
        assert last_message(half + whole, FOLDER) == (whole, message("m4", "a { b"))
    assert last_message(whole[:-1], FOLDER) is None
    assert last_message(b'{"id":"m3","content' + b'{"id":"m9"}', FOLDER) is None  # no message


def test_looking_for_it_costs_a_bounded_number_of_tries() -> None:
    assert last_message(b'{"id":' * 100_000 + dump_line(message("m"), FOLDER), FOLDER) is None


def test_what_cannot_be_read_goes() -> None:
    for raw in (b"null", b'{"id":"m3","con', b"42"):
        assert mend_line(raw, None, nobody, (), FOLDER).line is None


def test_what_is_no_utf8_is_written_as_it_is_shown() -> None:
    raw = b'{"id":"m","content":"\xff\xfe","type":"user"}'
    mended = mend_line(raw, message("m", "\ufffd\ufffd"), nobody, (), FOLDER)
    assert mended.line == '{"id":"m","content":"\ufffd\ufffd","type":"user"}'.encode()


def test_a_second_message_of_one_id_gets_another_and_keeps_every_other_byte() -> None:
    raw = b'{"a":{"id":"m2"},  "id":"m2","content":"x","n":1E5,"type":"user"}'
    record = json.loads(raw)
    mended = mend_line(raw, record, lambda id: message(id), {"m2", "m2-2"}, FOLDER)
    assert mended.record == {**record, "id": "m2-3"}
    assert json.loads(mended.line or b"")["id"] == "m2-3"
    simple = b'{"id":"m2","content":"x","n":1E5,"type":"user"}'
    mended = mend_line(simple, json.loads(simple), lambda id: message(id), {"m2"}, FOLDER)
    assert mended.line == simple.replace(b'"m2"', b'"m2-2"')


def test_a_message_that_stands_there_twice_stays_once() -> None:
    raw = dumps(message("m2"))
    assert mend_line(raw, message("m2"), lambda id: message(id), {"m2"}, FOLDER).line is None


def test_a_free_id_is_no_longer_than_an_id_may_be() -> None:
    assert len(free_id("x" * 200, ())) <= 200
