"""Secrets in what people read are taken out; what is none stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftd.model.secret_text import (
    REDACTED,
    could_be_secret,
    is_called,
    is_shaped,
    names_a_secret,
    redacted,
    refers,
    without_secrets,
)

HUSH = "Tr0ub4dor9x"


@pytest.mark.parametrize(
    "text",
    [
        "use ghp_012345678901234567890123456789 for it",
        "key sk-ant-REDACTEDREDACTED0000 is",
        f"DB_PASSWORD={HUSH}",
        f"export API_KEY='{HUSH}'",
        f'{{"clientSecret": "{HUSH}"}}',
        f'"{{\\"api_key\\": \\"{HUSH}\\"}}"',
        f"X-Api-Key: {HUSH}",
        f"curl -H 'Authorization: Bearer {HUSH}abcdef' https://a.example",
        f"Authorization: Basic {HUSH}abcdef==",
        f"git clone https://me:{HUSH}@a.example/repo",
        f"serve --token {HUSH}",
        f"serve --api-key={HUSH}",
        f"https://a.example/x?access_token={HUSH}&page=2",
        f"password: {HUSH}",
        f"my password is such: token={HUSH}",
        f"-----BEGIN RSA PRIVATE KEY-----\nabc{HUSH}\n-----END RSA PRIVATE KEY-----\nafter",
        f"-----BEGIN PRIVATE KEY-----\ncut off {HUSH}",
        f"accessToken => '{HUSH}'",
        f"Authorization: Token {HUSH}",
        f'-H "Authorization: ApiKey {HUSH}"',
        f"Cookie: theme=dark; sid={HUSH}",
        f'"client_secret": "GOCSPX-(abc){HUSH}"',
        f"password = 'two words, {HUSH}'",
        f'"password": "ab&{HUSH}"',
        f"**Password:** {HUSH}",
        f"password: `{HUSH}`",
        f"`api_key`: `{HUSH}`",
        f"API key: {HUSH}",
        f"| password | {HUSH} |",
        f"DB_PASS={HUSH}",
        f"ENCRYPTION_KEY={HUSH}",
    ],
)
def test_a_secret_is_taken_out_of_a_text(text: str) -> None:
    without, count = redacted(text)
    assert count == 1
    assert REDACTED in without
    assert HUSH not in without
    assert "ghp_" not in without
    assert redacted(without) == (without, 0)


@pytest.mark.parametrize(
    "text",
    [
        "the token is stored in the vault; a password must be long enough",
        "set API_KEY=${API_KEY} and TOKEN={{token}}",
        "max_tokens: 4096, author: Somebody-Else, tokenizer = /srv/models/One2",
        "see https://me@a.example/x and http://localhost:8080/y@z",
        "the tokens of a text, secret santa, cookies and bearer bonds",
        "authentication: required",
        "Authorization: see the guide",
        "| Token | Description |",
        "the API key is needed",
        "--token-file /run/secrets/Token1",
        "def authorize(user: User, mode: Mode) -> None: ...",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert redacted(text) == (text, 0)


@given(st.text(max_size=200))
def test_a_text_without_secrets_is_the_same_text(text: str) -> None:
    without, count = redacted(text)
    assert (without == text) == (count == 0)


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJabcde-",
        "eyJ.",
        "eyJabcdefgh.",
        "sk-",
        "bearer ",
        "{{",
        "-----BEGIN ",
        "a=",
        "://a:",
        "Cookie: a",
        "password: '",
        "-----BEGIN PRIVATE KEY-----",
        "api ",
    ],
)
def test_a_long_text_of_beginnings_is_done_with(piece: str) -> None:
    """What took quadratic time would be at it for hours."""
    text = piece * (2**18 // len(piece))
    redacted(text)
    is_shaped(text)
    refers(text)


@given(st.text("abc:/=-@ \n\"'tokenpwd9X", max_size=3000))
def test_odd_texts_take_no_time_that_matters(text: str) -> None:
    redacted(text)


def test_members_are_taken_out_wherever_they_stand() -> None:
    value = {"a": [{"clientSecret": HUSH, "url": f"https://u:{HUSH}@h/", "token": "${T}"}], "n": 3}
    without, count = without_secrets(value)
    assert count == 2
    assert HUSH not in json.dumps(without)
    assert without["a"][0]["token"] == "${T}"


@pytest.mark.parametrize("name", ["clientSecret", "api_key", "apiKey", "token", "botToken", "password", "user_token"])
def test_a_member_that_is_called_like_a_secret_names_one(name: str) -> None:
    assert names_a_secret(name)
    assert could_be_secret(name)


@pytest.mark.parametrize("name", ["tokenUrl", "authType", "piAuthProvider", "inputTokens", "secretary", "keyboard"])
def test_a_member_that_says_something_about_one_names_none(name: str) -> None:
    assert not names_a_secret(name)


def test_a_name_that_refuses_a_change_is_a_name_that_leaves_nothing() -> None:
    for name in ("X-Api-Key", "DB_PASSWORD", "cookie", "--auth", "refreshToken"):
        assert is_called(name)
        assert could_be_secret(name)
    assert not is_called("TOKENIZER_DIR")
    assert not is_called("max-tokens")


def test_a_key_without_an_end_takes_no_more_than_its_paragraph() -> None:
    text = "Grep for `-----BEGIN RSA PRIVATE KEY-----` and go on.\n\n-----BEGIN PRIVATE KEY-----\nMIIEvQ\n\nAfter it."
    assert redacted(text) == (f"Grep for `{REDACTED}` and go on.\n\n{REDACTED}\n\nAfter it.", 2)


def test_lists_and_pairs_that_are_called_like_a_secret_are_looked_into() -> None:
    given = {"password": [HUSH, "${X}"], "headers": [{"name": "Authorization", "value": f"Token {HUSH}"}], "n": "name"}
    without, count = without_secrets(given)
    assert HUSH not in json.dumps(without)
    assert (count, without["password"][1], without["n"]) == (2, "${X}", "name")
