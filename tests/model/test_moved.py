"""What line 1 says of places follows a folder that was copied or moved."""

from __future__ import annotations

from typing import Any

import pytest

from craftd.model.moved import at_home

HOME = "/home/ada"


def seen(root: str, id: str, **stored: Any) -> Any:
    header = {"id": "260101-a-b", "workspaceRootPath": "~/old", **stored}
    return at_home(header, f"{root}/sessions/{id}", root, HOME)


@pytest.mark.parametrize("path", ["~/old/sessions/260101-a-b", "/home/ada/old/x", "$HOME/old/x"])
def test_nothing_changes_where_it_was_written(path: str) -> None:
    header = {"id": "260101-a-b", "workspaceRootPath": "~/old", "sdkCwd": path}
    assert at_home(header, "/home/ada/old/sessions/260101-a-b", "/home/ada/old", HOME) is header


def test_paths_keep_their_form_and_end_where_names_end() -> None:
    value = seen(
        "/home/ada/new",
        "260101-a-b-2",
        sdkCwd="~/old/sessions/260101-a-b",
        workingDirectory="/home/ada/old/src",
        branchFromSessionPath="/home/ada/old/sessions/260101-a-b-9",
        branchFromSdkCwd="/home/ada/older/x",
        pendingPlanExecution={"planPath": "/home/ada/old/sessions/260101-a-b/plans/p.md", "odd": 1},
    )
    assert value["sdkCwd"] == "~/new/sessions/260101-a-b-2"
    assert value["workingDirectory"] == "/home/ada/new/src"
    assert value["branchFromSessionPath"] == "/home/ada/new/sessions/260101-a-b-9"
    assert value["branchFromSdkCwd"] == "/home/ada/older/x"
    plan = "/home/ada/new/sessions/260101-a-b-2/plans/p.md"
    assert value["pendingPlanExecution"] == {"planPath": plan, "odd": 1}


def test_a_workspace_inside_of_the_old_one_is_reached() -> None:
    assert seen("/home/ada/old/inner", "260101-a-b", sdkCwd="~/old/x")["sdkCwd"] == "~/old/inner/x"


@pytest.mark.parametrize("root", [None, "", "/", "relative", 3, "~"])
@pytest.mark.parametrize("id", ["260101-a-b", "..", None])
def test_an_odd_header_stays_readable(root: Any, id: Any) -> None:
    header = {"id": id, "workspaceRootPath": root, "sdkCwd": 3, "workingDirectory": "/a", "pendingPlanExecution": []}
    assert at_home(header, "/ws/sessions/x", "/ws", HOME) == header
