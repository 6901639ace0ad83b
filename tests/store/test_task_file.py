"""Tasks, judged as the app judges them, and where in the file what is wrong stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.errors import Issue
from craftd.model.tasks import Graph, kind_of, references
from craftd.store import task_file, yaml_text
from tests.strategies import json_values, texts

GOLDEN = Path(__file__).parents[1] / "golden/tasks"
INVALID = json.loads((GOLDEN / "invalid/expected.json").read_bytes())
VALID = sorted(path.name.removesuffix(".yaml") for path in (GOLDEN / "valid").glob("*.yaml"))
OURS = {"kind-not-run", "undeclared-input-ref", "param-type", "duplicate-param"}
"""Warnings that the app does not give: the table in ARCHITECTURE.md."""
CODES = {"yaml-invalid": "not-yaml", "slug-format": "bad-slug", "ident-format": "bad-name"}


def parsed(name: str) -> Any:
    return yaml_text.parse_core((GOLDEN / name).read_bytes().decode("utf-8-sig")).value


def of_the_app(verdict: Any, value: Any) -> list[tuple[str, str, str]]:
    """Paths of the app have ids of nodes after its second stage, and name the whole for a reference in it."""
    places = {}
    if isinstance(value, dict) and isinstance(value.get("nodes"), list):
        places = {node["id"]: index for index, node in enumerate(value["nodes"]) if isinstance(node.get("id"), str)}
    found = []
    for severity, issue in [(kind, one) for kind in ("error", "warning") for one in verdict[f"{kind}s"]]:
        path, code = issue["path"].replace("root", ""), issue["code"]
        head, _, rest = path.removeprefix("nodes.").partition(".")
        if path.startswith("nodes.") and head in places:
            path = f"nodes.{places[head]}.{rest}"
        code = "schema" if code.startswith("shape:") else CODES.get(code, code)
        found.append((severity, path, code))
    return sorted(found)


def of_ours(issues: list[Issue]) -> list[tuple[str, str, str]]:
    found = []
    for issue in issues:
        path, code = issue.path, str(issue.code)
        if code.endswith(("-ref", "-reference", "implicit-edge")) and path.startswith("nodes."):
            place = "depends_on" if code == "implicit-edge" else "inputs"
            path = re.sub(r"\.(prompt|inputs\..*)$", f".{place}", path)
        if code.endswith("-dependency"):
            path = re.sub(r"\.\d+$", "", path)
        if code not in OURS:
            found.append((issue.severity, path, code))
    return sorted(found)


@pytest.mark.parametrize("name", sorted(INVALID))
def test_a_recorded_invalid_task_gets_the_verdict_of_the_app(name: str) -> None:
    data = (GOLDEN / "invalid" / name).read_bytes()
    issues = task_file.check(data)
    value = None if issues[0].code == "not-yaml" else parsed(f"invalid/{name}")
    assert of_ours(issues) == of_the_app(INVALID[name], value)
    cycles = [issue["detail"]["cycle"] for issue in INVALID[name]["errors"] if issue["code"] == "cycle"]
    assert [issue.message.partition(": ")[2].split(" -> ") for issue in issues if issue.code == "cycle"] == cycles


@pytest.mark.parametrize("name", VALID)
def test_a_recorded_valid_task_gets_the_verdict_and_the_graph_of_the_app(name: str) -> None:
    expected = json.loads((GOLDEN / f"valid/{name}.expected.json").read_bytes())
    value = parsed(f"valid/{name}.yaml")
    assert of_ours(task_file.check((GOLDEN / f"valid/{name}.yaml").read_bytes())) == of_the_app(
        expected["verdict"], value
    )
    graph = Graph.of(value)
    assert (graph.edges, graph.depth, graph.width) == (expected["edges"], expected["depth"], expected["width"])
    kinds = [kind_of(node) for node in value["nodes"]]
    assert {"nodeCount": len(kinds), "sessionNodeCount": kinds.count("session")} == expected["estimate"]


@pytest.mark.parametrize("name", VALID)
def test_a_recorded_task_is_read_as_the_app_reads_it(name: str) -> None:
    spec = json.loads((GOLDEN / f"valid/{name}.expected.json").read_bytes())["spec"]
    value = parsed(f"valid/{name}.yaml")
    shown = {"runner": "conduct", **{key: member for key, member in value.items() if key in spec}}
    for node, recorded in zip(value["nodes"], spec["nodes"], strict=True):
        assert {key: {"kind": kind_of(node), **node}[key] for key in recorded} == recorded
    if name == "06-yaml-1-2-scalars":
        assert next(one for one in value["params"] if one["name"] == "big")["default"] == 12345678901234567890
        next(one for one in spec["params"] if one["name"] == "big")["default"] = 12345678901234567890
    assert {**shown, "nodes": 0} == {**spec, "nodes": 0}


@pytest.mark.parametrize("case", json.loads((GOLDEN / "cases/refs.json").read_bytes())["cases"])
def test_a_reference_is_one_to_us_where_it_is_one_to_the_app(case: Any) -> None:
    found = [(one.kind, one.name, one.field) for one in references(case["text"]) if one.kind != "input"]
    assert found == [(one["kind"], one.get("nodeId", one.get("name")), one.get("field")) for one in case["refs"]]


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("invalid/12-unknown-kind.yaml", "schema", "wizard"),
        ("invalid/19-unknown-dependency.yaml", "unknown-dependency", "ghost"),
        ("invalid/18-loop-else-unknown.yaml", "loop-else-unknown", "nowhere"),
        ("invalid/40-unsafe-integer.yaml", "schema", "9007199254740993"),
        ("invalid/24-reference-to-unknown-node.yaml", "unknown-node-ref", '"x ${nodes.ghost.output}"'),
        ("invalid/31-null-optional.yaml", "schema", ""),
        ("valid/11-unchecked.yaml", "param-type", '"not a number"'),
    ],
)
def test_an_issue_covers_the_value_that_is_wrong(name: str, code: str, words: str) -> None:
    data = (GOLDEN / name).read_bytes()
    issue = next(one for one in task_file.check(data) if one.code == code)
    assert issue.range is not None
    line = data.decode().splitlines()[issue.range["start"]["line"]]
    assert line[issue.range["start"]["character"] : issue.range["end"]["character"]] == words


def test_characters_are_counted_as_utf_16_and_lines_as_editors_do() -> None:
    data = 'id: a\r\ngoal: g\rtitle: "x"\nnodes: [{id: n, title: "\U0001f600\U0001f600", depends_on: [n], prompt: p}]\n'
    [issue] = task_file.check(b"\xef\xbb\xbf" + data.encode())
    start = data.splitlines()[3].index("[n]") + 1 + 2
    assert issue.code == "self-dependency"
    assert issue.range == {"start": {"line": 3, "character": start}, "end": {"line": 3, "character": start + 1}}


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"id: a\n\xff: b\n", "not-utf8", 1),
        (b"id: a\nid: b\n", "not-yaml", 1),
        (b"id: a\n--- \nid: b\n", "not-yaml", 1),
        (b"a: &a [x, x]\nb: *a\nc: *e\n", "not-yaml", 2),
        (b"[" * 5000, "not-yaml", 0),
        (b"id: a\n" + b"#" * (1 << 20), "too-large", 0),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(data: bytes, code: str, line: int) -> None:
    [issue] = task_file.check(data)
    assert issue.code == code
    assert issue.range is not None
    assert line <= issue.range["start"]["line"] <= line + 1


def test_a_few_lines_that_stand_for_billions_of_values_are_no_task() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert [one.code for one in task_file.check("\n".join(lines).encode())] == ["not-yaml"]


def test_values_are_counted_while_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST", 50)
    [issue] = task_file.check(b"- a\n" * 1000)
    assert (issue.code, issue.range and issue.range["start"]["line"]) == ("not-yaml", 49)


def test_a_chain_of_thousands_is_counted() -> None:
    nodes = [f"  - {{id: n{n}, prompt: p, depends_on: [{f'n{n - 1}' if n else ''}]}}" for n in range(3000)]
    data = "\n".join(["id: long", "title: t", "goal: g", "nodes:", *nodes])
    assert [one.code for one in task_file.check(data.encode())] == ["too-deep", "too-many-nodes"]


names = st.sampled_from(
    ["id", "title", "goal", "nodes", "prompt", "kind", "depends_on", "inputs", "from", "outputs", "name", "loop", "max"]
)
specs = st.recursive(
    st.one_of(json_values, st.sampled_from(["a", "b", "session", "${nodes.a.output.x}", "${params.b}"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=5)),
    max_leaves=25,
)
nodes = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b", "c"]), "prompt": st.sampled_from(["p", "${nodes.b.output}"])},
    optional={
        "depends_on": st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3),
        "inputs": specs,
        "loop": specs,
    },
)


@given(st.one_of(specs, st.fixed_dictionaries({"id": st.just("t"), "title": texts, "goal": texts, "nodes": specs})))
def test_no_value_makes_the_check_fail(value: Any) -> None:
    for issue in task_file.check(json.dumps(value).encode()):
        assert issue.range is not None


@given(st.lists(nodes, max_size=4))
def test_a_graph_has_a_cycle_or_a_level_for_every_node(them: list[Any]) -> None:
    value = {"id": "t", "title": "t", "goal": "g", "nodes": them}
    issues = task_file.check(json.dumps(value).encode())
    if any(one.code in ("schema", "no-nodes", "duplicate-node-id") for one in issues):
        return
    graph = Graph.of(value)
    assert bool(graph.cycle) != (sum(map(len, graph.levels)) == len(them))
    assert any(one.code == "cycle" for one in issues) == bool(graph.cycle)


@given(st.one_of(st.binary(max_size=60), texts.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_no_bytes_make_the_check_fail(data: bytes) -> None:
    for issue in task_file.check(data):
        assert issue.message
