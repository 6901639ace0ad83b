"""Icons that are written as text: an emoji or an address.  App 0.11.1."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from craftd.model.json_text import JS_WHITESPACE, utf16_length

if TYPE_CHECKING:
    import regex

LONGEST_EMOJI: Final = 20
"""UTF-16 units."""


def shown(icon: Any) -> str | None:
    """What to show for the member *icon*: trimmed; None for what is neither, such as a path or a flag."""
    if not isinstance(icon, str):
        return None
    text = icon.strip(JS_WHITESPACE)
    if text.startswith(("http://", "https://")):
        return text
    return text if _is_emoji(text) else None


def _is_emoji(text: str) -> bool:
    return 0 < utf16_length(text) <= LONGEST_EMOJI and not text.isascii() and _emoji().fullmatch(text) is not None


@cache
def _emoji() -> regex.Pattern[str]:
    """As the app knows them: without flags, keycaps and tones of skin."""
    import regex  # 30 ms: only who has such icons pays

    one = r"(?:\p{Emoji_Presentation}|\p{Emoji}\uFE0F)"
    return regex.compile(rf"(?V1){one}(?:\u200D{one})*+")
