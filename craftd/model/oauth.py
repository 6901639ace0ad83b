"""Signing in to what a source needs: which requests to make, and what their answers mean.  App 0.11.1, RFC 6749, 7636.

Nothing here talks to anybody. A step is a generator that yields requests and is sent what came back for each.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from attrs import field, frozen

from craftd.model import json_text
from craftd.model.oauth_services import GOOGLE, MICROSOFT, SLACK, Service
from craftd.model.records import Record

RELAY: Final = "https://agents.craft.do/auth"
"""Sends a browser on to where the state says: for programs behind a web address, and for services that want HTTPS."""

PUBLIC_CLIENT: Final = "craft-agent"
"""Client id where a server registers nobody."""

CLIENT_NAME: Final = "craftd"

FOREVER: Final = 366 * 86_400
"""Seconds; a longer life of a token is a mistake."""

MCP_LIFE: Final = 3600
"""Seconds that a token of an MCP server lives when nothing is said of it."""

_FORM = "application/x-www-form-urlencoded"
_WELL_KNOWN = "/.well-known/oauth-authorization-server"


class SignInFailed(Exception):
    """It cannot go on; the text is for people and holds no secret."""


class NotSignedIn(SignInFailed):
    """This source is not signed in to, or does not say how."""


@frozen
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: str | None = field(default=None, repr=False)


@frozen
class Reply:
    """status: 0 = nothing came back. headers: by lower-case name."""

    status: int
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def record(self) -> Record:
        """The JSON object in it; empty for anything else."""
        try:
            found = json_text.loads(self.body)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


T = TypeVar("T")
Steps: TypeAlias = Generator[Request, Reply, T]


@frozen(kw_only=True)
class Wanted:
    """Where the browser is to come back to: a *port* of this machine, or a *url*.

    random(n): n random bytes. environment: of the daemon; some clients are registered there.
    """

    random: Callable[[int], bytes]
    port: int | None = None
    url: str | None = None
    environment: Mapping[str, str] = field(factory=dict)

    def back_to(self, path: str) -> str:
        return f"{RELAY}/callback" if self.url is not None else f"http://localhost:{self.port}{path}"

    def state(self, inner: str) -> str:
        """The state to send: with an address of one's own the relay's envelope around *inner*."""
        return inner if self.url is None else envelope(self.url, inner)


@frozen(kw_only=True)
class Flow:
    """A sign-in that has begun. state: what comes back with the code. verifier: "" where there is no PKCE."""

    provider: str
    url: str
    state: str
    token_url: str
    redirect_uri: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    verifier: str = field(default="", repr=False)


@frozen
class Tokens:
    """entry: what is stored. account: whose it is, as the service says."""

    entry: Record = field(repr=False)
    account: str | None = None


def envelope(back: str, inner: str) -> str:
    """State for the relay."""
    return "ca1." + _base64url(json_text.dumps({"v": 1, "r": back, "s": inner}))


def challenge(verifier: str) -> str:
    """RFC 7636, S256."""
    return _base64url(sha256(verifier.encode()).digest())


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


# Beginning


def begin(config: Record, wanted: Wanted) -> Steps[Flow]:
    """The sign-in for a source. Raises: SignInFailed, also for a source that needs none."""
    kind = config.get("type")
    block = config.get(kind) if isinstance(kind, str) else None
    block = block if isinstance(block, dict) else {}
    if kind == "mcp" and block.get("transport") != "stdio" and isinstance(block.get("url"), str):
        return (yield from _discovered("mcp", block["url"], block.get("clientId"), wanted))
    if kind != "api":
        raise NotSignedIn("only api sources and mcp servers with an address are signed in to")
    provider = config.get("provider")
    if provider == "google":
        return _google(block, wanted)
    if provider == "slack":
        return _slack(block, wanted)
    if provider == "microsoft":
        return _microsoft(block, wanted)
    if block.get("authType") != "oauth":
        raise NotSignedIn("its authType is not oauth")
    if isinstance(block.get("oauth"), dict):
        return _declared(block["oauth"], wanted)
    if not isinstance(block.get("baseUrl"), str):
        raise NotSignedIn("it has no baseUrl")
    return (yield from _discovered("generic", block["baseUrl"], None, wanted))


def _flow(provider: str, wanted: Wanted, endpoint: str, params: Mapping[str, str], **more: Any) -> Flow:
    """params: in the order of the address; `state` and the challenge are filled in."""
    verifier = _base64url(wanted.random(32)) if "code_challenge" in params else ""
    inner = params["state"]
    filled = {**params, "state": wanted.state(inner)}
    if verifier:
        filled |= {"code_challenge": challenge(verifier), "code_challenge_method": "S256"}
    joint = "&" if urlsplit(endpoint).query else "?"
    return Flow(
        provider=provider,
        url=f"{endpoint}{joint}{urlencode(filled)}",
        state=inner,
        redirect_uri=params["redirect_uri"],
        client_id=params["client_id"],
        verifier=verifier,
        **more,
    )


_PKCE = {"code_challenge": "", "code_challenge_method": "S256"}


def _declared(oauth: Record, wanted: Wanted) -> Flow:
    for name in ("authorizationUrl", "tokenUrl", "clientId"):
        if not isinstance(oauth.get(name), str) or not oauth[name]:
            raise NotSignedIn(f"api.oauth.{name} is missing")
    _permitted(oauth["tokenUrl"], oauth["tokenUrl"])
    scopes, audience, extra = oauth.get("scopes"), oauth.get("audience"), oauth.get("extraParams")
    secret = oauth.get("clientSecret")
    return _flow(
        "generic",
        wanted,
        oauth["authorizationUrl"],
        {
            "client_id": oauth["clientId"],
            "redirect_uri": wanted.back_to("/callback"),
            "response_type": "code",
            "state": _base64url(wanted.random(16)),
            **_PKCE,
            **({"scope": " ".join(map(str, scopes))} if isinstance(scopes, list) and scopes else {}),
            **({"audience": audience} if isinstance(audience, str) and audience else {}),
            **({name: str(value) for name, value in extra.items()} if isinstance(extra, dict) else {}),
        },
        token_url=oauth["tokenUrl"],
        client_secret=secret if isinstance(secret, str) and secret else None,
    )


def _discovered(provider: str, url: str, client_id: Any, wanted: Wanted) -> Steps[Flow]:
    found = yield from discover(url)
    redirect = wanted.back_to("/oauth/callback")
    if not isinstance(client_id, str) or not client_id:
        client_id = yield from _registered(found.get("registration_endpoint"), url, redirect)
    return _flow(
        provider,
        wanted,
        found["authorization_endpoint"],
        {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": redirect,
            "state": wanted.random(16).hex(),
            **_PKCE,
        },
        token_url=found["token_endpoint"],
    )


def discover(url: str) -> Steps[Record]:
    """Metadata of the authorization server of *url* (RFC 9728, RFC 8414). Raises: SignInFailed."""
    _permitted(url, url)
    reply = yield Request("HEAD", url)
    if reply.status == 405:
        reply = yield Request("GET", url)
    if reply.status == 405:
        reply = yield Request("POST", url, {"Content-Type": "application/json"}, "{}")
    named = re.search(r'resource_metadata="?([^",\s]+)', reply.headers.get("www-authenticate", ""))
    if reply.status == 401 and named is not None and _may_lead_to(named.group(1), url):
        servers = (yield Request("GET", named.group(1))).record.get("authorization_servers")
        server = servers[0] if isinstance(servers, list) and servers else None
        if isinstance(server, str) and _may_lead_to(server, url):
            found = (yield Request("GET", server.rstrip("/") + _WELL_KNOWN)).record
            if _usable(found, url):
                return found
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    for path in dict.fromkeys(("", parts.path if parts.path != "/" else "")):
        found = (yield Request("GET", origin + _WELL_KNOWN + path)).record
        if _usable(found, url):
            return found
    raise SignInFailed(f"{origin} does not say where to sign in")


def _usable(found: Record, url: str) -> bool:
    ends = [found.get(name) for name in ("authorization_endpoint", "token_endpoint")]
    return all(isinstance(end, str) and _may_lead_to(end, url) for end in ends)


def _registered(endpoint: Any, url: str, redirect: str) -> Steps[str]:
    """A client id: RFC 7591, without a secret."""
    if not isinstance(endpoint, str) or not endpoint:
        return PUBLIC_CLIENT
    _permitted(endpoint, url)
    body = {
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    headers = {"Content-Type": "application/json"}
    reply = yield Request("POST", endpoint, headers, json_text.dumps(body).decode())
    if reply.status in (401, 403):
        return PUBLIC_CLIENT
    client_id = reply.record.get("client_id")
    if reply.status not in (200, 201) or not isinstance(client_id, str) or not client_id:
        raise SignInFailed(f"the registration of a client failed ({reply.status or 'no answer'})")
    return client_id


def _may_lead_to(target: str, source: str) -> bool:
    """HTTPS to a public host; a host that the source itself names may be anything."""
    try:
        there, here = urlsplit(target), urlsplit(source)
        host = there.hostname or ""
        if there.scheme not in ("http", "https") or not host:
            return False
        if host == here.hostname:
            return there.scheme == "https" or here.scheme == "http"
    except ValueError:
        return False
    return there.scheme == "https" and not _is_private(host)


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False


def _permitted(target: str, source: str) -> None:
    if not _may_lead_to(target, source):
        raise NotSignedIn(f"{target!r} is no address to send secrets to")


# Services with rules of their own


def _scopes(service: Service, block: Record) -> list[str]:
    own = block.get(service.scopes_member)
    if isinstance(own, list) and own:
        return [scope for scope in own if isinstance(scope, str)]
    name = service.named(block.get(service.member), block.get("baseUrl"))
    if name is None:
        raise NotSignedIn(f"which service it is cannot be told: set api.{service.member}")
    return list(service.scopes[name])


def _with(scopes: list[str], *always: str) -> str:
    return " ".join([*scopes, *(scope for scope in always if scope not in scopes)])


def _google(block: Record, wanted: Wanted) -> Flow:
    id, secret = (
        block.get(member) or wanted.environment.get(variable)
        for member, variable in (
            ("googleOAuthClientId", "GOOGLE_OAUTH_CLIENT_ID"),
            ("googleOAuthClientSecret", "GOOGLE_OAUTH_CLIENT_SECRET"),
        )
    )
    if not isinstance(id, str) or not isinstance(secret, str):
        raise NotSignedIn("api.googleOAuthClientId and $GOOGLE_OAUTH_CLIENT_SECRET are needed")
    return _flow(
        "google",
        wanted,
        GOOGLE.authorize,
        {
            "client_id": id,
            "redirect_uri": wanted.back_to("/callback"),
            "response_type": "code",
            "scope": _with(_scopes(GOOGLE, block), "https://www.googleapis.com/auth/userinfo.email"),
            "state": wanted.random(16).hex(),
            **_PKCE,
            "access_type": "offline",
            "prompt": "consent",
        },
        token_url=GOOGLE.token,
        client_secret=secret,
    )


def _slack(block: Record, wanted: Wanted) -> Flow:
    id, secret = (wanted.environment.get(name) for name in ("SLACK_OAUTH_CLIENT_ID", "SLACK_OAUTH_CLIENT_SECRET"))
    if not id or not secret:
        raise NotSignedIn("$SLACK_OAUTH_CLIENT_ID and $SLACK_OAUTH_CLIENT_SECRET are needed")
    redirect = f"{RELAY}/slack/callback?port={wanted.port}" if wanted.url is None else f"{RELAY}/callback"
    params = {
        "client_id": id,
        "redirect_uri": redirect,
        "state": wanted.random(16).hex(),
        "user_scope": ",".join(_scopes(SLACK, block)),
    }
    return _flow("slack", wanted, SLACK.authorize, params, token_url=SLACK.token, client_secret=secret)


def _microsoft(block: Record, wanted: Wanted) -> Flow:
    id = wanted.environment.get("MICROSOFT_OAUTH_CLIENT_ID")
    if not id:
        raise NotSignedIn("$MICROSOFT_OAUTH_CLIENT_ID is needed")
    return _flow(
        "microsoft",
        wanted,
        MICROSOFT.authorize,
        {
            "client_id": id,
            "redirect_uri": wanted.back_to("/callback"),
            "response_type": "code",
            "scope": _with(_scopes(MICROSOFT, block), "https://graph.microsoft.com/User.Read", "offline_access"),
            "state": wanted.random(16).hex(),
            **_PKCE,
            "response_mode": "query",
            "prompt": "consent",
        },
        token_url=MICROSOFT.token,
    )


# Ending


def exchange(flow: Flow, code: str, now: int) -> Steps[Tokens]:
    """What the *code* of a flow is worth. now: ms since 1970 UTC. Raises: SignInFailed."""
    form = {
        "client_id": flow.client_id,
        "client_secret": flow.client_secret,
        "code": code,
        "code_verifier": flow.verifier or None,
        "grant_type": "authorization_code",
        "redirect_uri": flow.redirect_uri,
    }
    headers = {"Content-Type": _FORM, "Accept": "application/json"}
    if flow.provider == "slack":
        basic = b64encode(f"{flow.client_id}:{flow.client_secret}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
        form = {"code": code, "redirect_uri": flow.redirect_uri}
    body = urlencode({name: value for name, value in form.items() if value is not None})
    reply = yield Request("POST", flow.token_url, headers, body)
    answer = _answer(reply)
    given = answer.get("authed_user") if flow.provider == "slack" else answer
    given = given if isinstance(given, dict) else answer
    token = given.get("access_token")
    refused = answer.get("error") or (flow.provider == "slack" and answer.get("ok") is not True)
    if reply.status != 200 or refused or not isinstance(token, str) or not token:
        raise SignInFailed(f"no token was given for the code ({_reason(answer) or reply.status or 'no answer'})")
    entry: Record = {"value": token}
    if isinstance(refresh := given.get("refresh_token"), str) and refresh:
        entry["refreshToken"] = refresh
    if (life := _seconds(given.get("expires_in"), MCP_LIFE if flow.provider == "mcp" else None)) is not None:
        entry["expiresAt"] = now + life * 1000
    if flow.provider in ("mcp", "generic", "google"):
        entry["clientId"] = flow.client_id
        if flow.client_secret is not None:
            entry["clientSecret"] = flow.client_secret
    return Tokens(entry, (yield from _account(flow, answer, token)))


def _answer(reply: Reply) -> Record:
    """JSON, or a form as some servers still answer."""
    if reply.record:
        return reply.record
    if _FORM in reply.headers.get("content-type", ""):
        return dict(parse_qsl(reply.body.decode("utf-8", "replace")))
    return {}


def _reason(answer: Record) -> str | None:
    """The error code of RFC 6749; nothing longer, which might repeat what was sent."""
    error = answer.get("error")
    return error if isinstance(error, str) and re.fullmatch(r"[a-z0-9_.-]{1,60}", error) else None


def _seconds(raw: object, otherwise: int | None) -> int | None:
    """Numeric text counts as the number; what can be no time is not known."""
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) < 12:
        raw = int(raw)
    known = isinstance(raw, int | float) and not isinstance(raw, bool) and 0 < raw < FOREVER
    return int(raw) if known and isinstance(raw, int | float) else otherwise


def _account(flow: Flow, answer: Record, token: str) -> Steps[str | None]:
    """A name to show; that there is none hinders nothing."""
    if flow.provider == "slack":
        team = answer.get("team")
        name = team.get("name") if isinstance(team, dict) else None
        return name if isinstance(name, str) else None
    service = {"google": GOOGLE, "microsoft": MICROSOFT}.get(flow.provider)
    if service is None or service.who is None:
        return None
    told = (yield Request("GET", service.who, {"Authorization": f"Bearer {token}"})).record
    return next(
        (told[name] for name in ("email", "mail", "userPrincipalName") if isinstance(told.get(name), str)), None
    )
