"""Large JSON in pieces: what is there is found whatever the edges of the pieces, and what is none is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.store import json_stream
from craftd.store.json_stream import Bytes, Cursor, Malformed, decoded

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def rebuilt(cursor: Cursor) -> Any:
    match cursor.peek():
        case b"{":
            return {name: rebuilt(cursor) for name in cursor.members()}
        case b"[":
            return [rebuilt(cursor) for _ in cursor.items()]
        case _:
            return cursor.value()


@given(value=values, chunk=st.integers(1, 40), indent=st.sampled_from([None, 2]))
def test_walking_through_a_value_finds_what_parsing_it_finds(value: Any, chunk: int, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=indent).encode()
    with mock.patch.object(json_stream, "CHUNK", chunk):
        cursor = Cursor(Bytes.given(data))
        assert rebuilt(cursor) == value
        cursor.end()
        whole, skipped = Cursor(Bytes.given(data)), Cursor(Bytes.given(data))
        assert whole.value() == value
        skipped.skip()
        skipped.end()


@given(data=st.binary(max_size=60), chunk=st.integers(1, 9), slashes=st.booleans())
def test_base64_comes_out_in_pieces_as_it_went_in(data: bytes, chunk: int, slashes: bool) -> None:
    written = base64.b64encode(data)
    if slashes:
        written = written.replace(b"/", b"\\/")
    content = Bytes.given(b'"' + written + b'"')
    with mock.patch.object(json_stream, "CHUNK", chunk):
        text = Cursor(content).text()
        assert b"".join(decoded(content, text)) == data


@pytest.mark.parametrize("written", ["!!", "aGk", "aGk=aGk=", "aGk=\\n", "aG k=", "aGk\\u003d"])
def test_what_is_no_base64_is_refused(written: str) -> None:
    content = Bytes.given(f'"{written}"'.encode())
    with pytest.raises(ValueError, match="base64"):
        b"".join(decoded(content, Cursor(content).text()))


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", '{"a" 1}', "{1: 2}", '{"a": 1', '"abc', '["a\nb"]', "[tru", "[1 2]", "[1] 2", "[" * 5000]
)
def test_what_is_no_json_is_refused(text: str) -> None:
    def walked(walk: Callable[[Cursor], Any]) -> None:
        walk(cursor := Cursor(Bytes.given(text.encode())))
        cursor.end()

    for walk in (rebuilt, Cursor.skip, Cursor.value):
        with pytest.raises(Malformed):
            walked(walk)


def test_a_value_that_is_too_large_to_be_held_is_refused() -> None:
    cursor = Cursor(Bytes.given(json.dumps(["x" * 100]).encode()))
    with pytest.raises(Malformed, match="more than 50"):
        cursor.value(50)
