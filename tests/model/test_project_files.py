"""Memory, assets and the prompt block of projects, compared with all that is recorded."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.assets import media_type, numbered, sanitised, size_text
from craftd.model.json_text import utf16_length
from craftd.model.memory import limited, tokens, with_first
from craftd.model.project_context import INSTRUCTIONS, Asset, as_json, block

GOLDEN = Path(__file__).parents[1] / "golden" / "projects"
CASES = json.loads((GOLDEN / "cases.json").read_bytes())
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())


def joined(case: dict[str, Any]) -> str:
    if "bytesHex" in case:
        return bytes.fromhex(case["bytesHex"]).decode("utf-8", "replace")
    return "".join(text * times for text, times in case["parts"] or ())


def digest(text: str) -> str:
    """U+FFFD stands for half a pair, which the app keeps and we drop."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("case", CASES["tokenEstimate"], ids=lambda case: case["name"])
def test_tokens_are_estimated_as_in_the_app(case: dict[str, Any]) -> None:
    assert tokens(joined(case)) == case["densityAware"]


@pytest.mark.parametrize("case", CASES["memory"], ids=lambda case: case["name"])
def test_the_head_of_a_memory_is_kept(case: dict[str, Any]) -> None:
    text = joined(case)
    kept = limited(text, case["maxTokens"])
    if "resultSha256" not in case:
        assert kept.text == (text if case["result"] == "VERBATIM" else case["result"])
        return
    assert kept.text is not None
    if digest(kept.text) != case["resultSha256"]:
        at = kept.text.index("\n\n…")
        assert digest(f"{kept.text[:at]}\ufffd{kept.text[at:]}") == case["resultSha256"]
        assert "surrogate" in case["name"] or "emoji" in case["name"]
    assert kept.cut == utf16_length(kept.text[: kept.text.rindex("\n\n…")])


@pytest.mark.parametrize(
    ("text", "whole"),
    [("", "new"), ("old\n", "new\nold\n"), ("\ufeffold", "\ufeffnew\nold"), ("\r\nold", "new\n\r\nold")],
)
def test_what_is_new_comes_first(text: str, whole: str) -> None:
    assert with_first(text, "new") == whole
    assert with_first(text, "new\n").count("new\n") == 1


@pytest.mark.parametrize("case", CASES["sanitizeAssetFilename"], ids=lambda case: repr(case["input"])[:40])
def test_a_name_becomes_one_a_file_can_have(case: dict[str, Any]) -> None:
    name = sanitised(case["input"], lambda n: 10)
    if "pattern" in case:
        assert name == "asset_aaaaaaaa"
    else:
        assert name == case["output"].encode()[:255].decode("utf-8", "ignore")


@given(st.text(max_size=400))
def test_any_name_becomes_one(name: str) -> None:
    for number in (1, 2, 10):
        found = numbered(sanitised(name, lambda n: 0), number)
        assert 0 < len(found.encode()) <= 255
        assert "/" not in found
        assert found[0] != "."


@pytest.mark.parametrize(
    ("name", "number", "taken"),
    [("plan.md", 2, "plan-2.md"), ("plan.tar.gz", 2, "plan.tar-2.gz"), ("Makefile", 3, "Makefile-3"), ("a", 1, "a")],
)
def test_a_taken_name_gets_a_number(name: str, number: int, taken: str) -> None:
    assert numbered(name, number) == taken


def test_types_and_sizes_are_the_apps() -> None:
    assert {name: media_type(name) for name in CASES["mime"]} == CASES["mime"]
    assert [size_text(case["bytes"]) for case in CASES["formatBytes"]] == [
        case["text"] for case in CASES["formatBytes"]
    ]


@pytest.mark.parametrize("slug", EXPECTED["projects"])
def test_a_session_is_told_what_it_is_told_in_the_app(slug: str) -> None:
    expected = EXPECTED["projects"][slug]
    root = "${ROOT}/projects/" + slug
    noted = (GOLDEN / "workspace/projects" / slug / "MEMORY.md").read_bytes().decode("utf-8", "replace")
    kept = limited(noted)
    assert tokens(noted) == expected["memory"]["fileTokens"]
    assert digest(kept.text or "") == expected["memory"]["resultSha256"]
    assert (kept.cut is not None) == expected["memory"]["truncated"]
    listed = [Asset(one["filename"], one["sizeBytes"], one["uploadedAtMs"]) for one in expected["assets"]]
    assert [one.mime_type for one in listed] == [one["mimeType"] for one in expected["assets"]]
    lines = block(expected["load"]["config"], root, listed, kept.text)
    assert "\n".join(lines) == as_json(expected["load"]["config"], root, listed, noted)["text"]
    shown = ["<<instructions>>" if line == INSTRUCTIONS else line for line in lines]
    if isinstance(expected["promptBlock"], list):
        assert shown == expected["promptBlock"]
    else:
        assert len(shown) == expected["promptBlock"]["lines"]
        assert digest("\n".join(shown)) == expected["promptBlock"]["sha256WithoutInstructions"]


@given(st.text(alphabet="</ project_memorycntxPROJECT>\x00\x1b\n&\"'", max_size=120))
def test_nothing_that_a_project_holds_ends_its_block(text: str) -> None:
    lines = block({"name": text, "description": text, "details": text}, "/w", [Asset(text or "a", 1, 1)], text)
    whole = "\n".join(lines)
    assert whole.count("</project_context>") == 1
    assert whole.count("</project_memory>") == 1
    assert whole.count("</project_assets>") == 1
