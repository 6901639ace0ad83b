"""Places in JSON texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import json_text
from craftd.model.json_places import LONGEST, range_of, ranges_of
from tests.strategies import json_values

TEXT = """
{
  "name": "a, [b]: {c}",
  "mcp": {"args": ["x",
      "y"],
    "url": "u"},
  "list": [
    {"id": 1},

    {"id": 2, "tags": []}
  ]
}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2), ("name", 3), ("mcp", 4), ("mcp.args", 4), ("mcp.args.1", 5), ("mcp.url", 6), ("list.1", 10),
        ("list.1.id", 10), ("list.7", 7), ("mcp.missing", 4), ("missing", 2), ("name.inside", 3),
    ],
)  # fmt: skip
def test_a_member_is_found_or_its_nearest_parent(path: str, line: int) -> None:
    found = range_of(TEXT, path)
    assert found is not None
    assert found["start"]["line"] == line - 1


def shown(text: str, path: str) -> str | None:
    """The text in the range, cut as an editor would: by UTF-16 units."""
    found = range_of(text, path)
    if found is None:
        return None
    start, end = found["start"], found["end"]
    assert start["line"] == end["line"]
    line = text.split("\n")[start["line"]].encode("utf-16-le", "surrogatepass")
    return line[2 * start["character"] : 2 * end["character"]].decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ('{"😀": "ö", "b": -1.5e3}', "b", "-1.5e3"),
        ('{"😀": "😀😀", "b": [true, null]}', "b.1", "null"),
        ('{"a": {"b": {}}}', "a.b", '"b"'),
        ('{"a": {"b": {}}}', "a.b.c", '"b"'),
        ('[[1], {"x": 2}]', "1", "{"),
        ('[[1], {"x": 2}]', "1.y", "{"),
        ('{"a.b": 1, "a": {"b": 2}}', "a.b", "2"),
        ('{"a": {"x.y": "here"}}', "a.x.y", '"here"'),
        ('{"a": 1, "a": 22}', "a", "22"),
        ('{"\\u0061": 1}', "a", "1"),
        ('{"a": "\\"}", "b": 3}', "b", "3"),
        ("7", "", "7"),
        ("", "a", None),
    ],
)
def test_a_range_holds_the_value_or_its_key(text: str, path: str, found: str | None) -> None:
    assert shown(text, path) == found


def members(value: Any, path: str = "") -> dict[str, Any]:
    """All scalars by dotted path."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {} if isinstance(value, (dict, list)) else {path: value}
    for key, member in pairs:
        found |= members(member, f"{path}.{key}" if path else str(key))
    return found


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('aé😀"\\,:{}[]', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab😀"', min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(value=plain, indent=st.sampled_from([None, 2]))
def test_every_value_of_a_text_is_where_its_range_says(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    for path, member in members(value).items():
        found = shown(text, path)
        assert found is not None
        assert json_text.equal(json.loads(found), member)


@given(value=json_values, paths=st.lists(st.text("ab.01", max_size=8), max_size=4))
def test_any_path_in_any_text_has_a_place_in_it(value: Any, paths: list[str]) -> None:
    text = json_text.dumps(value).decode()
    assert all(found is not None for found in ranges_of(text, paths).values())


def test_names_made_to_be_long_are_looked_at_in_part() -> None:
    name = "." * 200_000
    assert len(name) > LONGEST
    assert range_of(json.dumps({"a": {name: 1}}), f"a.{name}") == range_of(json.dumps({"a": {name: 1}}), "a")
