"""Signing in, compared with what the app asks and makes of the answers; and servers that lead astray."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.oauth import Flow, Reply, Request, SignInFailed, Wanted, begin, challenge, envelope, exchange

RECORDED = json.loads((Path(__file__).parents[1] / "golden/credentials/oauth.json").read_bytes())
NOW = 1_780_000_000_000
T = TypeVar("T")

MCP = {"type": "mcp", "mcp": {"transport": "http", "url": "https://mcp.harbor.example/v1/mcp/", "authType": "oauth"}}
PILOT = {
    "authorizationUrl": "https://id.pilot.example/authorize",
    "tokenUrl": "https://id.pilot.example/token",
    "clientId": "pilot-client",
    "scopes": ["board:read", "board:write"],
    "audience": "https://api.pilot.example/",
    "extraParams": {"access_type": "offline"},
}
ENDPOINTS = {"authorization_endpoint": "https://id.example/authorize", "token_endpoint": "https://id.example/token"}
ENVIRONMENT = {
    "SLACK_OAUTH_CLIENT_ID": "slack-id",
    "SLACK_OAUTH_CLIENT_SECRET": "slack-secret",
    "MICROSOFT_OAUTH_CLIENT_ID": "ms-id",
}


def api(provider: str, **block: Any) -> dict[str, Any]:
    return {"type": "api", "provider": provider, "api": {"baseUrl": "https://api.example/", **block}}


def google(**block: Any) -> dict[str, Any]:
    client = {"googleOAuthClientId": "000-fake.apps.example", "googleOAuthClientSecret": "fake-gsecret"}
    return api("google", **{**client, **block})


CONFIGS: dict[str, dict[str, Any]] = {
    "mcp stdio": {"type": "mcp", "mcp": {"transport": "stdio", "command": "x"}},
    "generic, explicit block": api("pilot", authType="oauth", oauth=PILOT),
    "generic, discovery": api("ferry", authType="oauth", baseUrl="https://ferry.example/my/api/v1/"),
    "google, service": google(googleService="gmail"),
    "google, own scopes": google(googleScopes=["s1", "s2"]),
    "google, service cannot be told": google(),
    "google, no client secret": google(googleService="gmail", googleOAuthClientSecret=None),
    "slack, service": api("slack", slackService="messaging"),
    "slack, default full": api("slack"),
    "slack, web callback": api("slack", slackService="messaging"),
    "microsoft, inferred from the url": api("microsoft", baseUrl="https://graph.microsoft.com/v1.0/me/drive"),
    "microsoft, own scopes": api("microsoft", microsoftScopes=["a", "b"]),
}


def server(name: str) -> Callable[[Request], Reply]:
    """The server of a recorded case."""
    registers = {} if "no registration endpoint" in name else {"registration_endpoint": "https://id.example/register"}
    metadata = reply({**ENDPOINTS, **registers})

    def answer(request: Request) -> Reply:
        if request.url == "https://id.example/register":
            refused = 403 if "403" in name else 500 if "500" in name else 0
            return Reply(refused) if refused else reply({"client_id": "dyn-1"}, 201)
        if request.url.endswith("/prm"):
            return reply({"authorization_servers": ["https://as.example/"]})
        if "/.well-known/" in request.url:
            return Reply(404) if "no metadata" in name or "private address" in name else metadata
        if "not allowed" in name and request.method != "POST":
            return Reply(405)
        host = "10.0.0.8" if "private address" in name else "mcp.harbor.example"
        told = f'Bearer resource_metadata="https://{host}/prm"' if "resource metadata" in name else "Bearer"
        return Reply(401, {"www-authenticate": told})

    return answer


def reply(body: Any, status: int = 200) -> Reply:
    return Reply(status, {"content-type": "application/json"}, json.dumps(body).encode())


def run(steps: Generator[Request, Reply, T], answer: Callable[[Request], Reply]) -> tuple[T, list[Request]]:
    asked: list[Request] = []
    try:
        request = next(steps)
        while True:
            asked.append(request)
            request = steps.send(answer(request))
    except StopIteration as end:
        return end.value, asked
    except SignInFailed as failure:
        failure.add_note(json.dumps([request.url for request in asked]))
        raise


def wanted(**options: Any) -> Wanted:
    return Wanted(random=bytes, environment=ENVIRONMENT, **options)


@pytest.mark.parametrize("case", RECORDED["prepare"], ids=lambda case: case["name"])
def test_a_sign_in_begins_as_in_the_app(case: dict[str, Any]) -> None:
    config = CONFIGS.get(case["name"], MCP)
    options = {"port": case["options"].get("callbackPort"), "url": case["options"].get("callbackUrl")}
    steps = begin(config, wanted(**options))
    if case.get("fails"):
        with pytest.raises(SignInFailed) as failed:
            run(steps, server(case["name"]))
        asked = json.loads(getattr(failed.value, "__notes__", ["[]"])[0])
        assert asked == [request["url"] for request in case["requests"]]
        return
    flow, requests = run(steps, server(case["name"]))
    for request, expected in zip(requests, case["requests"], strict=True):
        body = None if request.body is None else request.body.replace('"craftd"', '"<client name>"')
        assert (request.method, request.url, dict(request.headers), body) == tuple(expected.values())
    parts = urlsplit(flow.url)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == case["authUrl"]
    told, told_there = dict(parse_qsl(parts.query)), dict(case["params"])
    assert len(flow.state) == case["flow"]["stateLength"]
    if told_there.pop("state") == "<relay envelope>":
        assert told.pop("state") == envelope(case["options"]["callbackUrl"], flow.state)
    else:
        assert told.pop("state") == flow.state
    if told_there.get("code_challenge") is not None:
        told_there["code_challenge"] = challenge(flow.verifier)
        assert len(told["code_challenge"]) == 43
    assert told == told_there
    assert len(flow.verifier) == case["flow"]["codeVerifierLength"]
    assert (flow.provider, flow.client_id, flow.client_secret, flow.token_url, flow.redirect_uri) == (
        case["flow"]["provider"],
        case["flow"]["clientId"],
        case["flow"]["clientSecret"],
        case["flow"]["tokenEndpoint"],
        case["flow"]["redirectUri"],
    )


def test_the_state_for_the_relay_is_the_apps() -> None:
    relay = RECORDED["relay"]
    assert envelope(relay["returnTo"], relay["innerState"]) == relay["envelope"]


FLOWS = {
    "mcp": Flow(provider="mcp", client_id="cid", client_secret=None, token_url="https://id.example/token", url="",
                state="", redirect_uri="http://localhost:6477/callback", verifier="the-verifier"),
    "generic": Flow(provider="generic", client_id="cid", client_secret="csec", token_url="https://id.example/token",
                    url="", state="", redirect_uri="http://localhost:6477/callback", verifier="the-verifier"),
    "google": Flow(provider="google", client_id="cid", client_secret="csec", url="", state="",
                   token_url="https://oauth2.googleapis.com/token", redirect_uri="http://localhost:6477/callback",
                   verifier="the-verifier"),
    "slack": Flow(provider="slack", client_id="slack-id", client_secret="slack-secret", url="", state="",
                  token_url="https://slack.com/api/oauth.v2.access", redirect_uri="http://localhost:6477/callback"),
    "microsoft": Flow(provider="microsoft", client_id="ms-id", url="", state="", verifier="the-verifier",
                      token_url="https://login.microsoftonline.com/common/oauth2/v2.0/token",
                      redirect_uri="http://localhost:6477/callback"),
}  # fmt: skip

TOKENS = {"access_token": "a", "refresh_token": "r", "expires_in": 100}
ANSWERS = {
    "mcp": reply(TOKENS),
    "mcp without expires_in": reply({"access_token": "a"}),
    "mcp error": Reply(400, {}, b"no"),
    "generic": reply(TOKENS),
    "generic form answer": Reply(200, {"content-type": "application/x-www-form-urlencoded"}, b"access_token=a"),
    "generic error in a 200": reply({"error": "invalid_grant", "error_description": "the code was s3cret"}),
    "generic without access_token": reply({}),
    "google": reply({**TOKENS, "expires_in": 3599}),
    "slack": reply(
        {
            "ok": True,
            "team": {"name": "Crew"},
            "authed_user": {"access_token": "xoxp-fake", "refresh_token": "r", "expires_in": 43200},
        }
    ),
    "slack not ok": reply({"ok": False, "error": "bad_code"}),
    "microsoft": reply({**TOKENS, "expires_in": 3600}),
}


@pytest.mark.parametrize("case", RECORDED["exchange"], ids=lambda case: case["name"])
def test_a_code_is_exchanged_as_in_the_app(case: dict[str, Any]) -> None:
    flow = FLOWS[case["name"].split()[0]]

    def answer(request: Request) -> Reply:
        if request.method == "POST":
            return ANSWERS[case["name"]]
        return reply({"email": "ada@fake.example"} if flow.provider == "google" else {"mail": "ada@fake.example"})

    steps = exchange(flow, "the-code", NOW)
    expected = case["result"]
    if not expected["success"] or case["name"] == "generic without access_token":  # stored as if it were one
        with pytest.raises(SignInFailed) as failed:
            run(steps, answer)
        assert "s3cret" not in str(failed.value)
        return
    tokens, requests = run(steps, answer)
    for request, there in zip(requests, case["requests"], strict=True):
        assert (request.method, request.url) == (there["method"], there["url"])
        assert parse_qsl(request.body or "") == sorted(parse_qsl(there["body"] or ""))
        assert request.headers.items() >= there["headers"].items()
    stored = {"value": expected["accessToken"]}
    for ours, theirs in (
        ("refreshToken", "refreshToken"),
        ("expiresAt", "expiresAt"),
        ("clientId", "oauthClientId"),
        ("clientSecret", "oauthClientSecret"),
    ):
        if theirs in expected:
            stored[ours] = expected[theirs]
    assert (tokens.entry, tokens.account) == (stored, expected.get("email"))


@pytest.mark.parametrize(
    ("life", "expires"),
    [
        ("60", NOW + 60_000),
        (60.9, NOW + 60_000),
        ("x", None),
        (True, None),
        (-1, None),
        (1e300, None),
        ("9" * 50, None),
    ],
)
def test_how_long_a_token_lives(life: Any, expires: int | None) -> None:
    tokens, _ = run(exchange(FLOWS["generic"], "c", NOW), lambda _: reply({"access_token": "a", "expires_in": life}))
    assert tokens.entry.get("expiresAt") == expires


@pytest.mark.parametrize(
    "end",
    ["http://id.example/token", "https://127.0.0.1/t", "https://localhost/t", "https://[::1]/t", "https://10.1.2.3/t",
     "https://169.254.169.254/t", "file:///etc/passwd", "https://", "https://[", 7, None, ""],
)  # fmt: skip
def test_a_server_does_not_lead_secrets_astray(end: Any) -> None:
    def answer(request: Request) -> Reply:
        return reply({**ENDPOINTS, "token_endpoint": end})

    with pytest.raises(SignInFailed, match="does not say where"):
        run(begin(MCP, wanted(port=1)), answer)


def test_a_source_on_this_machine_may_sign_in_on_this_machine() -> None:
    here = "http://127.0.0.1:8000"
    config = {"type": "mcp", "mcp": {"url": f"{here}/mcp", "authType": "oauth", "clientId": "mine"}}
    ends = {"authorization_endpoint": f"{here}/authorize?a=b", "token_endpoint": f"{here}/token"}
    flow, requests = run(begin(config, wanted(port=1)), lambda request: reply(ends))
    assert flow.url.startswith(f"{here}/authorize?a=b&response_type=code&client_id=mine&")
    assert [request.method for request in requests] == ["HEAD", "GET"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["type", "api", "mcp", "url", "baseUrl", "authType", "oauth", "transport", "provider", "clientId"]


@given(st.dictionaries(st.sampled_from(NAMES), values | st.dictionaries(st.sampled_from(NAMES), values)), values)
def test_no_config_and_no_answer_breaks_a_sign_in(config: dict[str, Any], body: Any) -> None:
    for kind in ("api", "mcp", config.get("type")):
        try:
            run(begin({**config, "type": kind}, wanted(port=1)), lambda _: reply(body))
        except SignInFailed:
            pass
    for flow in FLOWS.values():
        try:
            run(exchange(flow, "code", NOW), lambda _: reply(body))
        except SignInFailed:
            pass
