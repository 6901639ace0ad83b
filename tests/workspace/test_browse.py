"""Ranges of files: whole characters, nothing twice, nothing left out, and what is said about bytes that are no text."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.errors import InvalidParams
from craftd.workspace import browse
from craftd.workspace.browse import Piece
from craftd.workspace.files import Ground

texts = st.text(st.sampled_from("a\n\0ß€𝄞\u0301\ufeff"), max_size=40)


def ground_with(data: bytes, folder: str) -> Ground:
    root = Path(folder)
    (root / "f").write_bytes(data)
    return Ground(root, root)


def read(ground: Ground, offset: int, length: int, *, binary: bool = False) -> Piece:
    piece = browse.read(ground, ("f",), offset=offset, length=length, binary=binary)
    assert isinstance(piece, Piece)
    return piece


@settings(deadline=None)
@given(text=texts, length=st.integers(1, 30))
def test_the_pieces_of_a_text_are_the_text(text: str, length: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = ground_with(data := text.encode(), folder)
        offset, pieces = 0, []
        while True:
            piece = read(ground, offset, length)
            assert (piece.offset, piece.size) == (offset, len(data))
            assert piece.length == len(piece.data.encode())
            assert piece.length <= max(length, 4)
            assert piece.data or piece.eof
            pieces.append(piece.data)
            offset += piece.length
            if piece.eof:
                break
        assert "".join(pieces) == text


@settings(deadline=None)
@given(data=st.binary(max_size=60), offset=st.integers(0, 70), length=st.integers(1, 70))
def test_any_range_of_bytes_is_that_range(data: bytes, offset: int, length: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        piece = read(ground_with(data, folder), offset, length, binary=True)
        assert base64.b64decode(piece.data) == data[offset : offset + length]
        assert piece.eof == (offset + length >= len(data))


@settings(deadline=None)
@given(text=texts, offset=st.integers(0, 60), length=st.integers(1, 60))
def test_an_offset_is_refused_exactly_where_a_character_goes_on(text: str, offset: int, length: int) -> None:
    data = text.encode()
    inside = offset < len(data) and data[offset] & 0xC0 == 0x80
    with tempfile.TemporaryDirectory() as folder:
        ground = ground_with(data, folder)
        if inside:
            with pytest.raises(InvalidParams, match="lies inside a character"):
                read(ground, offset, length)
        else:
            assert data[offset:].startswith(read(ground, offset, length).data.encode())


@settings(deadline=None)
@given(data=st.binary(max_size=40), offset=st.integers(0, 40), length=st.integers(1, 40))
def test_what_is_read_as_text_stands_there_or_is_refused(data: bytes, offset: int, length: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = ground_with(data, folder)
        whole = data[offset : offset + max(length, 4)]
        try:
            piece = read(ground, offset, length)
        except InvalidParams:
            with pytest.raises(UnicodeDecodeError):  # there is a reason
                whole.decode()
        else:
            assert piece.data.encode() == data[offset : offset + piece.length]
            assert piece.length or offset >= len(data)
