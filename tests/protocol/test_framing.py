from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.protocol.framing import MAX_HEADER, BodyTooLarge, Decoder, FramingError, PlainHttp, encode


@given(bodies=st.lists(st.binary(max_size=200), max_size=8), cuts=st.lists(st.integers(0, 2000), max_size=8))
def test_bodies_come_out_whole_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(encode, bodies))
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    decoder = Decoder()
    got = [body for start, stop in pairwise(edges) for body in decoder.feed(stream[start:stop])]
    assert got == bodies


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_header_names_are_case_insensitive_and_others_are_skipped(header: bytes) -> None:
    assert list(Decoder().feed(header + b"{}")) == [b"{}"]


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: two\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n",
        b"\r\n\r\n",
        b"{}{}{}\r\n\r\n",
        b"X: y\r\n" * 40 + b"Content-Length: 2\r\n\r\n{}",
        b"x" * (MAX_HEADER + 1),
        b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    ],
)
def test_a_broken_header_ends_the_stream(stream: bytes) -> None:
    decoder = Decoder()
    with pytest.raises(FramingError):
        list(decoder.feed(stream))
    with pytest.raises(FramingError):
        list(decoder.feed(encode(b"{}")))


def test_what_came_before_a_broken_header_is_given_first() -> None:
    bodies = Decoder().feed(encode(b"{}") + b"no header\r\n\r\n")
    assert next(bodies) == b"{}"
    with pytest.raises(FramingError):
        next(bodies)


def test_a_body_above_the_limit_is_refused_from_its_header_alone() -> None:
    with pytest.raises(BodyTooLarge) as refused:
        list(Decoder(max_body=10).feed(b"Content-Length: 11\r\n\r\n"))
    assert (refused.value.limit, refused.value.actual) == (10, 11)


def test_a_body_of_exactly_the_limit_passes() -> None:
    assert list(Decoder(max_body=10).feed(encode(b"0123456789"))) == [b"0123456789"]


@pytest.mark.parametrize(
    "request_head",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nCookie: " + b"x" * MAX_HEADER,
    ],
)
def test_a_web_browser_is_recognised_and_its_body_never_taken(request_head: bytes) -> None:
    with pytest.raises(PlainHttp):
        list(Decoder().feed(request_head))


def test_a_consumer_may_stop_between_bodies_and_go_on_later() -> None:
    decoder = Decoder()
    assert next(decoder.feed(encode(b"1") + encode(b"2"))) == b"1"
    assert list(decoder.feed(b"")) == [b"2"]
