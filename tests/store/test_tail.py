"""The end of a transcript that is not open: what is read backwards is what a whole reading finds, for what it costs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.store import tail as tail_module
from craftd.store.atomic import ForeignWrite
from craftd.store.lines import Segment
from craftd.store.tail import STEP, Tail, Unsure
from craftd.store.transcript import Transcript
from tests.faults.transcripts import line, message, new_session, opened

TESTS = Path(__file__).parents[1]
RECORDED = sorted(
    path
    for root in (TESTS / "golden/sessions", *sorted((TESTS / "field_bugs").glob("O*")))
    for path in root.rglob("session.jsonl")
)
ALL = 1 << 40


def tail_of(whole: Transcript) -> Tail:
    return Tail(
        whole.path, whole.directory, whole.fingerprint, whole.body().length, len(whole), whole.count, whole.damage
    )


def wanted(whole: Transcript, edge: int, count: int, most: int) -> list[Segment]:
    return whole.read(*whole.within(max(0, edge - count), edge, most, from_end=True))


@contextmanager
def step(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail_module, "STEP", size)
        yield


def assert_the_same_from_behind(whole: Transcript, size: int, count: int, most: int = ALL) -> None:
    """Page after page up to the beginning, and once more where places are known by now."""
    repeats = any(damage.code == "id-repeated" for damage in whole.damage)
    with step(size):
        tail = tail_of(whole)
        for _ in range(2):
            edge = len(whole)
            while edge > 0:
                page = wanted(whole, edge, count, most)
                try:
                    assert tail.before(edge, count, most) == page
                except Unsure:
                    assert repeats
                edge -= len(page)


@pytest.mark.parametrize("size", [1, 60, STEP])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_recorded_sessions_are_the_same_from_behind(path: Path, size: int) -> None:
    whole = opened(path)
    for count in (1, 2, 500) if size < STEP else (7, 500):
        assert_the_same_from_behind(whole, size, count)


def nameless(text: str) -> bytes:
    record = message("x", text)
    del record["id"]
    return line(record)


pieces = st.one_of(
    st.integers(0, 9).map(lambda number: line(message(f"m{number}"))),
    st.integers(10, 10**6).map(lambda number: line(message(f"m{number}", "text " * (number % 40)))),
    st.sampled_from(
        [
            nameless("no id"), b"", b" \t", b"\r", bytes(30), b"null", b"[1]", b"{}", b'{"id":"torn', b'"\xff"', b"}",
            line(message("odd")).replace(b"text", b"te\xff"), bytes(7) + line(message("late")), b'{"id":7}',
        ]
    ),
)  # fmt: skip
heads = st.sampled_from(
    [
        b'{"id":"s","createdAt":1}\n', b'{"id":"s","createdAt":1}', b'\n{"id":"s","createdAt":1}\n', b"null\n", b"",
        b'\xef\xbb\xbf{"id":"other","createdAt":1,"messageCount":2}\n', b"{}\n", b'{"id":"s"\n',
    ]
)  # fmt: skip


@settings(deadline=None)
@given(
    head=heads,
    body=st.lists(
        st.tuples(pieces, st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"", b"\0\0", b"\n\n"])), max_size=14
    ),
    size=st.sampled_from([1, 7, 64, 300, STEP]),
    count=st.integers(1, 5),
    most=st.sampled_from([1, 200, ALL]),
)
def test_whatever_stands_in_a_file_is_the_same_from_behind(
    head: bytes, body: list[tuple[bytes, bytes]], size: int, count: int, most: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s" / "session.jsonl"
        path.parent.mkdir()
        path.write_bytes(head + b"".join(text + end for text, end in body))
        assert_the_same_from_behind(opened(path), size, count, most)


@settings(deadline=None)
@given(edges=st.lists(st.integers(0, 60), min_size=1, max_size=8), size=st.sampled_from([1, 200, 1000]))
def test_pages_may_be_asked_for_in_any_order(edges: list[int], size: int) -> None:
    with TemporaryDirectory() as folder, step(size):
        path = new_session(Path(folder), *(f"m{number}" for number in range(50)))
        path.write_bytes(path.read_bytes().replace(b'{"id":"m20"', b"{").replace(b'{"id":"m41"', b"\n\0\0["))
        whole = opened(path)
        tail = tail_of(whole)
        for edge in edges:
            assert tail.before(edge, 4, ALL) == wanted(whole, min(edge, 50), 4, ALL)


def test_what_stands_behind_a_second_message_of_an_id_is_known_and_what_it_hides_is_not(tmp_path: Path) -> None:
    path = new_session(tmp_path, *(f"m{number % 30}" for number in range(40)))
    with step(300):
        tail = tail_of(opened(path))
        with pytest.raises(Unsure):
            tail.before(40, 3, ALL)
    path = new_session(tmp_path / "other", "twice", "twice", *(f"m{number}" for number in range(40)))
    with step(300):
        whole = opened(path)
        assert tail_of(whole).before(42, 3, ALL) == whole.read(39, 42)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of every read from now on."""
    sizes: list[int] = []
    pread = os.pread

    def counting(fd: int, length: int, offset: int) -> bytes:
        data = pread(fd, length, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    return sizes


def test_a_page_reads_about_what_it_returns_wherever_it_is(tmp_path: Path, counted: list[int]) -> None:
    path = new_session(tmp_path, *(f"m{number}" for number in range(10_000)))
    whole = opened(path)
    tail, edge, returned = tail_of(whole), len(whole), 0
    counted.clear()
    for _ in range(60):
        page = tail.before(edge, 100, ALL)
        assert [one.index for one in page] == list(range(edge - 100, edge))
        assert sum(counted) <= sum(one.length for one in page) + 3 * STEP
        returned += sum(one.length for one in page)
        edge -= 100
        counted.clear()
    assert returned > 5 * STEP


def test_long_messages_end_a_page_and_are_read_once_each(tmp_path: Path, counted: list[int]) -> None:
    path = new_session(tmp_path)
    long = b"".join(line(message(f"m{number}", "x" * 300_000)) + b"\n" for number in range(20))
    path.write_bytes(path.read_bytes() + long)
    tail = tail_of(opened(path))
    counted.clear()
    assert [one.index for one in tail.before(20, 500, 1 << 20)] == [17, 18, 19]
    assert sum(counted) < 4 * 1_000_000


def test_another_file_than_the_one_that_is_known_is_not_read(tmp_path: Path) -> None:
    path = new_session(tmp_path, "m1", "m2")
    tail = tail_of(opened(path))
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)
    with pytest.raises(ForeignWrite):
        tail.before(2, 1, ALL)
    path.unlink()
    with pytest.raises(ForeignWrite):
        tail.before(2, 1, ALL)
