"""What every text has in which a regular expression matches: so that most texts need not be looked at with it."""

from __future__ import annotations

import re
from typing import Final

SHORTEST: Final = 3
"""Characters that are worth looking for."""

_TOKEN: Final = re.compile(r"\\[wWdDsSbBAZ]|\\([\W_])|(\[)|[\^$.()]|([^\\\[\](){}|?*+^$.#])", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?[^\[\]\\&~|-]+(?:-[A-Za-z0-9])*\]")
_TIMES: Final = re.compile(r"[?*+][?+]?|\{[0-9]*,?[0-9]*\}[?+]?")


def literal(expression: str) -> str:
    """A literal that *expression* (of `regex`, no flags in it) always matches, the longest; "" where none is certain.

    Cautious: choices, groups with a meaning and rare escapes make it give up.
    """
    if "|" in expression or "(?" in expression or "(*" in expression:
        return ""
    runs, run, depth, at = [""], "", 0, 0
    while at < len(expression):
        found = _TOKEN.match(expression, at)
        if found is None:
            return ""
        char = found[1] or found[3]
        if found[2]:
            found = _CLASS.match(expression, at)
            if found is None:
                return ""
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        at = found.end()
        times = _TIMES.match(expression, at)
        if times is not None:
            at = times.end()
        if char and times is None and not depth:
            run += char
            continue
        runs.append(run)
        run = ""
    return max((*runs, run), key=len)


_PART: Final = re.compile(
    r"\\.|(?P<plus>\+)|\[\^?\]?(?:\\.|[^\]\\])*\]?|(?P<open>\()|(?P<close>\))|\{(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\}|.",
    re.DOTALL,
)


def weight(expression: str) -> int:
    """How many characters *expression* has if every counted repeat is written out: what compiling it may cost.

    Counted without understanding it, so for odd ones it is a guess.
    """
    totals, last = [0], 0
    for part in _PART.finditer(expression):
        if part["open"]:
            totals.append(0)
            last = 0
        elif part["close"]:
            last = max(totals.pop(), 1) if len(totals) > 1 else 1
            totals[-1] += last
        elif part["least"] is not None or part["plus"]:
            # What is there once or more often is written out twice.
            least, most = int(part["least"] or 0), int(part["most"] or 0)
            times = max(least, most, 2 if part["plus"] or (least and part["comma"]) else 1)
            totals[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            totals[-1] += 1
    return sum(totals)
