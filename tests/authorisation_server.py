"""A real authorisation server on loopback: metadata, registration, PKCE, one-time codes; with an MCP-like resource."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit


class AuthorisationServer(ThreadingHTTPServer):
    """tokens: access tokens that were given. answer: status and body of a path instead of what is right.

    arrived: a request came; it is answered once *hold* is set.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.clients: set[str] = {"known"}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: list[str] = []
        self.answer: dict[str, tuple[int, bytes]] = {}
        self.arrived, self.hold = threading.Event(), threading.Event()
        self.hold.set()


class _Handler(BaseHTTPRequestHandler):
    server: AuthorisationServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.arrived.set()
        self.server.hold.wait(30)
        if path in self.server.answer:
            status, answer = self.server.answer[path]
            self._send(status, answer)
        elif path == "/mcp":
            told = {"WWW-Authenticate": f'Bearer resource_metadata="{self.server.url}/prm"'}
            self._send(401, b"", told)
        elif path == "/prm":
            self._json({"authorization_servers": [self.server.url]})
        elif path == "/.well-known/oauth-authorization-server":
            ends = {"authorization": "authorize", "token": "token", "registration": "register"}
            self._json({f"{name}_endpoint": f"{self.server.url}/{end}" for name, end in ends.items()})
        elif path == "/register":
            id = secrets.token_hex(4)
            self.server.clients.add(id)
            self._json({"client_id": id, **json.loads(body)}, 201)
        elif path == "/authorize":
            self._authorize(dict(parse_qsl(urlsplit(self.path).query)))
        elif path == "/token":
            self._token(dict(parse_qsl(body.decode())))
        else:
            self._send(404, b"")

    def _authorize(self, asked: dict[str, str]) -> None:
        """As if the person had agreed."""
        if asked["client_id"] not in self.server.clients or asked["code_challenge_method"] != "S256":
            self._send(400, b"no such client")
            return
        code = secrets.token_hex(8)
        self.server.codes[code] = asked
        answer = urlencode({"code": code, "state": asked["state"]})
        self._send(302, b"", {"Location": f"{asked['redirect_uri']}?{answer}"})

    def _token(self, form: dict[str, str]) -> None:
        asked = self.server.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proved = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        same = asked is not None and all(asked[name] == form.get(name) for name in ("client_id", "redirect_uri"))
        if asked is None or not same or asked["code_challenge"] != proved:
            self._json({"error": "invalid_grant", "error_description": f"bad code {form.get('code')}"}, 400)
            return
        self.server.tokens.append(f"access-{secrets.token_hex(8)}")
        self._json({"access_token": self.server.tokens[-1], "refresh_token": "refresh-s3cret", "expires_in": 3600})

    def _json(self, body: Any, status: int = 200) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving() -> Iterator[AuthorisationServer]:
    server = AuthorisationServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
