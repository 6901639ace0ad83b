from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from craftd.model import json_text
from craftd.model.portable import (
    TOKEN,
    contract_home,
    dump_line,
    expand_home,
    occurrences,
    parse_line,
)
from tests.model import golden
from tests.strategies import json_values, texts

VECTORS = golden.load("vectors.json")
HERE = "/home/ada/ws/sessions/260301-a-b"

directories = st.sampled_from(
    [HERE, '/w"q/s/i', "/w\\q/s/i", "/w$&q$$z/s/i", "/日本/s/i", "/a b/s/i", "/x{{SESSION_PATH}}/i", "/bad\udcff/s/i"]
)


@given(json_values, directories)
def test_any_value_survives_the_disk_in_any_folder(value: Any, directory: str) -> None:
    assert json_text.equal(parse_line(dump_line(value, directory), directory), joined(value))


@given(st.lists(st.sampled_from([TOKEN, HERE, "\\", "u007b", "{", "}", "/x", '"', "-2", "SESSION_PATH"]), max_size=8))
@example(["\\", TOKEN])
@example(["\\\\u007b{SESSION_PATH}}"])
@example(["{", TOKEN, "}"])
def test_text_made_of_paths_tokens_and_escapes_survives(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert parse_line(dump_line({"content": text, text: 1}, HERE), HERE) == {"content": text, text: 1}


@given(json_values)
def test_a_copied_folder_reads_its_own_paths(value: Any) -> None:
    record = {"mine": f"{HERE}/plans/p.md", "other": f"{HERE}-2/plans/p.md", "typed": TOKEN, "rest": value}
    moved = parse_line(dump_line(record, HERE), "/srv/copy")
    assert moved["mine"] == "/srv/copy/plans/p.md"
    assert moved["other"] == record["other"]
    assert moved["typed"] == TOKEN


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda vector: vector["line"])
def test_lines_round_trip_and_say_what_the_app_would_say(vector: dict[str, Any]) -> None:
    value = json_text.loads(vector["line"])
    line = dump_line(value, vector["dir"])
    assert parse_line(line, vector["dir"]) == value
    if vector["line"] not in DIFFERENT:
        assert line.decode() == vector["portable"]
    if vector["roundTrips"]:
        assert json_text.dumps(parse_line(vector["portable"].encode(), vector["dir"])).decode() == vector["expanded"]


DIFFERENT = {
    '{"p":"/home/ada/ws/sessions/260301-a-b-2/x"}': "another session's folder",
    '{"p":"{{SESSION_PATH}}"}': "a token that was typed",
    '{"p":"{{SESSION_PATH}}}"}': "the same",
    '{"p":"{{{SESSION_PATH}}}"}': "the same",
    '{"p":"/home/ada/w\\\\q/s/i/x"}': "the app would expand it to another path",
    '{"p":"C:\\\\Users\\\\ada\\\\s\\\\i\\\\x.md","q":"C:/Users/ada/s/i/x.md"}': "one spelling of a folder",
}
"""Where the app's text is a defect (README of the golden sessions): line -> why."""


def test_the_app_reads_a_typed_token_as_typed() -> None:
    line = dump_line({"content": f"use {TOKEN}/x"}, HERE)
    assert TOKEN.encode() not in line
    assert json_text.loads(line) == {"content": f"use {TOKEN}/x"}


@pytest.mark.parametrize(
    ("text", "contracted"),
    [
        (f"{HERE}/x", "{{SESSION_PATH}}/x"),
        (f"see {HERE}.", "see {{SESSION_PATH}}."),
        (f"({HERE}), '{HERE}'", "({{SESSION_PATH}}), '{{SESSION_PATH}}'"),
        (f"{HERE}\\x\n{HERE}\n", "{{SESSION_PATH}}\\x\n{{SESSION_PATH}}\n"),
        (f"{HERE}是", "{{SESSION_PATH}}是"),
        (f"{HERE}-2/x", f"{HERE}-2/x"),
        (f"{HERE}c", f"{HERE}c"),
        (f"{HERE}.bak/x", f"{HERE}.bak/x"),
        (f'{{"inner":"{HERE}/x"}}', '{"inner":"{{SESSION_PATH}}/x"}'),
    ],
)
def test_only_whole_paths_become_tokens(text: str, contracted: str) -> None:
    assert json_text.loads(dump_line({text: [text]}, HERE)) == {contracted: [contracted]}
    assert len(occurrences(text, HERE)) == contracted.count(TOKEN)


def test_old_data_with_a_token_inside_a_name_still_expands() -> None:
    assert parse_line(b'{"p":"{{SESSION_PATH}}-2/x"}', HERE) == {"p": f"{HERE}-2/x"}


def test_a_folder_with_a_quote_is_never_hidden_behind_a_token() -> None:
    assert dump_line({"p": '/w"q/i/x'}, '/w"q/i') == b'{"p":"/w\\"q/i/x"}'
    assert parse_line(b'{"p":"{{SESSION_PATH}}/x"}', '/w"q/i') == {"p": '/w"q/i/x'}


@pytest.mark.parametrize("directory", ["", "/"])
def test_no_folder_means_no_tokens(directory: str) -> None:
    assert dump_line({"p": "/x"}, directory) == b'{"p":"/x"}'
    assert occurrences("/x", directory) == []


@pytest.mark.parametrize("vector", VECTORS["paths"], ids=lambda vector: vector["in"] or "empty")
def test_home_paths_expand_and_contract_as_the_app_does(vector: dict[str, str]) -> None:
    assert expand_home(vector["in"], golden.HOME, "/cwd") == vector["expand"]
    assert contract_home(vector["in"], golden.HOME) == vector["portable"]


def test_a_relative_path_without_a_start_stays_relative() -> None:
    assert expand_home("a/../b", golden.HOME) == "b"


def test_home_may_be_any_text() -> None:
    assert expand_home("$HOME/x", "/home/\\g<0>$1") == "/home/\\g<0>$1/x"
    assert contract_home("/x/y", "/") == "/x/y"


@given(texts)
def test_what_home_contraction_gives_expands_to_the_same_place(name: str) -> None:
    path = f"{golden.HOME}/{name.replace('$', '')}"
    assert expand_home(contract_home(path, golden.HOME), golden.HOME) == expand_home(path, golden.HOME)


def joined(value: Any) -> Any:
    """Halves of a surrogate pair that stand together are one character in any JSON text."""
    return json_text.loads(json_text.dumps(value))
