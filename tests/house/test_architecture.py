"""What ARCHITECTURE.md points at is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(\w+/\w+\.py)::(test_\w+)`", TEXT)
    assert len(named) > 50
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^(?:async )?def {name}\(", (ROOT / "tests" / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert missing == []
