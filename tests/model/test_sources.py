"""Which sources can be used, compared with what the app says of every recorded one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.sources import (
    authentication,
    guide_sections,
    info,
    needs_authentication,
    sign_in,
    to_enable,
    why_unusable,
)

GOLDEN = Path(__file__).parents[1] / "golden/sources"
RECORDED = [
    (tree, one["folder"], one)
    for tree, folders in json.loads((GOLDEN / "expected.json").read_bytes())["groups"].items()
    for one in folders
    if one.get("usable") is not None
]

ANOTHER_BLOCK = {"stdio-env-secret", "stdio-with-url", "two-blocks"}
"""The app looks for an authType in blocks that are not of the source's type, and asks a stdio server for one."""


@pytest.mark.parametrize(("tree", "folder", "expected"), RECORDED)
def test_a_source_is_usable_as_in_the_app(tree: str, folder: str, expected: dict[str, Any]) -> None:
    config = json.loads((GOLDEN / tree / "sources" / folder / "config.json").read_text("utf-8-sig"))
    assert (why_unusable(config) is None) == (expected["usable"] or folder in ANOTHER_BLOCK)
    if config.get("isAuthenticated") is not True and folder != "many-errors":  # an authType that does not exist
        assert needs_authentication(config) == expected["needsAuthentication"]


def named(case: dict[str, Any]) -> str:
    return f"{case['slug']}-{case['isAuthenticated']}-{case['credential']}"


@pytest.mark.parametrize("case", json.loads((GOLDEN / "build-matrix.json").read_bytes())["cases"], ids=named)
def test_the_app_builds_a_server_for_what_can_be_used(case: dict[str, Any]) -> None:
    config = json.loads((GOLDEN / "workspace/sources" / case["slug"] / "config.json").read_text("utf-8-sig"))
    config |= {"enabled": True, "isAuthenticated": case["isAuthenticated"]}
    usable = why_unusable(config) is None
    without, built = ((case[how]["mcp"] or case[how]["api"]) for how in ("withoutGetters", "withGetters"))
    assert usable or not (built or without)
    if config["type"] != "local" and case["credential"] == "present":
        assert built == usable
    wanted = config["type"] == "mcp" and authentication(config) is not None and usable
    wanted = wanted and case["credential"] == "none"
    assert case["withGetters"]["error"] == ("Authentication required" if wanted else None)


REQUIRED = json.loads((GOLDEN.parent / "skills/required-sources.json").read_bytes())["cases"]


@pytest.mark.parametrize("case", REQUIRED, ids=lambda case: "-".join(case["required"]))
def test_what_a_skill_requires_is_switched_on_where_it_can_be_used(case: dict[str, Any]) -> None:
    folders = (GOLDEN / "workspace/sources").iterdir()
    sources = {folder.name: json.loads((folder / "config.json").read_text("utf-8-sig")) for folder in folders}
    chosen, skipped = to_enable(case["required"], case["enabledBefore"], sources)
    assert (chosen, list(skipped)) == (case["toEnable"], list(dict.fromkeys(case["skipped"])))
    assert [*case["enabledBefore"], *chosen] == case["enabledAfter"]
    assert all(skipped[slug] == "missing" for slug in skipped if slug not in sources)


@pytest.mark.parametrize(("tree", "folder", "expected"), RECORDED)
def test_what_is_signed_in_to_and_where_the_secret_lies_is_as_in_the_app(
    tree: str, folder: str, expected: dict[str, Any]
) -> None:
    config = json.loads((GOLDEN / tree / "sources" / folder / "config.json").read_text("utf-8-sig"))
    if folder not in ANOTHER_BLOCK | {"google-none"} and tree != "invalid":
        assert sign_in(config) == (expected["oauthProvider"] if expected["oauth"] else None)
        types = info(config)["credentials"]
        assert types[:1] == ([expected["credentialKey"].partition("::")[0]] if types else [])
        assert bool(types) or not expected["needsAuthentication"]


GUIDES = json.loads((GOLDEN / "guides.json").read_bytes())
OTHERWISE = {
    "last-section-without-z-is-lost": {"scope": "alpha", "context": "no such letter here"},
    "last-section-cut-at-z": {"scope": "alpha", "context": "before zulu after"},
    "middle-section-cut-at-z": {"scope": "first Zebra second", "context": "x"},
    "cache-with-z-in-json": {"cache": {"size": 1}},
    "crlf": {"scope": "a"},
}
"""There a section ends at the letter z, and lines only at \\n."""


@pytest.mark.parametrize("case", GUIDES, ids=lambda case: case["name"])
def test_the_sections_of_a_guide_are_found(case: dict[str, Any]) -> None:
    assert guide_sections(case["raw"]) == OTHERWISE.get(case["name"], case["parsed"])
