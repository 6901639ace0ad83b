"""The programs of clients/README.md, run as they stand there, say what stands below them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from craftd.client import connect
from tests.client.conftest import end_all_of
from tests.daemon import Daemon
from tests.wire import PATIENCE

PAGE = (Path(__file__).parents[2] / "clients" / "README.md").read_text()
EXAMPLES = re.findall(r"### ([^\n]*)\n(?:(?!\n###).)*?```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """With what the page expects; one of the examples kills it."""
    with tempfile.TemporaryDirectory(prefix="craftd-", dir="/tmp") as folder:
        daemon = Daemon(Path(folder))
        (root := daemon.base / "notes").mkdir()
        daemon.register(notes=root)
        daemon.start("--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
        asyncio.run(prepare(daemon))
        yield daemon
        end_all_of(str(daemon.config))


async def prepare(daemon: Daemon) -> None:
    async with connect(daemon.url(), workspaces=["notes"]) as client:
        await client.sessions.create(id="260704-quiet-fjord", value={"name": "Plan the move"})


def test_every_program_of_the_page_is_an_example() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 5


@pytest.mark.parametrize(("code", "said"), [example[1:] for example in EXAMPLES], ids=[name for name, *_ in EXAMPLES])
def test_an_example_says_what_stands_below_it(daemon: Daemon, code: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=daemon.environment,
        cwd=daemon.base,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == (said, "")


def test_the_examples_are_typed(tmp_path: Path) -> None:
    for number, (_, code, _) in enumerate(EXAMPLES):
        (tmp_path / f"example_{number}.py").write_text(code)
    options = ("--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--scripts-are-modules")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, sorted(tmp_path.glob("*.py")))],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
