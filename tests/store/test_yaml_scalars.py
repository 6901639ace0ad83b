from __future__ import annotations

from typing import Any

import pytest

from craftd.store.yaml_scalars import is_other_than_text, plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("Null", None), ("nULL", "nULL"),
        ("true", True), ("FALSE", False), ("yes", "yes"), ("off", "off"), ("tRue", "tRue"),
        ("0", 0), ("-12", -12), ("1_000", 1000), ("010", 8), ("089", "089"), ("0x1F", 31), ("0b101", 5), ("1:30", 90),
        ("12:30:45", 45045), ("1_", "1_"), ("_1", "_1"), ("0x", "0x"), ("0:30", "0:30"), ("1:60", "1:60"),
        ("1.5", 1.5), ("1.10", 1.1), ("2.", 2), (".5", 0.5), ("1e3", 1000), ("1:30.5", 90.5), ("-.5", "-.5"),
        (".inf", ".inf"), (".nan", ".nan"), ("1e999", "1e999"), ("9" * 5000, "9" * 5000),
        ("2026-07-01", "2026-07-01"), ("word", "word"), ("１２", "１２"),
    ],
)  # fmt: skip
def test_plain_words_mean_what_js_yaml_3_takes_them_for(text: str, value: Any) -> None:
    assert (plain(text), type(plain(text))) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("2026-07-01", "a date"), ("2026-7-1 10:00:00 +2", "a date"), (".inf", "a number"), ("12:30", "a number"),
        ("on", None), ("v1.2.3", None), ("2026-07", None),
    ],
)  # fmt: skip
def test_what_is_text_to_us_but_not_to_the_app_is_known(text: str, other: str | None) -> None:
    assert is_other_than_text(text) == other
