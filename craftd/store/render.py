"""A program of its own: a thumbnail of an image, or the text of a document as Markdown, from stdin to stdout.

What is attached comes from anywhere, and both formats are known for files that unpack to gigabytes or never end: so
they are read in a process that may have so much memory and time and no more, and that the daemon does not die with.
Run by `craftd.store.rendering`; nothing of craftd is imported here. Exit code 0: there is something on stdout.
"""

from __future__ import annotations

import resource
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import IO, Any
from zipfile import ZipFile

MEMORY = 1 << 30
SECONDS = 15
"""Of the processor."""
EDGE = 200
"""Pixels of a thumbnail's longer side, at most."""
PIXELS = 100_000_000
"""Of an image that is looked at."""
UNPACKED = 256 << 20
"""Bytes that a document says it unpacks to; one that says less than is true meets the limit of memory."""
TEXT_BYTES = 8 << 20
"""Of Markdown; of a longer document there is none."""
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO")


def thumbnail(file: IO[bytes], out: IO[bytes]) -> None:
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    with Image.open(file, formats=FORMATS) as image:
        image.draft("RGB", (2 * EDGE, 2 * EDGE))  # a large JPEG is not unpacked whole
        small = ImageOps.exif_transpose(image)
        small.thumbnail((EDGE, EDGE))
        small.convert("RGBA" if small.has_transparency_data else "RGB").save(out, "PNG")


def _word(file: IO[bytes]) -> Iterator[str]:
    import mammoth

    yield mammoth.convert_to_markdown(file, convert_image=lambda image: []).value


def _sheets(file: IO[bytes]) -> Iterator[str]:
    from openpyxl import load_workbook

    book = load_workbook(file, read_only=True, data_only=True)
    for sheet in book.worksheets:
        yield f"## {sheet.title}\n\n"
        first = True
        for row in sheet.iter_rows(values_only=True):
            cells = ["" if cell is None else _cell(str(cell)) for cell in row]
            if not any(cells):
                continue
            yield f"| {' | '.join(cells)} |\n"
            if first:
                yield f"|{' --- |' * len(cells)}\n"
            first = False
        yield "\n"


def _slides(file: IO[bytes]) -> Iterator[str]:
    from pptx import Presentation

    for number, slide in enumerate(Presentation(file).slides, 1):
        yield f"## Slide {number}\n\n"
        for shape in slide.shapes:
            if shape.has_text_frame and shape.text_frame.text.strip():
                yield f"{shape.text_frame.text}\n\n"
            if shape.has_table:
                yield from _table([[cell.text for cell in row.cells] for row in shape.table.rows])
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield f"> {slide.notes_slide.notes_text_frame.text}\n\n"


def _table(rows: list[list[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(map(_cell, row))} |\n"
        if number == 0:
            yield f"|{' --- |' * len(row)}\n"
    yield "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


DOCUMENTS: dict[str, Callable[[IO[bytes]], Iterator[str]]] = {"docx": _word, "xlsx": _sheets, "pptx": _slides}


def markdown(file: IO[bytes], out: IO[bytes], extension: str) -> None:
    with ZipFile(file) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > UNPACKED:
            raise ValueError("the document unpacks to too much")
    size = 0
    for piece in DOCUMENTS[extension](file):
        data = piece.encode("utf-8", "replace")
        size += len(data)
        if size > TEXT_BYTES:
            raise ValueError("the document is too long")
        out.write(data)


def _bounded() -> None:
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        try:
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        except (OSError, ValueError):
            continue  # macOS has no limit of that kind


def main(what: str) -> None:
    _bounded()
    made: Any = sys.stdout.buffer
    if what == "thumbnail":
        thumbnail(sys.stdin.buffer, made)
    else:
        markdown(sys.stdin.buffer, made, what)
    made.flush()


if __name__ == "__main__":
    main(sys.argv[1])
