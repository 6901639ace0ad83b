"""What records can look like: the values that break naive code, more often than chance would have them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

texts = st.one_of(
    st.text(max_size=8),
    st.text(st.characters(exclude_categories=()), max_size=6),
    st.sampled_from(
        [
            "\ud83d",
            "\ude00\ud83d",
            "😀",
            "\x00\x1f",
            "\u2028\ufeff",
            "{{SESSION_PATH}}",
            "\\u007b{SESSION_PATH}}",
            "~/x",
        ]
    ),
)
"""Any text: lone surrogates, control characters, noncharacters, what looks like our own escapes."""

keys = st.one_of(
    st.sampled_from(
        ["a", "b", "id", "class", "jsonrpc", "__proto__", "constructor", "", "0", "12", "01", "-1", "a/b", "m~1n", "~"]
    ),
    texts,
)
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0.0, -0.0, 1.0, 1e21, 1e20, 1e16, 1e-7, 5e-324, 0.1, 2.0**53, 1772787600000.5]),
    st.floats(allow_nan=False, allow_infinity=False),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)
records: st.SearchStrategy[dict[str, Any]] = st.dictionaries(keys, json_values, max_size=6)
"""Any JSON object, nulls, big integers and odd keys included."""

message_records: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda fixed, more: {**more, **fixed},
    st.fixed_dictionaries(
        {
            "id": st.text("abcdefghijklmnop0123456789-", min_size=1, max_size=12),
            "content": texts,
            "timestamp": st.integers(0, 2**42),
            "type": st.sampled_from(
                ["user", "assistant", "tool", "error", "status", "info", "warning", "plan", "auth-request", "odd"]
            ),
        },
        optional={"isIntermediate": st.booleans(), "hidden": st.booleans()},
    ),
    st.dictionaries(keys.filter(lambda key: key not in {"role", "isIntermediate", "hidden"}), json_values, max_size=3),
)
"""Messages as they may be stored: the required fields are sound, the others are anything."""
