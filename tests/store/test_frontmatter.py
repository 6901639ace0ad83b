from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftd.errors import ValidationFailed
from craftd.store.frontmatter import MatterForm, split

FORM = MatterForm(texts=frozenset({"name", "description"}))

FILE = b"---\nname: Tide check # short\ndescription: When to look\n---\nBody\n"


def with_members(data: bytes | None, **members: Any) -> bytes:
    value = {} if data is None else FORM.parse(data).value
    return FORM.format({**value, **members}, data)


@given(
    st.lists(st.sampled_from([b"---", b"\n", b"\r\n", b"-", b"name: x", b" ", b"yaml", b"\xff", b"#"])).map(b"".join)
)
def test_the_pieces_are_the_file(data: bytes) -> None:
    assert split(data).joined() == data


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", {"content": ""}),
        (b"# Text\n", {"content": "# Text\n"}),
        (b"\n---\nname: x\n---\n", {"content": "\n---\nname: x\n---\n"}),
        (b"----\nname: x\n", {"content": "----\nname: x\n"}),
        (b"---\nname: x\n---", {"name": "x", "content": ""}),
        (b"---\nname: x\n----\n", {"name": "x", "content": "-\n"}),
        (b"--- YML \nname: x\n---\n\nb", {"name": "x", "content": "\nb"}),
        (b"---js\n# nothing\n---\nb", {"content": "b"}),
        (b"\xef\xbb\xbf---\r\nname: x\r\n---\r\nb\r\n", {"name": "x", "content": "b\r\n"}),
        (b"---\nname: 010\nn: 010\n---\n", {"name": "010", "n": 8, "content": ""}),
        (b"---\ndescription: 2026-07-01\n---\n", {"description": "2026-07-01", "content": ""}),
        (b"---\ncontent: mine\n---\nbody", {"content": "body"}),
    ],
)  # fmt: skip
def test_front_matter_and_body(data: bytes, value: Any) -> None:
    assert FORM.parse(data).value == value


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"---js\n({name: 1})\n---\n", 1),
        (b"---\nname: x\nother: a: b\n---\n", 3),
        (b"---json\n{\n\"name\": }\n---\n", 3),
        (b"---\n- name\n---\n", 2),
        (b"---\nname: \xff\n---\n", 2),
        (b"---\n" + b"name: x\n" * 40_000, 1),
    ],
)  # fmt: skip
def test_front_matter_that_cannot_be_read_is_not_sound_and_says_where(data: bytes, line: int) -> None:
    parsed = FORM.parse(data)
    assert not parsed.sound
    assert parsed.problems[0].line == line


def test_front_matter_without_an_end_is_read_and_reported() -> None:
    parsed = FORM.parse(b"---\nname: x\ndescription: y\n")
    assert parsed.sound
    assert [problem.code for problem in parsed.problems] == ["not-closed"]


def test_a_name_that_yaml_takes_for_a_number_is_text_and_reported() -> None:
    parsed = FORM.parse(b"---\nx: 1\nname: 12:30\n---\n")
    assert parsed.value["name"] == "12:30"
    assert [(problem.line, problem.severity) for problem in parsed.problems] == [(3, "error")]


@pytest.mark.parametrize(
    ("data", "members", "written"),
    [
        (FILE, {"name": "Ebb"}, b"---\nname: Ebb # short\ndescription: When to look\n---\nBody\n"),
        (FILE, {"content": "New"}, b"---\nname: Tide check # short\ndescription: When to look\n---\nNew"),
        (FILE, {"icon": None}, b"---\nname: Tide check # short\ndescription: When to look\nicon: null\n---\nBody\n"),
        (b"---\nname: 12\n---\nb", {"x": 1}, b"---\nname: 12\nx: 1\n---\nb"),
        (b"---\nname: 12\n---\nb", {"name": "13"}, b'---\nname: "13"\n---\nb'),
        (b"# Text\n", {"name": "x"}, b"---\nname: x\n---\n# Text\n"),
        (b"\xef\xbb\xbfb", {"name": "x"}, b"\xef\xbb\xbf---\nname: x\n---\nb"),
        (b"", {"content": "---\nno: matter"}, b"---\n---\n---\nno: matter"),
        (b"---\nname: x", {"content": "b"}, b"---\nname: x\n---\nb"),
        (b"---\nname: x\n---", {"content": "b"}, b"---\nname: x\n---\nb"),
        (b"---\r\nname: x\r\n---\r\nb\r\n", {"a": 1}, b"---\r\nname: x\r\na: 1\r\n---\r\nb\r\n"),
        (b"---\nname: x\n---\nbad \xff byte", {"a": 1}, b"---\nname: x\na: 1\n---\nbad \xff byte"),
        (b"---\ncontent: mine\n---\nb", {"content": "c"}, b"---\ncontent: mine\n---\nc"),
        (b'---json\n{"name":"x"}\n---\nb', {"a": 1}, b'---json\n{\n  "name": "x",\n  "a": 1\n}\n---\nb'),
        (None, {"name": "x", "globs": ["*.a"], "content": "b"}, b'---\nname: x\nglobs: ["*.a"]\n---\nb'),
    ],
)  # fmt: skip
def test_only_what_changed_is_written(data: bytes | None, members: Any, written: bytes) -> None:
    assert with_members(data, **members) == written


def test_nothing_changed_is_the_same_file() -> None:
    assert with_members(FILE) == FILE


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_survives_in_any_place(name: str, content: str) -> None:
    for data in (None, FILE, b"plain", b"---\nname: open"):
        written = with_members(data, name=name, content=content)
        assert FORM.parse(written).value | {"name": name, "content": content} == FORM.parse(written).value


def test_members_that_front_matter_cannot_hold_are_refused() -> None:
    with pytest.raises(ValidationFailed):
        with_members(FILE, **{"k" * 1100: 1})


@pytest.mark.parametrize(
    ("path", "line"), [("name", 2), ("meta.tags.1", 6), ("meta.nothing", 3), ("missing", 1), ("content", 8)]
)
def test_lines_of_members(path: str, line: int) -> None:
    data = b"---\nname: x\nmeta:\n  tags:\n    - a\n    - b\n---\nbody"
    [range] = FORM.ranges_of(data, [path]).values()
    assert range is not None
    assert range["start"]["line"] == line - 1
