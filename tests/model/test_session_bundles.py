from __future__ import annotations

import subprocess
import sys

import pytest

from craftd.model.session_bundles import Origin, wrong_header

FREE = """
import sys
from craftd.model.session_bundles import Origin, wrong_header
origin = Origin({"id": "x", "workspaceRootPath": "~/ws"})
text = sys.argv[1].encode()
origin.look(b'{"content":"' + text * (2_000_000 // len(text)) + b'"}')
assert origin.directory is None
"""


@pytest.mark.parametrize("piece", ["(/", "=/", "(/a/", "/a", ":/ws/sessions/x", " //ws/sessions/x"])
def test_a_folder_is_looked_for_in_linear_time_whatever_the_message(piece: str) -> None:
    """Quadratic would be hours."""
    subprocess.run([sys.executable, "-c", FREE, piece], check=True, timeout=60)


@pytest.mark.parametrize(
    ("content", "home"),
    [
        ('"/home/an na/ws/sessions/x/data"', "/home/an na"),
        ('"see /home/anna/ws/sessions/x/data"', "/home/anna"),
        ('"(/a (/home/anna/ws/sessions/x)"', "/home/anna"),
        ('"a=/home/(/anna/ws/sessions/x"', "/home/(/anna"),
        ('"see //home/anna/ws/sessions/x"', None),
        ('"/ws/sessions/x"', None),
        ('"~/ws/sessions/x /home/anna/ws/sessions/x"', "/home/anna"),
        ('"see /home/anna/ws/sessions/xy"', None),
    ],
)
def test_the_home_before_a_folder_is_a_whole_string_or_a_word(content: str, home: str | None) -> None:
    origin = Origin({"id": "x", "workspaceRootPath": "~/ws"})
    origin.look(f'{{"content":{content}}}'.encode())
    assert origin.directory == (None if home is None else f"{home}/ws/sessions/x")


@pytest.mark.parametrize("created", ["soon", True, None, float("inf"), float("nan")])
def test_a_time_that_cannot_be_stored_is_no_time(created: object) -> None:
    assert [member for member, _ in wrong_header({"id": "260101-a-b", "createdAt": created})] == ["createdAt"]
