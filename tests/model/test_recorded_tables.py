"""Every table that was recorded of the app is compared somewhere, or says here why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model import portable, workspaces
from craftd.model.label_entries import Entry
from craftd.store.layout import SHELVES

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"


def load(path: str) -> Any:
    return json.loads((GOLDEN / path).read_bytes())


RECORDED = load("workspace/expected.json")
TABLES = RECORDED["tables"]
LATER = "automations are judged, and do not run yet"
UI = "what a program shows of it is its own affair"
EXECUTOR = "who runs an agent decides it"

NOT_COMPARED: dict[str, str] = {
    **dict.fromkeys(
        (
            "expandEnvVars",
            "expandEnv",
            "sanitizeForShell",
            "parsePromptReferences",
            "deriveAutomationName",
            "getMatchValue",
            "getMatchValueForSdkInput",
            "matcherMatches",
            "conditionDepth",
            "promptEnv",
            "webhookEnv",
            "tickEnv",
            "doubleExpansion",
            "sdkEnv",
            "redactUrl",
            "isTransientFailure",
            "expandWebhookAction",
            "expandWebhookActionQuote",
            "webhookRequests",
            "historyCompaction",
            "eventBusRate",
            "automationReload",
            "emitted",
            "executeAgentEvent",
            "pendingPrompts",
            "webhookResults",
            "webhookCalls",
        ),
        LATER,
    ),
    **dict.fromkeys(("formatDisplayValue", "labelDisplayName", "toggleLabelInList", "getters", "appTheme"), UI),
    **dict.fromkeys(("thinkingTokens", "modeState", "midStream", "otherModes"), EXECUTOR),
    "slugFromPath": "the name of the folder, whatever system it is from",
    "detectConfigFileType": "files are told apart by one table of all kinds, compared with every verdict",
    "effectiveConnectionForDisplay": "one answer to one question: see what holds for a session",
    "watcher": "another watcher",
    "validateSessionStatus": "a session keeps its status, also one that nobody defines any more",
    "serverTokens": "tokens are hashed, and none is chosen by a person",
    "registryEffects": "reading makes nothing; what is taken out keeps its files: tests/e2e/test_workspaces.py",
    "brokenRegistryAfterStart": "a list that cannot be read is never written over: tests/e2e/test_workspaces.py",
    "reference": "where the data is from",
    "addSamePathAgain": "the second entry is refused, and nothing renamed: tests/e2e/test_workspaces.py",
    "setActiveUnknown": "refused: tests/e2e/test_app_records.py",
    "addConnections": "taken slugs are refused: tests/e2e/test_app_records.py",
    "setDefaultConnection": "one that is not there is refused: tests/e2e/test_app_records.py",
    "setColorTheme": "a setting like others",
    "sessionIds": "names of what was recorded",
    "statusDeleteEffect": "sessions keep the id unless `moveTo` says otherwise: tests/e2e/test_definitions.py",
    "labelDeleteEffect": "tests/e2e/test_definitions.py",
    "validListed": "compared by folder: tests/store/test_recorded_folders.py",
    "invalidListed": "the same",
    "validSlugs": "the same",
    "invalidSlugs": "the same",
    "deletes": "no slug leads anywhere; a link goes as a link: tests/e2e/test_foreign_edits.py",
    "about": "where the data is from",
    "workspaceChecks": "compared by folder",
    "saveWithMismatchedSlug": "a second folder for one source: a defect",
    "marks": "tests/e2e/test_oauth.py, tests/model/test_source_tests.py",
    "loadProjectById": "tests/e2e/test_projects.py",
    "updateOfHandRenamedFolder": "a second folder for one project: a defect",
    **dict.fromkeys(
        ("getWorkspaces", "getActiveWorkspace", "byNameOrId", "getDefaultLlmConnection", "getDefaultThinkingLevel"),
        "the recorded home is served as it is stored: tests/e2e/test_app_records_recorded.py, test_recorded_home.py",
    ),
    **dict.fromkeys(
        ("loadConfigDefaults", "validateConfig", "validatePreferences", "toolIcons"),
        "nothing is wrong with the recorded home: tests/workspace/test_checking.py",
    ),
    "validateSessionLabels": "a session keeps its labels; new ones are judged: tests/model/test_label_entries.py",
    "saved": "files keep the order and form they have; what is new has the app's: tests/store/test_folders.py",
    "saveKeepsUnknown": "tests/store/test_folders.py",
    "updateKeepsUnknownKeys": "tests/store/test_folders.py",
    "kdf": "the recorded files open: tests/store/test_vault.py",
    "writeModes": "tests/e2e/test_credentials.py",
    "listFilters": "filters are those of all lists",
    "modeAfterWriteToA0644File": "always 0600",
}


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("workspace/expected.json", ()), ("workspace/expected.json", ("tables",)),
        ("workspace/expected.json", ("operations",)), ("workspace/expected.json", ("global",)),
        ("skills/expected.json", ()), ("sources/expected.json", ()), ("projects/cases.json", ()),
        ("projects/edge-expected.json", ()), ("credentials/expected.json", ()), ("credentials/store-rules.json", ()),
    ],
)  # fmt: skip
def test_nothing_that_was_recorded_is_forgotten(path: str, members: tuple[str, ...]) -> None:
    recorded = load(path)
    for member in members:
        recorded = recorded[member]
    compared = "".join(file.read_text() for file in TESTS.rglob("test_*.py") if file.name != Path(__file__).name)
    here = Path(__file__).read_text().partition("# Compared here")[2]
    for name in recorded:
        assert (f'"{name}"' in compared + here) != (name in NOT_COMPARED), name


# Compared here


@pytest.mark.parametrize(("name", "slug"), TABLES["workspaceSlug"])
def test_a_workspace_gets_the_folder_name_of_the_app(name: str, slug: str) -> None:
    assert workspaces.choose_slug(name) == slug


@pytest.mark.parametrize(("path", "expanded"), TABLES["expandPath"])
def test_a_path_is_expanded_as_in_the_app(path: str, expanded: str) -> None:
    assert portable.expand_home(path, "/home/ada", cwd="/base") == expanded.replace("${ROOT}", "/home/ada")


@pytest.mark.parametrize(("path", "contracted"), TABLES["toPortablePath"])
def test_a_path_is_stored_as_in_the_app(path: str, contracted: str) -> None:
    assert portable.contract_home(path.replace("${ROOT}", "/home/ada"), "/home/ada") == contracted.replace(
        "${ROOT}", "/home/ada"
    )


@pytest.mark.parametrize(("id", "value", "text"), TABLES["formatLabelEntry"])
def test_an_entry_of_a_label_is_written_as_in_the_app(id: str, value: Any, text: str) -> None:
    raw = text.partition("::")[2] if isinstance(value, dict) else None if value is None else str(value)
    assert str(Entry(id, raw)) == text


EDGE = load("projects/edge-expected.json")


def test_odd_folders_of_projects_are_read_as_in_the_app() -> None:
    root = GOLDEN / "projects/edge"
    shelf = SHELVES["projects"]
    read = {key.partition("/")[2]: shelf.load(root, key) for key in shelf.keys(root)}
    found = {name: next(iter(document.records), None) for name, document in read.items() if document is not None}
    for one in EDGE["loadWorkspaceProjects"]:
        if one["id"] is not None:
            assert found[one["folder"]] == one["id"]
    assert (root / "projects/bom/MEMORY.md").read_text() == EDGE["bomMemory"]  # the mark is kept
