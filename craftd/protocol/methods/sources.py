"""Sources: trying whether one works."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method

TIMES = range(1, 300_001)
"""ms that a test may take."""


@frozen(kw_only=True)
class TestedSource(Position):
    """status: as written into the configuration. message: why it is not connected. written: whether it could be stored.

    found: of an MCP server `server`, `tools`, `resources`, `prompts`; of a local source `entries` or `bytes`.
    search_path: PATH that a program was looked for in.
    """

    status: Literal["connected", "needs_auth", "failed"]
    message: str | None = None
    written: bool
    found: Record
    search_path: str | None = None


@method("sources/test", result=TestedSource, right="execute")
@frozen(kw_only=True)
class TestSource(Ref):
    """Really connect to a source, with the credential that is stored for it, and write down how it went."""

    id: str
    auto_enable: bool = True
    """Switch it on if it was off and could be connected to."""
    timeout_ms: int | None = None
    """1 to 300000; absent: 30 s, for an api 10 s."""
    work_done_token: int | str | None = None
