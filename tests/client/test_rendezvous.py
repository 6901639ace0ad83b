from __future__ import annotations

import fcntl
import os
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Card, Places, Untrusted


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with a short name, as homes have: names of sockets are limited."""
    with tempfile.TemporaryDirectory(prefix="craftd-") as folder:
        home = Path(folder).resolve()
        monkeypatch.setenv("HOME", str(home))
        yield home


def test_without_a_word_the_configuration_is_the_apps(home: Path) -> None:
    assert rendezvous.find(environ={}).config == f"{home}/.craft-agent"
    assert rendezvous.find(environ={"CRAFT_CONFIG_DIR": ""}).config == f"{home}/.craft-agent"


def test_the_variable_names_the_configuration_and_an_argument_beats_it(home: Path) -> None:
    environ = {"CRAFT_CONFIG_DIR": f"{home}/one"}
    assert rendezvous.find(environ=environ).config == f"{home}/one"
    assert rendezvous.find(f"{home}/two", environ).config == f"{home}/two"


def test_a_tilde_is_home_and_a_relative_name_lies_below_the_working_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert rendezvous.find("~/mine").config == f"{home}/mine"
    assert rendezvous.find("not/yet/there/../here").config == f"{home}/not/yet/here"


def test_two_spellings_of_one_folder_meet_in_one_daemon(home: Path) -> None:
    (home / "real").mkdir()
    (home / "link").symlink_to(home / "real")
    one, other = rendezvous.find(f"{home}/real"), rendezvous.find(f"{home}/link/.")
    assert one.config == other.config
    assert list(rendezvous.socket_folders(one)) == list(rendezvous.socket_folders(other))


def test_the_runtime_folder_comes_first_when_it_is_ours(home: Path) -> None:
    places = Places(str(home))
    first, *_ = rendezvous.socket_folders(places, {"XDG_RUNTIME_DIR": str(home)})
    assert Path(first).parent == home / "craftd"
    for bad in (f"{home}/missing", "relative", ""):
        assert not any(
            folder.startswith(f"{home}/missing") or not os.path.isabs(folder)
            for folder in rendezvous.socket_folders(places, {"XDG_RUNTIME_DIR": bad})
        )


def test_a_runtime_folder_too_deep_for_a_socket_name_is_passed_over(home: Path) -> None:
    deep = home / ("d" * 80)
    deep.mkdir()
    folders = list(rendezvous.socket_folders(Places(str(home)), {"XDG_RUNTIME_DIR": str(deep)}))
    assert folders
    assert all(len(f"{folder}/.s4194304") <= rendezvous.SOCKET_NAME_LIMIT for folder in folders)


@pytest.mark.parametrize(("outer", "inner"), [(0o755, 0o700), (0o700, 0o750), (0o700, 0o707)])
def test_a_socket_folder_open_to_others_is_refused(tmp_path: Path, outer: int, inner: int) -> None:
    folder = tmp_path / "craftd" / "h"
    folder.mkdir(parents=True)
    folder.chmod(inner)
    folder.parent.chmod(outer)
    with pytest.raises(Untrusted, match="open to other users"):
        rendezvous.check_private(str(folder))


def test_a_link_in_place_of_the_socket_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    rendezvous.check_private(str(tmp_path / "private"))
    with pytest.raises(Untrusted, match="not a folder"):
        rendezvous.check_private(str(tmp_path / "link"))


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    places = Places(str(tmp_path))
    os.mkdir(places.folder)
    Path(places.card).write_bytes(Card(12, "/run/sock", "9.8.7", "1.4").as_json())
    card = rendezvous.read_card(places)
    assert card is not None
    assert (card.pid, card.socket, card.version, card.protocol) == (12, "/run/sock", "9.8.7", "1.4")


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\xff", b"[]", b"{}", b'{"pid": 1, "socket": "/s", "version": "0"', b"null",
     b'{"pid": "1", "socket": "/s", "version": "0", "protocol": "1.0"}',
     b'{"pid": 1, "socket": "relative", "version": "0", "protocol": "1.0"}'],
)  # fmt: skip
def test_a_card_that_cannot_be_understood_is_no_card(tmp_path: Path, content: bytes | None) -> None:
    places = Places(str(tmp_path))
    os.mkdir(places.folder)
    if content is not None:
        Path(places.card).write_bytes(content)
    assert rendezvous.read_card(places) is None


def test_only_the_lock_says_that_a_daemon_lives(tmp_path: Path) -> None:
    places = Places(str(tmp_path))
    assert not rendezvous.is_held(places)
    os.mkdir(places.folder)
    with open(places.lock, "w") as lock:
        assert not rendezvous.is_held(places)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert rendezvous.is_held(places)
    assert not rendezvous.is_held(places)


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())["project"]
    assert project["version"] == rendezvous.VERSION
