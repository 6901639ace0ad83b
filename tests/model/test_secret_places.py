"""Secrets in the configuration of a source: found where they are, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from craftd.model.secret_places import secrets_in

GOLDEN = Path(__file__).parents[1] / "golden/sources"


def config(tree: str, folder: str) -> Any:
    return json.loads((GOLDEN / tree / "sources" / folder / "config.json").read_text("utf-8-sig"))


@pytest.mark.parametrize("folder", sorted(path.name for path in (GOLDEN / "workspace/sources").iterdir()))
def test_a_recorded_good_source_shows_none(folder: str) -> None:
    assert secrets_in(config("workspace", folder)) == {}


def test_recorded_secrets_are_found_in_their_places() -> None:
    assert list(secrets_in(config("lenient", "secrets-inside"))) == [
        "api.defaultHeaders.Authorization",
        "api.googleOAuthClientSecret",
        "api.oauth.clientSecret",
    ]
    assert list(secrets_in(config("lenient", "stdio-env-secret"))) == ["mcp.env.SRV_TOKEN"]


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"headers": {"X-Api-Key": "a8Fh2kk01"}}, "mcp.headers.X-Api-Key"),
        ({"headers": {"cookie": "sid=1"}}, "mcp.headers.cookie"),
        ({"headers": {"X-Any": "ghp_012345678901234567890123456789"}}, "mcp.headers.X-Any"),
        ({"env": {"DB_PASSWORD": "Tr0ub4dor"}}, "mcp.env.DB_PASSWORD"),
        ({"url": "https://me:hush@a.example/mcp"}, "mcp.url"),
        ({"url": "https://a.example/mcp?api_key=0123abcd"}, "mcp.url"),
        ({"args": ["serve", "--token", "Abc123"]}, "mcp.args.2"),
        ({"args": ["--api-key=Abc123"]}, "mcp.args.0"),
        ({"args": ["sk-ant-0123456789abcdef0123"]}, "mcp.args.0"),
        ({"oauth": {"clientSecret": "hush"}}, "mcp.oauth.clientSecret"),
    ],
)
def test_a_secret_is_found(block: Any, path: str) -> None:
    assert list(secrets_in({"mcp": block})) == [path]


@pytest.mark.parametrize(
    "block",
    [
        {"headers": {"Authorization": "Bearer ${TOKEN}", "X-Api-Key": "{{token}}", "X-Region": "north-1"}},
        {"env": {"TOKEN": "$TOKEN", "TOKENIZER_DIR": "/srv/Models1", "AUTHOR": "Somebody Else", "API_KEY": ""}},
        {"url": "https://me@a.example/mcp?format=json&page_token_size=10"},
        {"args": ["--token", "${TOKEN}", "--max-tokens", "2000", "--token-file", "/run/secret/Token1"]},
        {"authType": "bearer", "headerNames": ["X-Api-Key"], "oauth": {"tokenUrl": "https://a.example/token"}},
    ],
)
def test_what_only_looks_a_little_like_one_is_let_be(block: Any) -> None:
    assert secrets_in({"mcp": block, "guide": "use ghp_012345678901234567890123456789"}) == {}
