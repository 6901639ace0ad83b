from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from craftd.cli import commands, text
from craftd.client import launch
from craftd.protocol.rendezvous import VERSION, Places
from tests.client.conftest import FAKE, starts

Behave = Callable[..., None]
Capture = pytest.CaptureFixture[str]


def test_a_result_is_one_line_of_json_when_it_is_piped(fake: Behave, capsys: Capture) -> None:
    assert commands.run(["call", "echo", '{"name": "é", "n": 12345678901234567890}']) == 0
    assert capsys.readouterr().out == '{"name": "é", "n": 12345678901234567890}\n'


def test_params_can_come_from_standard_input(fake: Behave, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'\xef\xbb\xbf{"n": "\xc3\xa9"}')))
    assert commands.run(["call", "echo", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": "é"}


def test_params_that_are_not_utf8_are_refused(places: Places, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"n": "\xff"}'), errors="surrogateescape"))
    assert commands.run(["call", "echo", "-"]) == 2
    assert commands.run(["call", "echo", '{"n": "\udcff"}']) == 2
    assert capsys.readouterr().err.count("the params are not UTF-8") == 2
    assert not Path(places.folder).exists()


def test_integers_keep_all_their_digits(fake: Behave, capsys: Capture) -> None:
    assert commands.run(["call", "echo", f'{{"n": {"9" * 5000}}}']) == 0
    assert capsys.readouterr().out == f'{{"n": {"9" * 5000}}}\n'


def test_an_answer_to_something_unreadable_is_an_error_like_any_other(fake: Behave, capsys: Capture) -> None:
    fake(unreadable=True)
    assert commands.run(["call", "echo"]) == 1
    assert capsys.readouterr().err == "craftd: ParseError (-32700): nested too deeply\n"


def test_what_the_daemon_said_before_it_hung_up_is_told(fake: Behave, capsys: Capture) -> None:
    fake(unreadable=True, hangUp=True)
    assert commands.run(["call", "echo", json.dumps({"text": "x" * 3_000_000})]) == 1
    assert capsys.readouterr().err == "craftd: ParseError (-32700): nested too deeply\n"


def test_a_named_workspace_becomes_a_member_and_a_folder_gets_its_full_name(
    fake: Behave, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands.run(["call", "echo", "-w", "ws_7f"])
    commands.run(["call", "echo", "-w", "./notes"])
    seen = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert seen == [{"workspace": "ws_7f"}, {"workspace": f"{tmp_path.resolve()}/notes"}]


def test_a_lone_surrogate_is_printed_as_its_escape(fake: Behave, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert commands.run(["call", "echo", '{"text": "\\ud800 é"}']) == 0
    printed = capsysbinary.readouterr().out
    assert printed == b'{"text": "\\ud800 \xc3\xa9"}\n'
    assert json.loads(printed) == {"text": "\ud800 é"}


def test_an_error_is_named_on_standard_error(fake: Behave, capsys: Capture) -> None:
    assert commands.run(["call", "nouns/verb"]) == 1
    assert capsys.readouterr() == ("", "craftd: MethodNotFound (-32601): no method nouns/verb\n")


def test_a_working_directory_that_is_gone_is_no_hindrance(
    fake: Behave, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert commands.run(["call", "echo", '{"n": 1}']) == 0
    assert capsys.readouterr().out == '{"n": 1}\n'


def test_a_daemon_that_cannot_start_is_an_error_like_any_other(fake: Behave, capsys: Capture) -> None:
    fake(fail=1)
    assert commands.run(["call", "echo"]) == 1
    assert capsys.readouterr().err.startswith("craftd: Unavailable (1014): the daemon did not start (exit 1)")


@pytest.mark.parametrize("params", ["{", "[]", "1", '{"n": NaN}', "{'a': 1}"])
def test_params_that_are_no_object_are_refused_before_anything_starts(
    places: Places, fake: Behave, capsys: Capture, params: str
) -> None:
    assert commands.run(["call", "echo", params]) == 2
    assert "params" in capsys.readouterr().err
    assert starts(places) == []


def test_status_and_stop_start_no_daemon(places: Places, fake: Behave, capsys: Capture) -> None:
    assert commands.run(["status"]) == 1
    assert commands.run(["status", "--json"]) == 1
    assert commands.run(["stop"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == third == f"no daemon is running for {places.config}"
    assert json.loads(second) == {"running": False, "configDir": places.config}
    assert starts(places) == []


def test_stop_ends_even_a_daemon_of_another_major_and_restart_starts_ours(
    places: Places, fake: Behave, capsys: Capture
) -> None:
    fake(lateLock=0.2, hello={"protocol": "9.0", "version": "9.0"})
    old = launch.start(places)
    while (link := launch.greet(places, "a test")) is None:
        pass
    link.close()
    fake()
    assert commands.run(["restart"]) == 0
    assert len(starts(places)) == 2
    assert commands.run(["stop"]) == 0
    new = starts(places)[1]
    assert new != old
    assert capsys.readouterr().out == f"running (pid {new}, version {VERSION})\nstopped (pid {new})\n"


def test_the_reader_of_a_pipe_may_stop_reading(places: Places, fake: Behave) -> None:
    script = f"import sys; from craftd.client import launch; launch.COMMAND = ({str(FAKE)!r},)\n"
    script += "from craftd.cli import commands; sys.exit(commands.run(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", script, "call", "echo", json.dumps({"text": "x" * 100_000})],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("redirection", "told"), [(">/dev/full", "craftd: No space left on device\n"), (">&-", ""), (">&- 2>&-", "")]
)
def test_standard_output_that_takes_nothing_is_no_traceback(redirection: str, told: str) -> None:
    command = f"exec {sys.executable} -m craftd schema {redirection}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.stderr == told
    assert (ended.returncode == 0) == (not told)


def test_a_log_that_cannot_be_read_is_named(places: Places, capsys: Capture) -> None:
    Path(places.folder).write_text("no folder")
    assert commands.run(["logs"]) == 1
    assert capsys.readouterr().err == f"craftd: {places.log}: Not a directory\n"


def test_a_workspace_that_is_not_registered_is_told_with_what_helps(fake: Behave, capsys: Capture) -> None:
    gone = {"code": 1001, "message": "there is no workspaces/a\x1b[31m",
            "data": {"code": "NotFound", "resource": {"noun": "workspaces", "id": "a"}}}  # fmt: skip
    fake(errors={"sessions/list": gone})
    assert commands.run(["ls", "-w", "a"]) == 1
    told = capsys.readouterr().err
    assert "craftd workspaces add FOLDER" in told
    assert "\x1b" not in told


def test_help_of_a_method_comes_from_the_registry(capsys: Capture) -> None:
    assert commands.run(["call", "messages/append", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Append messages in one commit" in shown
    assert "expectedTail" in shown
    assert commands.run(["call", "--help"]) == 0
    assert "messages/append" in capsys.readouterr().out


def test_methods_are_completed(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("_CRAFTD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "craftd call messages/a")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        commands.run([])
    assert capsys.readouterr().out == "plain,messages/append\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_completion_for_each_shell(capsys: Capture, shell: str) -> None:
    assert commands.run(["completion", shell]) == 0
    assert "_CRAFTD_COMPLETE" in capsys.readouterr().out


def test_the_log_is_printed_from_its_end(places: Places, capsys: Capture) -> None:
    assert commands.run(["logs"]) == 1
    Path(places.folder).mkdir()
    Path(places.log).write_text("one\ntwo\nthree\n")
    assert commands.run(["logs", "-n", "2"]) == 0
    assert capsys.readouterr().out == "two\nthree\n"


def test_text_of_others_cannot_steer_the_terminal(capsys: Capture) -> None:
    text.say("\x1b]0;title\x07 and \x9b2J but\ttabs stay")
    assert capsys.readouterr().out == "\ufffd]0;title\ufffd and \ufffd2J but\ttabs stay\n"
    text.emit({"title": "\x1b and \x9b2J é"})
    assert capsys.readouterr().out == '{"title": "\\u001b and \\u009b2J é"}\n'


def test_a_table_is_tabs_when_it_is_piped(capsys: Capture) -> None:
    text.table(("ID", "NAME"), [("a", "two\nlines"), ("b", "")])
    assert capsys.readouterr().out == "a\ttwo lines\nb\t\n"


def test_a_table_fits_the_window_of_a_terminal(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "12")
    text.table(("ID", "NAME"), [("a", "日本語日本語"), ("bbb", "short")])
    assert capsys.readouterr().out.splitlines() == ["ID   NAME", "a    日本語…", "bbb  short"]
