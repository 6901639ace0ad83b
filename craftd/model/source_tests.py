"""Trying a source: which request to make, what an answer means, and what is written into its configuration."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

from attrs import evolve, field, frozen

from craftd.model.records import Record
from craftd.model.secret_places import secrets_in
from craftd.model.sources import authentication

CONNECTED: Final = "connected"
NEEDS_AUTH: Final = "needs_auth"
FAILED: Final = "failed"

LONGEST: Final = 4096
"""Characters of a text of a server that are told."""

NOT_INHERITED: Final = frozenset(
    {
        "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY", "STRIPE_SECRET_KEY",
        "NPM_TOKEN",
    }
)  # fmt: skip
"""Variables that a source's program does not get from the daemon."""


@frozen
class Request:
    """Its headers and address may hold a secret."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: str | None = field(default=None, repr=False)


@frozen
class Outcome:
    """message: why it is not connected. found: what was listed. late: its time was up."""

    status: Literal["connected", "needs_auth", "failed"]
    message: str | None = None
    found: Record = field(factory=dict)
    late: bool = False

    def without(self, words: Iterable[str]) -> Outcome:
        """With none of *words*, and a short message."""
        message = self.message and without(self.message, words)[:300]
        return evolve(self, message=message, found=without(self.found, words))


class Unfit(Exception):
    """The credential is not of the shape that the source needs. `str()` has nothing of it."""


def environment(inherited: Mapping[str, str], config: Record) -> dict[str, str]:
    """What the program of a stdio server gets."""
    kept = {name: value for name, value in inherited.items() if name not in NOT_INHERITED}
    return {**kept, **config["mcp"].get("env", {})}


def mcp_headers(config: Record, secret: str | None) -> dict[str, str]:
    """Static ones, under those from the credential if it holds headers; otherwise it is the token."""
    mcp = config["mcp"]
    headers = dict(mcp.get("headers", {}))
    if secret is None or authentication(config) is None:
        return headers
    if mcp.get("headerNames") and (given := _object(secret)):
        return _over(headers, {name: value for name, value in given.items() if name in mcp["headerNames"]})
    return _over(headers, {"Authorization": f"Bearer {secret}"})


def api_request(config: Record, secret: str | None) -> Request:
    """As a tool's call would be made, to the test endpoint if there is one.  Raises: Unfit."""
    api = config["api"]
    endpoint = api.get("testEndpoint")
    asked = endpoint or {}
    if authentication(config) is None:
        secret = None
    url = api["baseUrl"]
    if asked.get("path"):
        url = f"{url.removesuffix('/')}/{asked['path'].removeprefix('/')}"
    if secret is None and endpoint is None:
        return Request("HEAD", url, dict(api.get("defaultHeaders", {})))
    headers = {**api.get("defaultHeaders", {}), **asked.get("headers", {})}
    body = None
    if asked.get("method") == "POST" and "body" in asked:
        body = json.dumps(asked["body"], ensure_ascii=False, separators=(",", ":"))
        headers = _over(headers, {"Content-Type": "application/json"})
    if secret is not None:
        if api["authType"] == "query":
            url += f"{'&' if '?' in url else '?'}{api.get('queryParam') or 'api_key'}={quote(secret, safe='')}"
        else:
            headers = _over(headers, _proof(api, secret))
    return Request(asked.get("method", "GET"), url, headers, body)


def _proof(api: Record, secret: str) -> dict[str, str]:
    kind = api["authType"]
    if kind == "header":
        names = api.get("headerNames")
        if not names:
            return {api.get("headerName") or "X-API-Key": secret}
        given = _object(secret)
        if not given:
            raise Unfit("the credential must be a JSON object of the headers")
        return {name: given[name] for name in names if name in given}
    if kind == "basic":
        given = _object(secret)
        if given:
            return {"Authorization": f"Basic {_pair(given)}"}
        return {"Authorization": f"Basic {secret}"}
    return {"Authorization": f"{api.get('authScheme', 'Bearer')} {secret}".lstrip()}


def _pair(given: Mapping[str, str]) -> str:
    return base64.b64encode(f"{given.get('username', '')}:{given.get('password', '')}".encode()).decode()


def _object(secret: str) -> dict[str, str]:
    try:
        value = json.loads(secret)
    except ValueError:
        return {}
    return {name: str(member) for name, member in value.items()} if isinstance(value, dict) else {}


def _over(headers: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    named = {name.lower() for name in more}
    return {name: value for name, value in headers.items() if name.lower() not in named} | dict(more)


def judge(status: int, shown: bool) -> Outcome:
    """What the status of an api's answer means. shown: a credential was sent."""
    if 200 <= status < 300:
        return Outcome(CONNECTED)
    if status in (401, 403):
        if shown:
            return Outcome(FAILED, f"the service refuses the credential: {status}")
        return Outcome(NEEDS_AUTH, f"the service wants a credential: {status}")
    return Outcome(FAILED, f"the service answers {status}")


_MEMBER: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)


def unusable_member(schema: Any) -> str | None:
    """A member anywhere in a tool's schema whose name providers of models refuse."""
    if isinstance(schema, list):
        return next((name for inner in schema if (name := unusable_member(inner)) is not None), None)
    if not isinstance(schema, dict):
        return None
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name in properties:
            if _MEMBER.fullmatch(name) is None:
                return str(name)
    return next((name for inner in schema.values() if (name := unusable_member(inner)) is not None), None)


def marks(config: Record, outcome: Outcome, now: int, switch_on: bool) -> Record:
    """The patch that writes *outcome* into the configuration."""
    changed: Record = {"connectionStatus": outcome.status, "lastTestedAt": now}
    if outcome.status == CONNECTED and switch_on and not config.get("enabled"):
        changed["enabled"] = True
    if outcome.status == FAILED:
        return {"set": {**changed, "connectionError": outcome.message}}
    return {"set": changed, "unset": ["/connectionError"]}


def hidden(config: Record, secret: str | None) -> tuple[str, ...]:
    """What nobody may be told, the longest first: the credential in all its forms, and what the configuration shows."""
    words = {*secrets_in(config).values()}
    if secret is not None:
        given = _object(secret)
        words |= {secret, *given.values(), quote(secret, safe="")}
        if given:
            words.add(_pair(given))
    return tuple(sorted((word for word in words if word), key=len, reverse=True))


def without(told: Any, words: Iterable[str]) -> Any:
    """*told*, a text or JSON, with none of *words* in any text of it, nor more than the beginning of a long one."""
    if isinstance(told, str):
        for word in words:
            told = told.replace(word, "***")
        return told[:LONGEST]
    if isinstance(told, list):
        return [without(one, words) for one in told]
    if isinstance(told, dict):
        return {name: without(one, words) for name, one in told.items()}
    return told
