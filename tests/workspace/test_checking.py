"""Looking at files without a daemon: every recorded verdict, and anything that can stand in a file."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model.json_places import range_of
from craftd.store import disk
from craftd.store.files import BOM, MOST_ISSUES, Shelf
from craftd.store.layout import CHECKED, DEFAULT_RULES, DRAFTS_SHELF, HOME_CHECKED, PREFERENCES_SHELF, SHELVES
from craftd.workspace import checking
from tests.strategies import json_values

GOLDEN = Path(__file__).parents[1] / "golden/workspace"
EXPECTED = json.loads((GOLDEN / "expected.json").read_bytes())

PLACES = {
    "config": "home/config.json", "preferences": "home/preferences.json", "theme": "home/theme.json",
    "tool-icons": "home/tool-icons/tool-icons.json", "statuses": "ws/statuses/config.json",
    "labels": "ws/labels/config.json", "views": "ws/views.json", "permissions": "ws/permissions.json",
    "workspace-config": "ws/config.json", "automations": "ws/automations.json",
}  # fmt: skip
"""Where a file of each recorded kind lies."""

RECORDED = sorted(name for name in EXPECTED["invalid"] if not name.startswith(("source-", "bundle-")))

Verdict = set[tuple[str, str, str]]
"""Severity, dotted path, code."""

E, W = "error", "warning"

DIFFERENT: dict[str, Verdict] = {
    "config-workspace-without-root.json": {(E, "workspaces.0.rootPath", "schema")},
    "statuses-fixed-flag-off.json": {(E, "statuses.1.isFixed", "fixed-flag-off")},
    "statuses-all-closed.json": {(E, "statuses.0.category", "fixed-category"), (E, "statuses", "no-open-status")},
    "labels-bad-auto-rules.json": {
        (E, "labels.0.autoRules.0.pattern", "slow-regex"), (E, "labels.0.autoRules.1.pattern", "bad-regex"),
    },
    "labels-six-levels.json": {(E, f"labels.0{'.children.0' * 5}.parent", "label-depth")},
    "permissions-unknown-key.json": {(W, "allowedbashpatterns", "unknown-key")},
    "theme-unknown-key.json": {(E, "glow", "unknown-key")},
    "views-not-json.json": {(E, "", "not-json")},
    "views-bad-expression.json": {
        (E, "views.0.expression", "expression-syntax"), (E, "views.1.expression", "expression-syntax"),
        (E, "views.2.expression", "expression-unknown-function"), (E, "views.3.expression", "expression-unknown-name"),
    },
    "workspace-config-not-json.json": {(E, "", "not-json")},
    "workspace-config-slug-traversal.json": {(E, "slug", "bad-slug")},
    "workspace-config-bad-modes.json": {
        (E, "defaults.permissionMode", "schema"), (E, "defaults.cyclablePermissionModes.0", "schema"),
        (E, "defaults.thinkingLevel", "schema"),
    },
    "workspace-config-types-wrong.json": {
        (E, "id", "schema"), (E, "name", "schema"), (E, "slug", "schema"), (E, "createdAt", "schema"),
        (E, "defaults.enabledSourceSlugs", "schema"),
    },
}  # fmt: skip
"""Files of which more is said than by the app, or something else: the tables in ARCHITECTURE.md."""


@frozen
class Places:
    """A configuration folder and a workspace that it names."""

    base: Path

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def root(self) -> Path:
        return self.base / "ws"

    def put(self, kind: str, data: bytes) -> Path:
        path = self.base / EVERYWHERE[kind]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def issues(self, path: Path) -> list[Issue]:
        root = self.home if path.is_relative_to(self.home) else self.root
        return [
            issue
            for folder in checking.look(root, self.home, within=path)
            for issues in folder.issues.values()
            for issue in issues
        ]

    def judge(self, kind: str) -> tuple[Issue, ...]:
        """The same of one file, without what lies beside it."""
        base, _, path = EVERYWHERE[kind].partition("/")
        shelves: list[Shelf] = (
            [HOME_CHECKED, DEFAULT_RULES, PREFERENCES_SHELF, DRAFTS_SHELF]
            if base == "home"
            else [CHECKED, *SHELVES.values()]
        )
        shelf, key = next((shelf, key) for shelf in shelves if (key := shelf.key_of(path)) is not None)
        document = shelf.load(self.base / base, key)
        return () if document is None else document.issues


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for room in ("home", "ws/sessions", "ws/skills"):
        (tmp_path / room).mkdir(parents=True)
    return Places(tmp_path)


def dotted(issue: Any, value: Any) -> str:
    """The app's path as ours: `labels[0].id` and `statuses[id=done].isFixed` count places."""
    path = "" if issue["path"] == "root" else re.sub(r"\[(\d+)\]", r".\1", issue["path"])
    named = re.fullmatch(r"(\w+)\[id=(\w+)\](.*)", path)
    if named is None:
        return path
    list_name, id, rest = named.groups()
    places = [at for at, entry in enumerate(value[list_name]) if entry["id"] == id]
    return f"{list_name}.{places[-1 if issue['rule'] in ('duplicate-id', 'duplicate-command') else 0]}{rest}"


def of_the_app(name: str, data: bytes) -> Verdict:
    verdict = EXPECTED["invalid"][name]["verdict"]
    try:
        value = json.loads(data.removeprefix(BOM))
    except ValueError:
        value = None
    found = [
        (issue["severity"], dotted(issue, value), issue["rule"]) for k in ("errors", "warnings") for issue in verdict[k]
    ]
    return {(severity, REFINED.get((name, path), path), code) for severity, path, code in found}


REFINED = {
    ("statuses-duplicate-id.json", "statuses.3"): "statuses.3.id",
    ("tool-icons-duplicates.json", "tools.1"): "tools.1.id",
    ("tool-icons-duplicates.json", "tools.1.commands"): "tools.1.commands.0",
}
"""Where we say more exactly what is meant."""


def of_ours(issues: list[Issue]) -> Verdict:
    return {(one.severity, place(one), str(one.code)) for one in issues}


def place(issue: Issue) -> str:
    """The dotted path that a message begins with."""
    found = re.match(r"((?:[\w-]+\.)*[\w-]+): ", issue.message)
    return found[1] if found is not None and issue.code not in ("not-json", "unreadable") else ""


@pytest.mark.parametrize("name", [name for name in RECORDED if not name.startswith("automations-")])
def test_a_recorded_file_gets_the_verdict_of_the_app_at_the_right_place(places: Places, name: str) -> None:
    data = (GOLDEN / "invalid" / name).read_bytes()
    kind = next(kind for kind in sorted(PLACES, key=len, reverse=True) if name.startswith(kind))
    issues = places.issues(places.put(kind, data))
    assert of_ours(issues) == (DIFFERENT[name] if name in DIFFERENT else of_the_app(name, data))
    for issue in issues:
        assert issue.path == PLACES[kind].partition("/")[2]
        if issue.code != "not-json":
            assert issue.range == range_of(data.removeprefix(BOM).decode(), place(issue))


@pytest.mark.parametrize(
    ("name", "start"),
    [("config-not-json.json", (0, 16)), ("statuses-not-json.json", (0, 1)), ("views-not-json.json", (0, 3))],
)
def test_a_file_that_is_no_json_says_where(places: Places, name: str, start: tuple[int, int]) -> None:
    data = (GOLDEN / "invalid" / name).read_bytes()
    [issue] = places.issues(places.put(name.partition("-")[0], data))
    assert issue.range is not None
    assert (issue.range["start"]["line"], issue.range["start"]["character"]) == start


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("automations-")])
def test_a_recorded_file_of_automations_is_judged_where_it_lies(places: Places, name: str) -> None:
    data = (GOLDEN / "invalid" / name).read_bytes()
    issues = places.issues(places.put("automations", data))
    assert any(issue.severity == "error" for issue in issues) != EXPECTED["invalid"][name]["verdict"]["valid"]
    assert all(issue.path == "automations.json" and issue.range is not None for issue in issues)


LEGACY = {
    "global-auth-type": ("config", "home/config.json"), "global-provider-types": ("config", "home/config.json"),
    "preferences-language": ("preferences", "home/preferences.json"), "workspace-config": ("config", "ws/config.json"),
    "status-colors": ("statuses/config", "ws/statuses/config.json"),
    "label-colors-and-smart-labels": ("labels/config", "ws/labels/config.json"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(LEGACY))
def test_old_files_that_the_app_still_reads_are_no_errors_but_for_colours(places: Places, case: str) -> None:
    stored, place = LEGACY[case]
    path = places.base / place
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(GOLDEN / "legacy" / case / f"{stored}.json", path)
    errors = {issue.code for issue in places.issues(path) if issue.severity == "error"}
    assert errors <= ({"bad-color"} if "colors" in case else set())


def test_a_draft_that_the_app_would_drop_is_told(places: Places) -> None:
    data = (GOLDEN / "legacy/drafts-old-shape/drafts.json").read_bytes()
    issues = places.issues(places.put("drafts", data))
    dropped = {place(issue).split(".")[1] for issue in issues}
    assert json.loads(data)["drafts"].keys() - dropped == set(EXPECTED["legacy"]["drafts-old-shape"]["kept"])
    assert {(issue.severity, issue.code) for issue in issues} == {(W, "draft-dropped")}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recorded home as somebody's; its folder."""
    shutil.copytree(GOLDEN / "home", tmp_path / "home")
    for folder in EXPECTED["tree"]["emptyDirs"]:
        (tmp_path / "home" / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "home"


def test_nothing_is_wrong_with_the_recorded_home_but_what_is_known(recorded: Path) -> None:
    folders = checking.look(recorded, recorded, within=recorded)
    assert [folder.root.name for folder in folders] == ["home", "aurora-lab", "field-notes"]
    home, full, fresh = (folder.issues for folder in folders)
    assert not home
    assert not fresh
    assert {path: of_ours(issues) for path, issues in full.items()} == {
        "automations.json": {
            (W, "automations.PermissionModeChange.0.permissionMode", "allow-all-mode"),
            (W, "automations.SchedulerTick.0.labels", "label-unknown"),
        },
        "views.json": {
            (E, "views.6.expression", "expression-unknown-function"), (E, "views.7.expression", "expression-syntax"),
        },
    }  # fmt: skip


def test_looking_changes_nothing_and_makes_nothing(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("create", "rename", "exchange", "remove", "make_directory", "open_append", "move_folder", "write"):
        if hasattr(disk, name):
            monkeypatch.setattr(disk, name, lambda *_, name=name, **__: pytest.fail(f"disk.{name}"))
    (recorded / "statuses").mkdir()
    (recorded / "workspaces/aurora-lab/statuses/config.json").write_text("{")
    before = snapshot(recorded)
    checking.look(recorded, recorded, within=recorded)
    assert snapshot(recorded) == before


def snapshot(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in (root, *root.rglob("*")):
        status = os.lstat(path)
        found[str(path)] = (status.st_ino, status.st_mtime_ns, status.st_mode)
    return found


values = json_values | st.dictionaries(
    st.sampled_from(
        ["version", "statuses", "labels", "views", "tools", "workspaces", "llmConnections", "automations", "defaults",
         "activeWorkspaceId", "activeSessionId", "dark", "mode", "id", "name", "defaultStatusId", "location"]
    ),
    json_values | st.lists(json_values | st.fixed_dictionaries({}, optional={
        name: json_values for name in ("id", "label", "name", "slug", "category", "isFixed", "order", "children",
                                        "autoRules", "expression", "rootPath", "createdAt", "icon", "commands")
    }), max_size=3),
    max_size=6,
)  # fmt: skip


@pytest.fixture(scope="module")
def anywhere(tmp_path_factory: pytest.TempPathFactory) -> Places:
    base = tmp_path_factory.mktemp("anywhere")
    for room in ("home", "ws/sessions", "ws/skills"):
        (base / room).mkdir(parents=True)
    return Places(base)


MORE = {
    "source": "ws/sources/x/config.json", "source-permissions": "ws/sources/x/permissions.json",
    "project": "ws/projects/x/config.json", "defaults": "home/config-defaults.json",
    "permissions-default": "home/permissions/default.json", "drafts": "home/drafts.json",
}  # fmt: skip
"""Files of JSON without a recorded invalid one here."""

TEXTS = {"skill": "ws/skills/x/SKILL.md", "task": "ws/tasks/x/task.yaml"}

EVERYWHERE = PLACES | MORE | TEXTS


@pytest.mark.parametrize("kind", sorted(PLACES | MORE))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=values)
def test_any_json_in_any_file_is_judged(anywhere: Places, kind: str, value: Any) -> None:
    anywhere.put(kind, json_text.dumps(value))
    for issue in anywhere.judge(kind):
        assert issue.severity in (E, W)
        assert issue.code
        assert issue.range is not None


HOSTILE = [
    b"", b"\xff\xfe\x00", BOM, b"\x00" * 50, b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"version": 1e999999}', b'{"version": ' + b"9" * 10_000 + b"}", b'"\\ud800"', b'{"\\ud800": {"\\udc00": 1}}',
    json.dumps({"." * 50_000: 1}).encode(), b'{"statuses": [' + b"{}," * 20_000 + b"{}]}",
    b'{"labels": [' + b"1," * 20_000 + b'1], "tools": [' + b"2," * 20_000 + b"2]}",
]  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("kind", sorted(EVERYWHERE))
def test_hostile_files_are_judged_too(anywhere: Places, kind: str, data: bytes) -> None:
    anywhere.put(kind, data)
    issues = anywhere.judge(kind)
    assert len(issues) <= MOST_ISSUES
    assert sum(len(issue.message) for issue in issues) < 100_000
