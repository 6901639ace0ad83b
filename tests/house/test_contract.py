"""Methods and handlers are paired, names do not collide with LSP's, and what is generated is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import craftd.protocol.methods
import craftd.server.handlers  # noqa: F401 (registers every handler)
from craftd.errors import ERRORS
from craftd.model.nouns import NOUNS
from craftd.protocol.registry import METHODS, NOTIFICATIONS
from craftd.server.dispatch import HANDLERS

ROOT = Path(__file__).parents[2]


def test_every_method_has_a_handler() -> None:
    assert [name for name, row in METHODS.items() if HANDLERS.find(row) is None] == []


def test_no_name_is_lsps() -> None:
    from lsprotocol import types

    assert not (METHODS.keys() | NOTIFICATIONS.keys()) & set(types.METHOD_TO_TYPES)
    singular = {name.partition("/")[0] for name in types.METHOD_TO_TYPES if not name.startswith("$")}
    assert not {name.partition("/")[0] for name in METHODS} & singular


def test_every_verb_of_every_noun_is_a_method_that_notifies() -> None:
    told = {"create": "didCreate", "update": "didChange", "delete": "didDelete"}
    for noun in NOUNS.values():
        for verb in noun.verbs:
            assert f"{noun.name}/{verb}" in METHODS
            if verb in told:
                assert f"{noun.name}/{told[verb]}" in NOTIFICATIONS


def test_numbers_of_errors_are_unique() -> None:
    codes = [error.code for error in ERRORS.values()]
    assert len(codes) == len(set(codes))


def test_every_method_and_error_says_what_it_is() -> None:
    assert [name for name, row in METHODS.items() if not row.doc] == []
    assert [name for name, error in ERRORS.items() if not error.__doc__ or "Method generated" in error.__doc__] == []


def test_generated_tables_are_current() -> None:
    command = [sys.executable, "-m", "craftd.protocol.generate", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
