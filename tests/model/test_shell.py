"""What a command is made of, beside what bash itself makes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from craftd.model import shell
from craftd.model.shell import Redirect, Refused, Simple, Word

BASH = shutil.which("bash") or "/bin/bash"

PIECES = [
    "ls", "rm", " ", " ", "\n", ";", "|", "&", "&&", "||", ">", "<", "/dev/null", "2>&1", "(", ")", "{", "}", "$", "`",
    '"', "'", "\\", "#", "~", "x", "a b", "=", "-", "!", "$(rm)", "\\\n", "[", "]", "*", "?", "if", "then", "fi", "in",
    "case", "esac", ",", "..", "\t", "é", ">|", ">&", "|&", ";;", '"$', '\\"', "<<", "A=1", "function", "time", "&>",
    "3", "@", "^",
]  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin/: an `ls` that writes down its arguments, and an `rm` that leaves a trace; empty/: where bash works."""
    room = tmp_path_factory.mktemp("room")
    (room / "bin").mkdir()
    (room / "empty").mkdir()
    log, trace = room / "log", room / "trace"
    scripts = {
        "ls": f'#!{BASH}\nprintf "(%s)" "$@" >> {log}; echo >> {log}\n',
        "rm": f"#!{BASH}\n: > {trace}\n",
    }
    for name, text in scripts.items():
        (room / "bin" / name).write_text(text)
        (room / "bin" / name).chmod(0o755)
    return room


def run(room: Path, command: str) -> subprocess.CompletedProcess[bytes]:
    (room / "log").write_bytes(b"")
    environment = {"PATH": str(room / "bin"), "HOME": "/home/ada", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [BASH, "-c", command], cwd=room / "empty", env=environment, stdin=subprocess.DEVNULL, capture_output=True
    )


def written(command: Simple) -> str:
    """`~x` is somebody's home, and stays where there is nobody of that name: no piece is one."""
    words = [
        f"/home/ada{word.text[1:]}" if word.tilde and word.text[1:2] in ("", "/") else word.text
        for word in command.arguments
    ]
    return "".join(f"({word})" for word in words) if words else "()"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=8))
def test_bash_runs_nothing_else_than_what_was_seen(room: Path, pieces: list[str]) -> None:
    command = "ls " + "".join(pieces)
    try:
        commands = shell.parse(command)
    except Refused:
        return
    targets = [redirect.target.text for one in commands for redirect in one.redirects if redirect.writes]
    if any(one.name != "ls" for one in commands) or any(target != "/dev/null" for target in targets):
        return
    done = run(room, command)
    assert not (room / "trace").exists()
    assert os.listdir(room / "empty") == []
    for text in (room / "log").read_text().splitlines():
        assert done.returncode == 2 or any(written(one).startswith(text) for one in commands)


WORDS = [
    "ls a b", "ls 'a b' \"c d\" e\\ f", "ls \"a\\\"b\\\\c\\$d\\x\"", "ls a\\\nb", "ls 'it''s'", "ls \"\" ''",
    "ls ~/x '~/x' \\~", "ls a#b #c", "ls \\; \\& \\|", "ls 2 >/dev/null x 2>&1 y", "ls é", "ls a=b --c=d",
    "ls x$ \"$\" \"y$\"", "ls {} {a}",
]  # fmt: skip


@pytest.mark.parametrize("command", WORDS)
def test_words_are_what_bash_makes_of_them(room: Path, command: str) -> None:
    [one] = shell.parse(command)
    assert run(room, command).returncode == 0
    assert (room / "log").read_text() == written(one) + "\n"


def test_a_command_is_its_words_and_where_it_writes() -> None:
    first, second = shell.parse("grep -n 'a b' < in.txt 2>/dev/null | sort > ~/out")
    assert first == Simple(
        (Word("grep"), Word("-n"), Word("a b")), (Redirect("<", Word("in.txt")), Redirect(">", Word("/dev/null")))
    )
    assert first.text == "grep -n 'a b'"
    assert second.redirects == (Redirect(">", Word("~/out", tilde=True)),)


def test_two_words_are_never_shown_as_one() -> None:
    [quoted] = shell.parse("git 'status -s' \"it's\" ''")
    assert quoted.text == "git 'status -s' 'it'\\''s' ''"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ls $(x)", "substitution"),
        ("ls `x`", "substitution"),
        ("ls $x", "variable"),
        ("A=1 ls", "assignment"),
        ("ls &", "background"),
        ("ls\0", "null-byte"),
        ("ls\u200b", "odd-character"),
        ("ls\ud800", "odd-character"),
        ("if x; then y; fi", "unparsable"),
        ("ls | ", "unparsable"),
        ("x" * (shell.LONGEST + 1), "unparsable"),
    ],
)
def test_what_is_refused_is_refused_by_name(command: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        shell.parse(command)
    assert refused.value.code == code
