"""Tasks: what is wrong with a `task.yaml`, as a value, and the graph its nodes make. Nothing is run here.  App 0.11.1.

Three stages, each only when the one before found no error: the shape; ids and prompts; the graph and its references.
Paths have the places of nodes in the list, and say where a reference stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from craftd.errors import Issue
from craftd.model import json_text
from craftd.model.checks import Check, anything, flag, listing, mapping, one_of, shape, text
from craftd.model.records import Record

MOST_NODES: Final = 64
DEEPEST: Final = 24
"""Nodes of the longest chain."""
WIDEST: Final = 24
"""Nodes at one distance from where nothing is waited for."""
MOST_ROUNDS: Final = 50
"""Of a loop."""

KINDS: Final = (
    "session", "orchestrator", "route", "parallel", "map", "loop", "approval", "synthesize", "verify", "judge",
    "filter", "aggregate", "finally",
)  # fmt: skip

_MODELS: Final = frozenset({
    "claude-opus-4-8", "claude-opus-4-7", "claude-sonnet-5", "claude-sonnet-4-6", "claude-haiku-4-5-20251001",
    "claude-fable-5", "claude-opus-4-6", "claude-opus-4-5-20251101",
})  # fmt: skip
_BEDROCK: Final = re.compile(r"(?:[a-z]+\.)?anthropic\.(.+?)(?:-v\d+(?::\d+)?)?", re.ASCII)

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LARGEST: Final = 2**53 - 1
_SPACE: Final = "[\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]*"
_REFERENCE: Final = re.compile(
    rf"\$\{{{_SPACE}(?:nodes\.(?P<node>{_SLUG.pattern})\.output(?:\.(?P<field>[A-Za-z0-9_-]+))?"
    rf"|params\.(?P<param>{_NAME.pattern})|inputs\.(?P<input>{_NAME.pattern})){_SPACE}\}}",
    re.ASCII,
)


@frozen
class Reference:
    """`${nodes.ID.output.FIELD}`, `${params.NAME}` or `${inputs.NAME}`; what does not fit is text like any other."""

    kind: str
    name: str
    field: str | None = None


def references(text: str) -> Iterator[Reference]:
    for found in _REFERENCE.finditer(text):
        kind = str(found.lastgroup if found.lastgroup != "field" else "node")
        yield Reference(kind, found[kind], found["field"])


@frozen(kw_only=True)
class Graph:
    """Who waits for whom. edges: per node those it needs, in the order they are named. cycle: one, if there is any.

    levels: nodes by their distance from those that need nobody; none where there is a cycle.
    """

    edges: dict[str, list[str]]
    cycle: list[str] = field(factory=list)
    levels: list[list[str]] = field(factory=list)

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def width(self) -> int:
        return max(map(len, self.levels), default=0)

    @classmethod
    def of(cls, spec: Record) -> Graph:
        """Of a spec whose shape is right. Nodes that wait for themselves or for nobody there do not."""
        ids = [node["id"] for node in spec["nodes"]]
        edges = {node["id"]: _needs(node, set(ids)) for node in spec["nodes"]}
        cycle = _cycle(edges)
        return cls(edges=edges, cycle=cycle, levels=[] if cycle else _levels(edges))


def kind_of(node: Record) -> str:
    """`type` is an old name of `kind`."""
    return str(node.get("kind", node.get("type", "session")))


def check(value: Any) -> list[Issue]:
    """What is wrong with a task as read from YAML. Never raises."""
    issues = list(_TASK(value, ""))
    if not issues:
        issues = list(_ids_and_prompts(value["nodes"]))
    return issues or list(_graph(value))


def _needs(node: Record, known: set[str]) -> list[str]:
    named = [*node.get("depends_on", ()), *(one.name for _, one in _uses(node) if one.kind == "node")]
    return [id for id in dict.fromkeys(named) if id in known and id != node["id"]]


def _uses(node: Record) -> Iterator[tuple[str, Reference]]:
    """References with the member they stand in."""
    for reference in references(node.get("prompt", "")):
        yield "prompt", reference
    for name, binding in node.get("inputs", {}).items():
        for reference in references(binding if isinstance(binding, str) else binding["from"]):
            yield f"inputs.{name}", reference


def _cycle(edges: Mapping[str, list[str]]) -> list[str]:
    """The first one met when the nodes are followed one after the other; its first node stands at both ends."""
    done: set[str] = set()
    for start in edges:
        trail: dict[str, Iterator[str]] = {} if start in done else {start: iter(edges[start])}
        while trail:
            last = next(reversed(trail))
            following = next((id for id in trail[last] if id not in done), None)
            if following is None:
                done.add(last)
                del trail[last]
            elif following in trail:
                ids = list(trail)
                return [*ids[ids.index(following) :], following]
            else:
                trail[following] = iter(edges[following])
    return []


def _levels(edges: Mapping[str, list[str]]) -> list[list[str]]:
    waiting = {id: set(needed) for id, needed in edges.items()}
    wanted: dict[str, list[str]] = {id: [] for id in edges}
    for id, needed in edges.items():
        for other in needed:
            wanted[other].append(id)
    levels = []
    level = [id for id, needed in waiting.items() if not needed]
    while level:
        levels.append(level)
        freed = []
        for id in level:
            for other in wanted[id]:
                waiting[other].discard(id)
                if not waiting[other]:
                    freed.append(other)
        level = freed
    return levels


def _ids_and_prompts(nodes: list[Record]) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        if node["id"] in seen:
            yield _error(f"nodes.{index}.id", "duplicate-node-id", f"another node is called {node['id']}")
        seen.add(node["id"])
        if kind_of(node) == "session" and not json_text.js_trim(node.get("prompt", "")):
            yield _error(f"nodes.{index}.prompt", "session-prompt-missing", "a session needs something to be told")


def _graph(spec: Record) -> Iterator[Issue]:
    nodes: list[Record] = spec["nodes"]
    ids = {node["id"] for node in nodes}
    params = {param["name"] for param in spec.get("params", ())}
    model = spec.get("defaults", {}).get("model")
    yield from _params(spec.get("params", []))
    for index, node in enumerate(nodes):
        yield from _node(node, f"nodes.{index}", ids, params, model)
    for name, written in spec.get("outputs", {}).items():
        yield from _output(f"outputs.{name}", written, ids, params)
    graph = Graph.of(spec)
    if graph.cycle:
        yield _error("nodes", "cycle", f"wait for each other: {' -> '.join(graph.cycle)}")
    if graph.depth > DEEPEST:
        yield _error("nodes", "too-deep", f"make a chain of {graph.depth}; {DEEPEST} are allowed")
    if graph.width > WIDEST:
        yield _error("nodes", "too-wide", f"are {graph.width} side by side; {WIDEST} are allowed")
    if len(nodes) > MOST_NODES:
        yield _error("nodes", "too-many-nodes", f"are {len(nodes)}; {MOST_NODES} are allowed")


def _params(params: list[Record]) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, param in enumerate(params):
        if param["name"] in seen:
            yield _warning(f"params.{index}.name", "duplicate-param", f"another parameter is called {param['name']}")
        seen.add(param["name"])
        default = param.get("default")
        if default is not None and not _fits(default, param):
            yield _warning(f"params.{index}.default", "param-type", "is not what the parameter says it is")


def _fits(default: Any, param: Record) -> bool:
    if "enum" in param and default not in param["enum"]:
        return False
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    return {
        "number": number,
        "boolean": isinstance(default, bool),
        "string": isinstance(default, str),
        "text": isinstance(default, str),
    }.get(param.get("type", ""), True)


def _node(node: Record, path: str, ids: set[str], params: set[str], model: str | None) -> Iterator[Issue]:
    needs: list[str] = node.get("depends_on", [])
    for place, id in enumerate(needs):
        if id == node["id"]:
            yield _error(f"{path}.depends_on.{place}", "self-dependency", "waits for itself")
        elif id not in ids:
            yield _error(f"{path}.depends_on.{place}", "unknown-dependency", f"there is no node {id}")
    for where, reference in _uses(node):
        yield from _reference(node, reference, path, where, ids, params)
    used = node.get("model", model)
    if used is not None and not _is_known(used):
        yield _warning(f"{path}.model", "unknown-model", f"{used} is no model the app brings along")
    loop = node.get("loop")
    if loop is not None:
        if loop["max"] > MOST_ROUNDS:
            yield _error(f"{path}.loop.max", "loop-max-over-cap", f"is more than {MOST_ROUNDS}")
        if "else" in loop and loop["else"] not in ids:
            yield _error(f"{path}.loop.else", "loop-else-unknown", f"there is no node {loop['else']}")
    if kind_of(node) != "session":
        member = "kind" if "kind" in node else "type"
        yield _warning(f"{path}.{member}", "kind-not-run", "is carried out like a session, by the app too")


def _reference(
    node: Record, reference: Reference, path: str, where: str, ids: set[str], params: set[str]
) -> Iterator[Issue]:
    name = reference.name
    if reference.kind == "input":
        if where == "prompt" and name not in node.get("inputs", {}):
            yield _warning(f"{path}.{where}", "undeclared-input-ref", f"there is no input {name}; it stays as written")
    elif reference.kind == "param":
        if name not in params:
            yield _error(f"{path}.{where}", "undeclared-param-ref", f"there is no parameter {name}")
    elif name == node["id"]:
        yield _error(f"{path}.{where}", "self-reference", "reads its own output")
    elif name not in ids:
        yield _error(f"{path}.{where}", "unknown-node-ref", f"there is no node {name}")
    else:
        if reference.field is not None:
            yield _warning(f"{path}.{where}", "structured-field-ref", "single values of an output are not there yet")
        if name not in node.get("depends_on", ()):
            yield _warning(f"{path}.{where}", "implicit-edge", f"waits for {name} without saying so in depends_on")


def _output(path: str, written: str, ids: set[str], params: set[str]) -> Iterator[Issue]:
    for reference in references(written):
        if reference.kind == "node" and reference.name not in ids:
            yield _error(path, "output-unknown-node", f"there is no node {reference.name}")
        elif reference.kind == "param" and reference.name not in params:
            yield _error(path, "output-undeclared-param", f"there is no parameter {reference.name}")
        elif reference.field is not None:
            yield _warning(path, "structured-field-ref", "single values of an output are not there yet")


def _is_known(model: str) -> bool:
    bedrock = _BEDROCK.fullmatch(model)
    return model in _MODELS or (bedrock is not None and bedrock[1] in _MODELS)


def _error(path: str, code: str, message: str) -> Issue:
    return Issue(path=path, code=code, message=message)


def _warning(path: str, code: str, message: str) -> Issue:
    return Issue(path=path, code=code, message=message, severity="warning")


# -- the shape --


def _named(pattern: re.Pattern[str], code: str, what: str) -> Check:
    def check(value: Any, path: str) -> Iterator[Issue]:
        if not isinstance(value, str):
            yield _error(path, "schema", "must be text")
        elif pattern.fullmatch(value) is None:
            yield _error(path, code, what)

    return check


def _number(value: Any, path: str) -> Iterator[Issue]:
    """More than 0, and finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield _error(path, "schema", "must be a number")
    elif not 0 < value < float("inf"):
        yield _error(path, "schema", "must be more than 0")


def _whole(least: int, most: int = _LARGEST) -> Check:
    def check(value: Any, path: str) -> Iterator[Issue]:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            yield _error(path, "schema", "must be a whole number")
        elif value < least:
            yield _error(path, "schema", f"must be at least {least}")
        elif value > most:
            yield _error(path, "schema", f"must be at most {most}")

    return check


def _binding(value: Any, path: str) -> Iterator[Issue]:
    if isinstance(value, str):
        return
    inside = value.get("from") if isinstance(value, dict) else None
    if not isinstance(inside, str) or not isinstance(value.get("summarize", False), bool):
        yield _error(path, "schema", "must be text or {from: text, summarize?: true or false}")
    elif not inside:
        yield _error(f"{path}.from", "schema", "must not be empty")


def _nodes(value: Any, path: str) -> Iterator[Issue]:
    if value == []:
        yield _error(path, "no-nodes", "there must be one at least")
    yield from listing(_one_node)(value, path)


def _one_node(value: Any, path: str) -> Iterator[Issue]:
    yield from _NODE(value, path)
    if isinstance(value, dict) and ("kind" in value or "type" in value):
        yield from one_of(*KINDS)(value.get("kind", value.get("type")), f"{path}.kind")


_TEXT: Final = text(empty=False)
_SLUGS: Final = _named(_SLUG, "bad-slug", "must be lower-case letters, digits and hyphens, no hyphen first")
_NAMES: Final = _named(_NAME, "bad-name", "must be letters, digits and _, no digit first")
_MODES: Final = one_of("safe", "ask", "allow-all")

_NODE: Final = shape(
    {
        "id": _SLUGS,
        "title": _TEXT,
        "prompt": text(),
        "model": _TEXT,
        "llmConnection": _TEXT,
        "permissionMode": _MODES,
        "labels": listing(text()),
        "status": text(),
        "depends_on": listing(_SLUGS),
        "inputs": mapping(_binding),
        "outputs": listing(
            shape(
                {"name": _NAMES, "kind": one_of("param", "artifact"), "type": text(), "enum": listing(text())},
                required=("name",),
            )
        ),
        "retry": shape(
            {
                "limit": _whole(0),
                "backoff": shape({"base": _number, "factor": _number, "max": _number}),
                "when": one_of("error", "empty", "invalid"),
            },
            required=("limit",),
        ),
        "loop": shape(
            {"until": _TEXT, "max": _whole(1), "else": text(), "carry": text()}, required=("until", "max")
        ),
        "when": text(),
        "for_each": text(),
        "trigger": one_of("all_success", "none_failed_min_one_success", "one_success", "all_done"),
        "aggregate": one_of("concat", "vote", "majority", "filter", "synthesize"),
        "replicas": _whole(1),
        "max_parallel": _whole(1),
        "timeout": _number,
        "cache": one_of("pure", "off"),
        "approval": flag,
    },
    required=("id",),
)  # fmt: skip

_TASK: Final = shape(
    {
        "id": _SLUGS,
        "title": _TEXT,
        "goal": _TEXT,
        "acceptance_criteria": _TEXT,
        "project": _TEXT,
        "cwd": _TEXT,
        "runner": one_of("conduct", "orchestrate"),
        "sources": listing(_TEXT),
        "skills": listing(_TEXT),
        "defaults": shape({"model": _TEXT, "llmConnection": _TEXT, "permissionMode": _MODES}),
        "params": listing(
            shape(
                {
                    "name": _NAMES,
                    "type": one_of("string", "number", "boolean", "enum", "json", "text"),
                    "default": anything,
                    "enum": listing(text()),
                },
                required=("name",),
            )
        ),
        "token_budget": _whole(1),
        "max_parallel": _whole(1),
        "max_iterations": _whole(0, 10),
        "nodes": _nodes,
        "outputs": mapping(text()),
    },
    required=("id", "title", "goal", "nodes"),
)
