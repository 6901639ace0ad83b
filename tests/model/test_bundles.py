"""Bundles are judged whole before anything of them is used, and hold no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model import bundles
from craftd.model.bundles import Automation
from craftd.store.gather import gather
from tests.strategies import json_values, texts

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "sources/bundle/expected.json").read_bytes())["validation"]
REFUSED = {
    "skill slug traversal", "skill slug absolute", "skill slug upper", "skill slug dot", "file hidden",
    "file trailing slash", "file dot segment", "file bad base64", "file name nul", "source config.json among files",
    "source slug traversal",
}  # fmt: skip
"""What the app takes or finds out too late: the table in ARCHITECTURE.md."""
AURORA = json.loads((GOLDEN / "workspace/home/workspaces/aurora-lab/automations.json").read_bytes())
TABLES = json.loads((GOLDEN / "workspace/expected.json").read_bytes())["tables"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_recorded_bundle_is_valid_to_us_where_it_is_to_the_app(case: Any) -> None:
    _, issues = bundles.read(case["bundle"])
    assert len(issues) == (1 if case["name"] in REFUSED else case["errorCount"])


@pytest.mark.parametrize(("path", "size", "wrong"), TABLES["bundleFile"])
def test_a_recorded_file_is_fit_for_us_where_it_is_for_the_app(path: str, size: int, wrong: str | None) -> None:
    files = [
        {"relativePath": "SKILL.md", "contentBase64": "eA==", "size": 1},
        {"relativePath": path, "contentBase64": "YWJj", "size": size},
    ]
    value = {"version": 1, "exportedAt": 1, "resources": {"skills": [{"slug": "a", "files": files}]}}
    assert bool(bundles.read(value)[1]) == (wrong is not None)


def test_the_recorded_bundle_with_a_way_out_is_refused_for_all_that_is_wrong_with_it() -> None:
    value = json.loads((GOLDEN / "workspace/invalid/bundle-path-traversal.json").read_bytes())
    assert {(issue.path.removeprefix("resources."), issue.code) for issue in bundles.read(value)[1]} == {
        ("skills.0.slug", "bad-slug"),  # to the app it is one
        ("skills.0.files.1.relativePath", "bad-path"),
        ("automations.0.event", "unknown-event"),
        ("automations.0.matcher.actions", "no-actions"),
    }


@pytest.mark.parametrize(
    "path",
    ["a/../b", "/etc/passwd", "..", "a/b/../../c", ".git/config", "a/.ssh/id", "a\\..\\b", "a\nb", "a\0", "a//b", "a/",
     "x" * 256, "ä" * 128, "/".join("a" * 17), "\ud800", "", None, 7, ["a"]],
)  # fmt: skip
def test_no_path_leads_out_or_hides(path: Any) -> None:
    assert bundles.wrong_path(path) is not None


def test_a_file_cannot_be_a_folder_too() -> None:
    def issues(*paths: str) -> list[str | None]:
        files = [{"relativePath": path, "contentBase64": "", "size": 0} for path in ("SKILL.md", *paths)]
        value = {"version": 1, "exportedAt": 1, "resources": {"skills": [{"slug": "a", "files": files}]}}
        return [issue.code for issue in bundles.read(value)[1]]

    assert issues("a", "a/b") == issues("a/b", "a") == issues("a/b/c", "a/b") == ["duplicate-file"]
    assert issues("a/b", "a/c", "ab") == []


def test_there_are_not_more_files_than_anybody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [{"relativePath": path, "contentBase64": "", "size": 0} for path in ("SKILL.md", "a", "b")]
    skills = [{"slug": slug, "files": files} for slug in ("one", "two")]
    value = {"version": 1, "exportedAt": 1, "resources": {"skills": skills}}
    monkeypatch.setattr(bundles, "MOST_FILES", 6)
    assert bundles.read(value)[1] == []
    monkeypatch.setattr(bundles, "MOST_FILES", 5)
    assert [issue.code for issue in bundles.read(value)[1]] == ["too-many-files"]


def test_what_leaves_has_no_secret_in_any_place_made_for_one() -> None:
    api = {
        "baseUrl": "https://me:hush@x.test/a",
        "authType": "oauth",
        "defaultHeaders": {"X-Key": "hush"},
        "googleOAuthClientSecret": "hush",
        "oauth": {"clientId": "c", "clientSecret": "hush", "tokenUrl": "https://hush@x.test/t"},
        "testEndpoint": {"method": "GET", "path": "/", "headers": {"X": "hush"}},
        "renewEndpoint": {"path": "/r", "headers": {"X": "hush"}, "body": {"refresh": "hush"}},
    }
    args = ["run", "--token", "hush", "--api-key=hush", "--verbose", "x", "PASSWORD=hush"]
    mcp = {"env": {"A": "hush"}, "headers": {"A": "hush"}, "args": args, "authType": "none"}
    config = {"type": "api", "api": api, "mcp": mcp, "isAuthenticated": True, "lastTestedAt": 1, "x-own": 1}
    kept, stripped = bundles.source({**config, "connectionError": "hush"})
    assert "hush" not in json.dumps(kept)
    assert kept["mcp"] == {
        "args": ["run", "--token", "", "--api-key=", "--verbose", "x", "PASSWORD="],
        "authType": "none",
    }
    assert (kept["isAuthenticated"], kept["connectionStatus"], kept["x-own"]) == (False, "needs_auth", 1)
    assert kept["api"]["baseUrl"] == "https://x.test/a"
    assert len(stripped) == 11
    assert bundles.source(kept) == (kept, [])


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"api": {"oauth": {"extraParams": {"client_secret": "hush"}}}}, "api.oauth.extraParams.client_secret"),
        ({"x-own": [{"apiKey": "hush"}]}, "x-own.0.apiKey"),
        ({"mcp": {"url": "https://x.test/?a=1&api_key=hush#f"}}, "mcp.url"),
        ({"api": {"baseUrl": "https://hush@x.test"}}, "api.baseUrl"),
        ({"password": "hush"}, "password"),
    ],
)
def test_what_is_called_a_secret_stays_wherever_it_stands(config: Any, path: str) -> None:
    kept, stripped = bundles.source(config)
    assert stripped == [path]
    assert "hush" not in json.dumps(kept)


def test_what_only_speaks_of_secrets_leaves() -> None:
    api = {
        "authType": "bearer",
        "oauth": {"tokenUrl": "https://x.test/t?x=1", "clientId": "c"},
        "renewEndpoint": {"path": "/r", "tokenField": "access_token"},
        "headerNames": ["X-Token"],
    }
    config = {
        "type": "api",
        "api": api,
        "x-own": {"token": "${TOKEN}", "authorization": True},
        "isAuthenticated": False,
    }
    assert bundles.source(config) == ({**config, "connectionStatus": "needs_auth"}, [])


def test_a_recorded_source_leaves_with_its_files() -> None:
    contents, unfit = gather(GOLDEN / "workspace/home/workspaces/aurora-lab/sources/tracker", 1 << 20)
    recorded = TABLES["exportAutomations"]["sources"]
    assert (sorted(contents.keys() - {"config.json"}), unfit) == (recorded[0][1], [])


def test_automations_leave_with_their_ids_and_without_what_signs_them_in() -> None:
    them = list(bundles.automations_of(AURORA))
    assert [[one.id, one.event] for one in them] == TABLES["exportAutomations"]["ids"]
    left = [path for one in them for path in bundles.automation(one)[1]]
    assert len(left) == TABLES["exportAutomations"]["warnings"]
    headers = {"X-Api-Key": "hush", "X-Token": "${CRAFT_WH_TOKEN}", "Accept": "text/plain"}
    hook = {"type": "webhook", "url": "https://me:hush@x.test", "headers": headers, "auth": {"token": "hush"}}
    entry, stripped = bundles.automation(Automation("a", "FlagChange", {"name": "N", "actions": [hook, 7]}))
    assert entry["matcher"]["actions"][0]["headers"] == {"X-Token": "${CRAFT_WH_TOKEN}", "Accept": "text/plain"}
    assert stripped == ["actions.0.auth", "actions.0.headers.X-Api-Key", "actions.0.url"]
    assert "hush" not in json.dumps(entry)


@pytest.mark.parametrize("how", ["skip", "overwrite", "rename"])
def test_automations_are_merged_by_id(how: Any) -> None:
    old = {"version": 2, "x": 1, "automations": {"LabelAdd": [{"id": "a", "name": "old"}, {"name": "none"}]}}
    them = (Automation("a", "FlagChange", {"id": "a", "name": "new"}), Automation("b", "LabelAdd", {"id": "b"}))
    ids = iter(["a", "b", "c"])
    merged = bundles.merge(old, them, how, lambda: next(ids))
    added = {
        "skip": {"LabelAdd": [{"id": "a", "name": "old"}, {"name": "none"}, {"id": "b"}]},
        "overwrite": {"LabelAdd": [{"name": "none"}, {"id": "b"}], "FlagChange": [{"id": "a", "name": "new"}]},
        "rename": {
            "LabelAdd": [{"id": "a", "name": "old"}, {"name": "none"}, {"id": "b"}],
            "FlagChange": [{"id": "c", "name": "new"}],
        },
    }
    assert merged.value == {"version": 2, "x": 1, "automations": added[how]}
    assert merged.skipped == (("a",) if how == "skip" else ())
    assert old["automations"] == {"LabelAdd": [{"id": "a", "name": "old"}, {"name": "none"}]}


members = st.sampled_from(
    ["version", "exportedAt", "resources", "sources", "skills", "automations", "slug", "config", "files", "size", "id"]
)
values = st.recursive(
    st.one_of(json_values, texts, st.sampled_from(["a", "SKILL.md", "eA=="])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(members, inner, max_size=4)),
    max_leaves=20,
)


@given(st.one_of(values, st.dictionaries(st.sampled_from(["sources", "skills", "automations"]), values)))
def test_no_value_makes_reading_fail(value: Any) -> None:
    bundles.read(value)
    bundle, issues = bundles.read({"version": 1, "exportedAt": 1, "resources": value})
    for folder in () if issues else (*bundle.sources, *bundle.skills):
        assert all(bundles.wrong_path(path) is None for path in folder.files)


@given(values)
def test_no_value_makes_cleaning_fail(value: Any) -> None:
    if isinstance(value, dict):
        bundles.source(value)
    for one in bundles.automations_of({"automations": {"FlagChange": [value]}}):
        bundles.automation(one)
