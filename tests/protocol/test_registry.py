from __future__ import annotations

import subprocess
import sys

import pytest
from attrs import frozen

from craftd.errors import InvalidParams
from craftd.model.noun import Noun
from craftd.protocol import contract
from craftd.protocol.codec import structure
from craftd.protocol.registry import Registry

NOUNS = {
    noun.name: noun
    for noun in (
        Noun(name="labels"),
        Noun(name="messages", verbs=frozenset({"list", "get"}), parents=("session",)),
        Noun(name="annotations", verbs=frozenset({"create"}), parents=("session", "message")),
        Noun(name="connections", scope="global"),
    )
}


def derived() -> Registry:
    registry = Registry()
    contract.derive(NOUNS, registry)
    return registry


def test_a_row_is_enough_to_get_the_methods_and_notifications_of_a_noun() -> None:
    registry = derived()
    assert [name for name in registry.methods if name.startswith("labels/")] == [
        "labels/list", "labels/get", "labels/create", "labels/update", "labels/delete",
    ]  # fmt: skip
    assert [name for name in registry.notifications if name.startswith("labels/")] == [
        "labels/didCreate", "labels/didChange", "labels/didDelete",
    ]  # fmt: skip
    row = registry.methods["labels/update"]
    assert (row.noun, row.verb, row.right, row.mutates, row.scope) == ("labels", "update", "write", True, "workspace")
    assert row.params.__name__ == "UpdateLabel"
    assert registry.methods["connections/list"].scope == "global"
    assert not registry.methods["labels/list"].mutates


def test_only_the_verbs_of_a_noun_exist() -> None:
    registry = derived()
    assert [name for name in registry.methods if name.startswith("messages/")] == ["messages/list", "messages/get"]
    assert [name for name in registry.notifications if name.startswith("annotations/")] == ["annotations/didCreate"]


def test_parents_are_required_members() -> None:
    row = derived().methods["annotations/create"]
    params = structure(row.params, {"session": "s", "message": "m", "value": {}})
    assert (params.session, params.message) == ("s", "m")
    assert isinstance(params, contract.Create)
    with pytest.raises(InvalidParams) as refused:
        structure(row.params, {"session": "s", "value": {}})
    assert [issue.path for issue in refused.value.issues] == ["message"]


def test_what_is_written_out_is_not_derived() -> None:
    registry = Registry()

    @registry.method("labels/get", result=contract.Got, right="read")
    @frozen(kw_only=True)
    class GetLabel(contract.Get):
        depth: int | None = None

    contract.derive(NOUNS, registry)
    assert registry.methods["labels/get"].params is GetLabel
    assert "labels/list" in registry.methods


@pytest.mark.parametrize("name", ["labels", "Labels/get", "labels/Get", "labels/get/all", "$/get"])
def test_a_name_is_noun_and_verb(name: str) -> None:
    with pytest.raises(ValueError, match="not <noun>/<verb>"):
        Registry().method(name, result=None, right="read")(contract.Get)


def test_a_name_is_given_once() -> None:
    registry = derived()
    with pytest.raises(ValueError, match="there already"):
        registry.method("labels/get", result=None, right="read")(contract.Get)


@pytest.mark.parametrize("module", ["craftd.protocol.registry", "craftd.protocol.methods", "craftd.protocol.generate"])
def test_the_contract_does_not_import_the_language_server_libraries(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'pygls', 'lsprotocol', 'asyncio'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_framing_is_importable_without_any_library() -> None:
    code = "import sys, craftd.protocol.framing; print(sorted({'attr', 'cattrs', 'orjson'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
