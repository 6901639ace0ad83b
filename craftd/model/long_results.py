"""Results of tools that are too long for a line: whole in a file of the session, a stand-in in the line.  App 0.11.1.

The name of the file follows from the message and its content, so an append that is repeated is recognised. The stand-in
has the app's words, which tell an agent where to read on.  Golden `vectors.tokenEstimates`, `tokenLimits`,
`largeResponseMessage`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from craftd.model.json_text import utf16_cut, utf16_length
from craftd.model.records import Record

FOLDER: Final = "long_responses"
LIMIT: Final = 12_000
"""Tokens, as estimated, above which a result is long."""
SMALLEST_LIMIT: Final = 2_000
PREVIEW_UNITS: Final = 2_000
"""UTF-16 units of the beginning that the stand-in shows."""

_RUN: Final = 60
"""Characters in a row that look like base64."""
_RUNS: Final = re.compile(rf"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{{{_RUN},}}")
_BLOCK: Final = b"x" * _RUN
_AS_BLOCKS: Final = bytes(ord("x") if re.match(rb"[A-Za-z0-9+/=]", bytes((byte,))) else 0 for byte in range(256))
_DENSE_FROM: Final = 20_000
_NAME_PART: Final = 60


def tokens(text: str) -> int:
    """How many tokens *text* is taken for: four units are one, of what looks like base64 one and a half."""
    units = utf16_length(text)
    return (2 * units + 2) // 3 if units >= _DENSE_FROM and _is_dense(text, units) else (units + 3) // 4


def _is_dense(text: str, units: int) -> bool:
    """Whether seven tenths of it lie in runs. Blocks are counted first, which is quick and nearly always decides."""
    blocks = text.encode("utf-8", "surrogatepass").translate(_AS_BLOCKS).count(_BLOCK)
    if 10 * _RUN * blocks >= 7 * units:
        return True
    if 10 * 2 * _RUN * blocks < 7 * units:  # a run has less than twice what its blocks have
        return False
    return 10 * sum(map(len, _RUNS.findall(text))) >= 7 * units


def limit(context_window: object) -> int:
    """Above how many tokens a result is long, where a model sees that many (None: nobody knows)."""
    if type(context_window) is not int or context_window <= 0:
        return LIMIT
    return max(SMALLEST_LIMIT, min(LIMIT, context_window // 10))


def is_long(text: str, context_window: object) -> bool:
    most = limit(context_window)
    # A character is two units at most, and a unit two thirds of a token.
    return 4 * len(text) > 3 * most and tokens(text) > most


def stand_in(text: str, directory: str, name: str) -> str:
    """What a line says instead of *text*, which is in the file *name* of the session in *directory*."""
    return (
        f"[Response too large (~{tokens(text)} tokens)]\n\n"
        f"Full data saved to: {directory}/{FOLDER}/{name}\n"
        "- Use Read/Grep to access specific content\n"
        f'- Use transform_data with inputFiles: ["{FOLDER}/{name}"] for data analysis\n\n'
        f"Preview:\n{utf16_cut(text, PREVIEW_UNITS)}..."
    )


def file_name(tool: object, message: str, data: bytes) -> str:
    """Of the result *data* that the message of this id has: `<tool>_<id>_<16 hex digits>.txt`.

    Two messages never share one, nor two results of one message; no character leads anywhere.
    """
    digest = hashlib.sha256(message.encode("utf-8", "surrogatepass") + b"\0" + data).hexdigest()[:16]
    return f"{_plain(tool if isinstance(tool, str) else '') or 'tool'}_{_plain(message)}_{digest}.txt"


def moved(record: Record, directory: str) -> tuple[Record, dict[str, bytes]]:
    """*record*, a message with an id, with a stand-in for its result; and the file (below *directory*) that has it.

    Unchanged, with no file, where UTF-8 cannot hold the result.
    """
    text = record["toolResult"]
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return record, {}
    name = file_name(record.get("toolName"), record["id"], data)
    return {**record, "toolResult": stand_in(text, directory, name)}, {f"{FOLDER}/{name}": data}


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "_", text[:_NAME_PART])
