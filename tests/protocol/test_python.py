"""The typed calls of `craftd.client`, as text and for a type checker."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import frozen

from craftd.model.noun import Noun
from craftd.model.records import Record
from craftd.protocol import contract, generate, python
from craftd.protocol.registry import Registry

USE = """
from __future__ import annotations
from craftd.client.calls import Calls
from craftd.client.errors import VersionConflict
from craftd.client.shapes import Notification

async def use(client: Calls, event: Notification) -> None:
    page = await client.sessions.list(workspace="notes", filter={"state": "inbox"}, limit=5)
    async for item in client.sessions.iterate(fields=["name"]):
        reveal_type(item["version"])
    try:
        done = await client.sessions.update(id="s", patch={"set": {}}, expected_version=page["items"][0]["version"])
        reveal_type(done["changed"])
    except VersionConflict as failure:
        reveal_type(failure.current)
    if event["method"] == "messages/didAppend":
        reveal_type(event["params"]["count"])
"""

MISTAKES = {
    'await client.sessions.update(id="s", patch={}, expectedVersion="1")': "Unexpected keyword argument",
    "await client.sessions.get(id=5)": "incompatible type",
    "await client.sessions.get()": "Missing named argument",
    "await client.sessions.lsit()": "has no attribute",
    '(await client.sessions.get(id="s"))["itme"]': "no key",
    "await client.messages.list(session='s', direction='sideways')": "incompatible type",
    "(await client.labels.list())['items'][0]['version'] + 1": "Unsupported operand",
}


@frozen(kw_only=True)
class Answer:
    """What came of it."""

    value: Record
    from_: int | None = None
    """Where it comes from."""


@frozen(kw_only=True)
class DoToy(contract.Mutation):
    """Do it.

    At once.
    """

    missing_ok: bool = False
    """No error."""


def document() -> dict[str, object]:
    registry = Registry()
    registry.method("toys/doTwice", result=Answer, right="write")(DoToy)
    registry.notification("toys/didHappen")(Answer)
    contract.derive({"toys": Noun(name="toys", verbs=frozenset({"list"}))}, registry)
    return generate.openrpc(registry)


def test_a_method_becomes_a_coroutine_with_the_words_of_the_registry() -> None:
    (toys,) = [
        node
        for node in ast.parse(python.calls(document())).body
        if isinstance(node, ast.ClassDef) and node.name == "ToysCalls"
    ]
    methods = {node.name: node for node in toys.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)}
    assert list(methods) == ["do_twice", "list", "iterate"]
    do = methods["do_twice"]
    assert [argument.arg for argument in do.args.kwonlyargs] == ["workspace", "key", "missing_ok"]
    assert (ast.get_docstring(do) or "").startswith("Do it.\n\nAt once.\n\nworkspace: ")
    assert "missing_ok: No error." in (ast.get_docstring(do) or "")
    assert "'missingOk': missing_ok" in ast.unparse(do)
    assert "cursor" not in [argument.arg for argument in methods["iterate"].args.kwonlyargs]


def test_what_takes_a_key_and_what_only_reads_is_known() -> None:
    scope: dict[str, object] = {}
    exec(python.tables(document()), scope)
    assert scope["KEYED"] == {"toys/doTwice"}
    assert scope["READS"] == {"toys/list"}


def test_what_is_no_name_in_python_gets_another() -> None:
    assert python.snake("expectedVersion") == "expected_version"
    assert python.snake("from") == "from_"


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says, by line, about `USE` and then every mistake on a line of its own."""
    lines = [*USE.strip().split("\n"), *(f"    {mistake}" for mistake in MISTAKES)]
    folder = tmp_path_factory.mktemp("typed")
    file = folder / "use.py"
    file.write_text("\n".join(lines) + "\n")
    options = ("--strict", "--hide-error-context", "--config-file=", f"--cache-dir={folder / 'cache'}")
    command = [sys.executable, "-m", "mypy", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    said: dict[int, str] = {}
    for line in done.stdout.split("\n"):
        if line.startswith(str(file)):
            _, number, text = line.split(":", 2)
            said[int(number)] = said.get(int(number), "") + text
    assert said, done.stdout + done.stderr
    return said


def test_results_are_typed(verdict: dict[int, str]) -> None:
    lines = USE.strip().split("\n")
    revealed = {lines[number - 1].strip(): said for number, said in verdict.items() if number <= len(lines)}
    assert {line: said.replace("builtins.", "").split('"')[1] for line, said in revealed.items()} == {
        'reveal_type(item["version"])': "str",
        'reveal_type(done["changed"])': "bool",
        "reveal_type(failure.current)": "dict[str, Any]",
        'reveal_type(event["params"]["count"])': "int",
    }


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen_by_the_type_checker(verdict: dict[int, str], mistake: str) -> None:
    number = len(USE.strip().split("\n")) + 1 + [*MISTAKES].index(mistake)
    assert MISTAKES[mistake] in verdict.get(number, "nothing")
