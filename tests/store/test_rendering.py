"""Thumbnails and Markdown, made by a process that may have so much and no more."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from PIL import Image
from pptx import Presentation

from craftd.store import rendering
from craftd.store.rendering import can_render, rendered

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


@pytest.fixture
def render(tmp_path: Path) -> Callable[[str, bytes], bytes | None]:
    def of(what: str, data: bytes) -> bytes | None:
        (tmp_path / "file").write_bytes(data)
        file = os.open(tmp_path / "file", os.O_RDONLY)
        try:
            return rendered(what, file)
        finally:
            os.close(file)

    return of


def saved(thing: Any, *more: Any) -> bytes:
    out = io.BytesIO()
    thing.save(out, *more)
    return out.getvalue()


def docx(body: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>')
        file.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
            'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
        )
        file.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" '
            'ContentType="application/xml"/></Types>',
        )
    return out.getvalue()


@pytest.mark.parametrize(
    ("mode", "kind", "size", "small"),
    [
        ("RGB", "JPEG", (4000, 3000), (200, 150)),
        ("RGBA", "PNG", (300, 600), (100, 200)),
        ("P", "GIF", (10, 5), (10, 5)),
        ("CMYK", "TIFF", (400, 400), (200, 200)),
        ("I;16", "PNG", (400, 100), (200, 50)),
    ],
)
def test_a_thumbnail_has_200_pixels_at_most(
    render: Callable[[str, bytes], bytes | None], mode: str, kind: str, size: tuple[int, int], small: tuple[int, int]
) -> None:
    made = render("thumbnail", saved(Image.new(mode, size), kind))
    assert made is not None
    with Image.open(io.BytesIO(made)) as image:
        assert (image.format, image.size) == ("PNG", small)
        assert image.mode == ("RGBA" if mode == "RGBA" else "RGB")


def test_an_image_that_lies_about_its_size_or_is_none_gives_no_thumbnail(
    render: Callable[[str, bytes], bytes | None],
) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0))
    bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    for data in (bomb, b"", b"no image", b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        assert render("thumbnail", data) is None


def test_documents_become_markdown(render: Callable[[str, bytes], bytes | None]) -> None:
    text = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>" * 2
    made = render("docx", docx(text.format("Größe", "zwölf &lt;b&gt;")))
    assert made is not None
    assert "Größe" in made.decode()
    assert "zwölf" in made.decode()

    book = Workbook()
    assert book.active is not None
    book.active.title = "Rooms"
    for row in (["name", "size"], ["hall | way", 12], [None, None], ["two\nlines", 1.5]):
        book.active.append(row)
    assert render("xlsx", saved(book)) == (
        b"## Rooms\n\n| name | size |\n| --- | --- |\n| hall \\| way | 12 |\n| two lines | 1.5 |\n\n"
    )

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "The move", "pack\ncarry"
    slide.notes_slide.notes_text_frame.text = "slowly"
    assert render("pptx", saved(show)) == b"## Slide 1\n\nThe move\n\npack\ncarry\n\n> slowly\n\n"


def test_a_document_that_unpacks_to_more_than_there_is_room_for_gives_none(
    render: Callable[[str, bytes], bytes | None],
) -> None:
    out = io.BytesIO(docx(""))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open("x", "w") as entry:
        for _ in range(257):
            entry.write(bytes(1 << 20))
    for what in ("docx", "xlsx", "pptx"):
        assert render(what, out.getvalue()) is None
    assert render("docx", b"PK\x03\x04 no archive") is None


def test_the_process_has_no_more_memory_than_its_limit() -> None:
    code = "from craftd.store import render\nrender._bounded()\nbytearray(render.MEMORY)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MemoryError" in done.stderr


def test_without_the_library_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_render("thumbnail")
    assert not can_render("doc")
    monkeypatch.setattr(rendering, "find_spec", lambda name: None)
    assert not any(can_render(what) for what in ("thumbnail", "docx", "xlsx", "pptx"))
