"""Names, titles and outlines of plans, compared with all that is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.errors import InvalidParams
from craftd.model.header_rules import created, patched
from craftd.model.json_text import utf16_length
from craftd.model.plans import check_id, file_name, outline, slug, title_of, with_title

VECTORS = json.loads((Path(__file__).parents[1] / "golden/sessions/vectors.json").read_bytes())
CONTEXT = "Context used when title is empty, cut at fifty units of UTF-16"
titles = st.text().map(str.strip).filter(lambda text: text and not any(char < " " for char in text))


@pytest.mark.parametrize("case", VECTORS["planFileNames"], ids=lambda case: case["title"])
def test_plans_are_called_as_in_the_app(case: dict[str, str]) -> None:
    made = slug(case["title"], CONTEXT)
    assert file_name("2026-05-02", made) == case["first"]
    assert file_name("2026-05-02", made, 2) == case["second"]


@given(st.text())
def test_any_title_gives_a_name_that_a_plan_can_have(title: str) -> None:
    assert utf16_length(slug(title)) <= 40
    if not any("\ud800" <= char <= "\udfff" for char in title):
        check_id(file_name("2026-05-02", slug(title)))


@pytest.mark.parametrize(
    "id",
    ["", ".md", "plan", "plan.MD", "../../x.md", "a/b.md", "..", ".hidden.md", "a\0.md", "x" * 253 + ".md", "a.md/"],
)
def test_no_other_file_is_a_plan(id: str) -> None:
    with pytest.raises(InvalidParams) as failed:
        check_id(id)
    assert failed.value.issues[0].path == "id"


def test_a_name_loses_nothing_but_its_end() -> None:
    check_id("a.md.old.md")


@pytest.mark.parametrize("case", VECTORS["plans"], ids=lambda case: case["markdown"][:60])
def test_an_outline_says_what_was_written_also_where_the_app_forgets_it(case: dict[str, Any]) -> None:
    plan, told = case["plan"], outline(case["markdown"])
    assert (told["title"], told["context"]) == (plan["title"], plan["context"])
    assert told["state"] == case["parsedBack"]["state"]
    assert told["createdAt"] == "2026-01-01T00:00:00.000Z"
    assert ("updatedAt" in told) == (plan["updatedAt"] != plan["createdAt"])
    # What a step was skipped for stands nowhere in the text.
    wanted = [
        {k: v for k, v in step.items() if k != "id"} | ({"status": "pending"} if step["status"] == "skipped" else {})
        for step in plan["steps"]
    ]
    assert told["steps"] == wanted
    rounds = [{k: v for k, v in one.items() if k != "timestamp"} for one in plan.get("refinementHistory", [])]
    assert told["refinements"] == rounds


@given(st.text())
def test_any_text_has_an_outline(text: str) -> None:
    assert outline(text)["state"] == "ready" or "**Status:**" in text


@given(st.text(), titles)
def test_a_title_is_the_first_heading_and_the_rest_stays(text: str, title: str) -> None:
    new = with_title(text, title)
    assert title_of(new) == title
    assert with_title(new, title) == new
    if title_of(text) is None and "# " not in text:
        assert new.endswith(text.removeprefix("\ufeff"))


def test_a_heading_is_replaced_where_it_stands() -> None:
    assert with_title("intro\r\n# Old\r\n## Steps\n", "New") == "intro\r\n# New\r\n## Steps\n"
    assert with_title("\ufeff# Old", "New") == "\ufeff# New"
    assert with_title("", "New") == "# New\n"
    assert with_title("text\n", "New") == "# New\n\ntext\n"


# Waiting to be carried out


def change(old: dict[str, Any], given: Any) -> Any:
    patch = {"set": {"pendingPlanExecution": given}}
    return patched(old, patch, "/ws/sessions/s", 5, lambda value: None).get("pendingPlanExecution")


def test_a_plan_that_is_set_waits_for_the_compaction() -> None:
    waiting = {"planPath": "/p/a.md", "awaitingCompaction": True, "executionDispatched": False}
    assert change({}, {"planPath": "/p/a.md"}) == waiting
    assert created({"pendingPlanExecution": {"planPath": "/p/a.md"}}, 5)["pendingPlanExecution"] == waiting
    snapshot = {"planPath": "/p/a.md", "draftInputSnapshot": "and more"}
    assert change({}, snapshot) == {**snapshot, **waiting}
    assert change({}, {"planPath": "/p/a.md", "awaitingCompaction": False})["awaitingCompaction"] is False


def test_marks_change_what_waits_and_nothing_else() -> None:
    old = {"pendingPlanExecution": {"planPath": "/p/a.md", "draftInputSnapshot": "x", "awaitingCompaction": True}}
    compacted = change(old, {"awaitingCompaction": False})
    assert compacted == {**old["pendingPlanExecution"], "awaitingCompaction": False}
    dispatched = change({"pendingPlanExecution": compacted}, {"executionDispatched": True})
    assert dispatched == {**compacted, "executionDispatched": True}
    assert change({}, {"awaitingCompaction": False}) is None
    assert change({}, {"executionDispatched": True}) is None
    assert change(old, None) is None


def test_another_plan_begins_anew() -> None:
    old = {"pendingPlanExecution": {"planPath": "/a.md", "draftInputSnapshot": "x", "executionDispatched": True}}
    assert change(old, {"planPath": "/b.md"}) == {
        "planPath": "/b.md",
        "awaitingCompaction": True,
        "executionDispatched": False,
    }
