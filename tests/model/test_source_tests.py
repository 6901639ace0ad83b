"""Trying sources, compared with every recorded case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.source_tests import (
    CONNECTED,
    FAILED,
    NEEDS_AUTH,
    Outcome,
    Unfit,
    api_request,
    environment,
    hidden,
    judge,
    marks,
    mcp_headers,
    unusable_member,
)

GOLDEN = Path(__file__).parents[1] / "golden/sources"
RECORDED = json.loads((GOLDEN / "source-test.json").read_bytes())["cases"]
CASES = [case for case in RECORDED if isinstance(case["config"], dict)]
APIS = [case for case in CASES if case["config"].get("type") == "api" and isinstance(case["config"].get("api"), dict)]
APIS = [case for case in APIS if "invalid" not in case["name"] and case["result"] != "early-error"]
SERVERS = [case for case in CASES if case["mcpProbe"]]
STATUS = {"connected": CONNECTED, "disconnected": FAILED, "error": FAILED}

OTHERWISE: dict[str, dict[str, Any]] = {
    "api test endpoint leading slash doubles": {"url": "https://a.example/v1/me"},
    "api no trailing slash glues": {"url": "https://a.example/v1/me"},
    "api test endpoint POST without credential has no body": {
        "headers": {"Content-Type": "application/json"}, "body": '{"a":1}',
    },
    "api bearer token ok": {"headers": {"Authorization": "Token tok"}},
    "api basic empty password": {"headers": {"Authorization": "Basic dTo="}},
}  # fmt: skip
"""The app builds the request of a test differently from that of a call."""


def secret_of(case: dict[str, Any]) -> str | None:
    options = case.get("options") or {}
    secret: str | None = options.get("token") or options.get("refreshed")
    return secret if case["config"].get("isAuthenticated") else None


@pytest.mark.parametrize("case", APIS, ids=lambda case: case["name"])
def test_an_api_is_asked_as_recorded(case: dict[str, Any]) -> None:
    if not case["requests"]:
        with pytest.raises(Unfit):
            api_request(case["config"], secret_of(case))
        return
    secret = None if "refreshed" in case["options"] else secret_of(case)  # a test refreshes nothing
    request = api_request(case["config"], secret)
    made = {"method": request.method, "url": request.url, "headers": dict(request.headers), "body": request.body}
    expected = {**case["requests"][0], **OTHERWISE.get(case["name"], {})}
    assert made == expected


@pytest.mark.parametrize("case", SERVERS, ids=lambda case: case["name"])
def test_a_server_gets_the_recorded_headers(case: dict[str, Any]) -> None:
    probe = case["mcpProbe"]
    token = "plain" if case["name"] == "mcp http header names, plain token dropped" else probe.get("accessToken")
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    assert mcp_headers(case["config"], secret_of(case)) == {**probe.get("headers", {}), **bearer}


def config_of(source: str, tree: str = "workspace") -> dict[str, Any]:
    config: dict[str, Any] = json.loads((GOLDEN / tree / "sources" / source / "config.json").read_text("utf-8-sig"))
    return config


CONNECTIONS = [
    (tree, one["folder"], one["server"])
    for tree in ("workspace", "lenient")
    for one in json.loads((GOLDEN / "expected.json").read_bytes())["groups"][tree]
    if one.get("server")
]


@pytest.mark.parametrize(("tree", "folder", "server"), CONNECTIONS)
def test_a_server_is_tested_with_what_a_session_would_give_it(tree: str, folder: str, server: dict[str, Any]) -> None:
    config = config_of(folder, tree)
    if (built := server["token"])["type"] == "stdio":
        assert environment({}, config) == built.get("env", {})
        return
    assert (config["mcp"].get("transport", "http"), config["mcp"]["url"].rstrip("/")) == (built["type"], built["url"])
    assert mcp_headers(config, "fake-token") == built.get("headers", {})
    if (open_to_all := server["noCredential"]) is not None:
        assert mcp_headers(config, None) == open_to_all.get("headers", {})


CALLS = [
    call
    for call in json.loads((GOLDEN / "api-requests.json").read_bytes())["requests"]
    if call["args"]["method"] in ("GET", "POST")
    and not call["args"].get("params")
    and call.get("request")
    # A credential that a session fetches is no other case here, and the ones without are cases of source-test.json.
    and call["credential"] not in ("getter", "")
]
NO_SUCH_CREDENTIAL = {"header multi given a plain string": Unfit, "basic given a string": None}
"""The app sends nothing, or another header; `source-test.json` has it otherwise."""


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["name"])
def test_an_api_is_asked_as_in_a_call_of_its_tool(call: dict[str, Any]) -> None:
    config, credential, changed = config_of(call["source"]), call["credential"], dict(call.get("override") or {})
    if "auth" in changed:  # settings of the tool, which stand for the whole of the source's
        auth = changed.pop("auth")
        for name in ("headerName", "headerNames", "queryParam", "authScheme"):
            config["api"].pop(name, None)
        changed |= {"authType" if name == "type" else name: member for name, member in auth.items()}
    endpoint = {"method": call["args"]["method"], "path": call["args"]["path"]}
    config["api"] |= {**changed, "testEndpoint": endpoint}
    secret = json.dumps(credential) if isinstance(credential, dict) else credential
    if call["name"] in NO_SUCH_CREDENTIAL:
        if (refusal := NO_SUCH_CREDENTIAL[call["name"]]) is not None:
            with pytest.raises(refusal):
                api_request(config, secret)
        return
    made, recorded = api_request(config, secret), call["request"]
    headers = {name.lower(): value for name, value in recorded["headers"].items() if name != "Content-Type"}
    assert (made.method, made.url.rstrip("/")) == (recorded["method"], recorded["url"].rstrip("/"))
    assert {name.lower(): value for name, value in made.headers.items()} == headers


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_written_is_as_recorded(case: dict[str, Any]) -> None:
    written = case["written"]
    if written is None or written["connectionStatus"] is None:
        return  # nothing was tried
    outcome = Outcome(STATUS[written["connectionStatus"]], written["connectionError"])
    patch = marks(case["config"], outcome, 5, case["options"].get("autoEnable", True))
    after = {**case["config"], **patch["set"]}
    assert (after["enabled"], after["lastTestedAt"]) == (written["enabled"], 5)
    assert after.get("connectionError") == written["connectionError"]
    assert ("unset" in patch) == (outcome.status != FAILED)


@pytest.mark.parametrize(
    ("status", "shown", "expected"),
    [(200, True, CONNECTED), (204, False, CONNECTED), (301, False, FAILED), (404, True, FAILED), (429, False, FAILED),
     (401, True, FAILED), (403, True, FAILED), (401, False, NEEDS_AUTH), (403, False, NEEDS_AUTH), (500, True, FAILED)],
)  # fmt: skip
def test_an_answer_means_as_recorded_but_for_401_without_a_credential(status: int, shown: bool, expected: str) -> None:
    assert judge(status, shown).status == expected


def test_a_program_does_not_get_the_secrets_of_the_daemon() -> None:
    config = {"mcp": {"env": {"GH_TOKEN": "meant", "B": "2"}}}
    inherited = {"PATH": "/bin", "GITHUB_TOKEN": "x", "OPENAI_API_KEY": "x", "GH_TOKEN": "x", "B": "1"}
    assert environment(inherited, config) == {"PATH": "/bin", "GH_TOKEN": "meant", "B": "2"}


def test_no_member_of_a_tool_may_have_a_name_that_models_refuse() -> None:
    assert unusable_member({"properties": {"a.b-c_1": {"type": "string"}}}) is None
    assert unusable_member({"properties": {"a": {"items": [{"properties": {"$x": {}}}]}}}) == "$x"


NOTHING: dict[str, Any] = {"type": "mcp", "mcp": {"command": "x"}}


@pytest.mark.parametrize(
    ("secret", "told"),
    [("hush&1", "no: hush&1 hush%261"), ('{"K": "one"}', "no: one"), ('{"username":"u","password":""}', "Basic dTo=")],
)
def test_nothing_that_is_told_has_the_credential_in_any_form(secret: str, told: str) -> None:
    outcome = Outcome(FAILED, told, {"tools": [{"name": told}]}).without(hidden(NOTHING, secret))
    assert outcome.message is not None
    assert "***" in outcome.message
    assert outcome.found == {"tools": [{"name": outcome.message}]}
    assert not {"hush&1", "hush%261", "one", "dTo="} & set(outcome.message.split())


def test_what_the_configuration_shows_is_not_told_either() -> None:
    config = {"type": "mcp", "mcp": {"command": "x", "env": {"API_KEY": "by-hand-0123"}}}
    assert Outcome(FAILED, "no by-hand-0123").without(hidden(config, None)).message == "no ***"


def test_a_message_is_short() -> None:
    assert len(Outcome(FAILED, "x" * 1000).without(()).message or "") == 300
