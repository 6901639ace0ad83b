"""The examples of protocol.md, played against the daemon as they stand there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import Daemon

PAGE = (Path(__file__).parents[2] / "protocol.md").read_text()
EXAMPLES = re.findall(r"<!-- example -->\n```\n(.*?)```", PAGE, re.DOTALL)


def fits(expected: Any, actual: Any) -> bool:
    """Equal; "*" fits everything. `jsonrpc`, which every message has, and the workspace of an error may be left out."""
    if expected == "*":
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        silent = {"jsonrpc", "workspace"} - expected.keys()
        return expected.keys() == actual.keys() - silent and all(fits(m, actual[name]) for name, m in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(fits, expected, actual))
    return bool(expected == actual) and type(expected) is type(actual)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
async def test_an_example_happens_as_it_stands(example: str, make_daemon: Callable[..., Daemon]) -> None:
    daemon = make_daemon()
    root = daemon.base / "notes"
    root.mkdir()
    daemon.register(notes=root)
    daemon.start()
    client = await daemon.connect("notes")
    client.received.clear()
    for line in example.strip().split("\n"):
        sign, message = line[0], json.loads(line[2:])
        if sign == ">":
            client.send(**message)
        else:
            await client.wait(lambda _: len(client.received) > 0)
            actual = client.received.pop(0)
            assert fits(message, actual), f"{line}\n{json.dumps(actual)}"
    await client.close()
