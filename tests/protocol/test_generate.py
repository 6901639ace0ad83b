from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import pytest
from attrs import frozen

from craftd.model.noun import Noun
from craftd.model.records import Item, Record
from craftd.protocol import contract, generate
from craftd.protocol.codec import Raw
from craftd.protocol.registry import Registry


@frozen(kw_only=True)
class Inner:
    """Inner part."""

    at: int


@frozen(kw_only=True)
class Params(contract.Ref):
    """Do it.

    At length.
    """

    name_of: str
    """What it is called."""
    many: tuple[Inner, ...] = ()
    mode: Literal["fast", "slow"] = "fast"
    value: Any = None
    counts: dict[str, int] | None = None
    topics: tuple[str, ...] | Literal["*"] | None = None
    item: Item | Raw | Record | None = None


def registry() -> Registry:
    registry = Registry()
    registry.method("toys/do", result=Inner, right="write")(Params)
    registry.method("toys/forget", result=None, right="admin", scope="global")(contract.Ref)
    registry.notification("toys/didHappen")(Inner)
    contract.derive({"toys": Noun(name="toys", verbs=frozenset({"list", "create"}))}, registry)
    return registry


def test_members_become_params_with_types_defaults_and_words() -> None:
    document = generate.openrpc(registry())
    (method,) = [method for method in document["methods"] if method["name"] == "toys/do"]
    params = {param["name"]: (param["required"], param["schema"]) for param in method["params"]}
    assert params["nameOf"] == (True, {"type": "string", "description": "What it is called."})
    assert params["many"] == (False, {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}})
    assert params["mode"] == (False, {"type": "string", "enum": ["fast", "slow"], "default": "fast"})
    assert params["value"] == (False, {})
    assert params["counts"] == (False, {"type": "object", "additionalProperties": {"type": "integer"}})
    anything = {"type": "string", "enum": ["*"]}
    assert params["topics"] == (False, {"anyOf": [{"type": "array", "items": {"type": "string"}}, anything]})
    assert params["item"] == (False, {"$ref": "#/components/schemas/Item"})
    assert params["workspace"][1]["description"].startswith("Registry id")
    assert (method["summary"], method["result"]["schema"]) == ("Do it.", {"$ref": "#/components/schemas/Inner"})
    assert (method["x-right"], method["x-mutates"], method["x-scope"]) == ("write", False, "workspace")


def test_a_method_of_the_shared_configuration_takes_no_workspace() -> None:
    (method,) = [m for m in generate.openrpc(registry())["methods"] if m["name"] == "toys/forget"]
    assert (method["params"], method["result"]["schema"]) == ([], {"type": "null"})


def test_every_reference_leads_somewhere_and_the_document_is_json() -> None:
    document = generate.openrpc(registry())
    text = json.dumps(document)
    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names <= set(document["components"]["schemas"])
    assert "Welcome" in names
    assert document["components"]["errors"]["VersionConflict"] == {"code": 1003, "message": "VersionConflict"}
    assert [n["name"] for n in document["x-notifications"]] == ["toys/didCreate", "toys/didHappen"]


def test_tables_are_made_anew_between_their_marks_and_nothing_else_changes() -> None:
    text = "before\n<!-- generated: methods -->\nold\n<!-- end -->\nafter | all\n"
    filled = generate.fill(text, registry())
    assert filled.startswith("before\n<!-- generated: methods -->\n| Method |")
    assert filled.endswith("<!-- end -->\nafter | all\n")
    assert "old" not in filled
    assert (
        "| `toys/do` | nameOf, workspace?, many?, mode?, value?, counts?, topics?, item? | {at} | write | Do it. |"
        in filled
    )
    assert generate.fill(filled, registry()) == filled


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(KeyError):
        generate.fill("<!-- generated: tea -->\n<!-- end -->", registry())


def test_a_method_and_a_notification_of_every_kind_are_in_the_tables() -> None:
    tables = {name: table(registry()) for name, table in generate.TABLES.items()}
    assert "| `toys/list` | workspace?, filter?" in tables["methods"]
    assert "| `toys/didHappen` | at | Inner part. |" in tables["notifications"]
    assert "| 1003 | `VersionConflict` | yes |" in tables["errors"]


def test_the_page_is_written_once_and_checked_without_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "protocol.md"
    page.write_text("# P\n<!-- generated: errors -->\n<!-- end -->\n")
    assert generate.main(["--check"]) == 1
    assert "VersionConflict" not in page.read_text()
    assert generate.main([]) == 0
    assert "VersionConflict" in page.read_text()
    assert generate.main(["--check"]) == 0
