"""What must be read before a tool may be called: skills that a message mentions, guides of sources.  App 0.11.1.

Each is asked for once: who does not read it then may go on. Only the guide of the browser is asked for every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from posixpath import normpath
from typing import Any, Final

from attrs import define, field, frozen

from craftd.model import shell
from craftd.model.portable import expand_home
from craftd.model.records import Record

BROWSER_TOOLS: Final = frozenset({"browser_tool", "mcp__session__browser_tool"})
WITHOUT_GUIDES: Final = frozenset({"session", "craft-agents-docs"})
"""Servers of the app itself."""

_PRINTING: Final = frozenset({"cat", "bat", "batcat", "less", "more", "nl", "tac"})
"""Programs that show a whole file."""


@frozen(kw_only=True)
class Guides:
    """What there is to read. guides: of sources, by slug. browser: None = the browser is off, or has none."""

    guides: Mapping[str, str]
    home: str
    browser: str | None = None

    def needed(self, tool: str) -> str | None:
        """The guide for *tool*, None where none has to be read."""
        if tool in BROWSER_TOOLS:
            return self.browser
        if tool.startswith("api_"):
            return self.guides.get(tool.removeprefix("api_"))
        if not tool.startswith("mcp__"):
            return None
        rest = tool.removeprefix("mcp__")
        # A slug may hold `__` itself: the longest that there is counts.
        slugs = [rest[:at] for at in range(1, len(rest)) if rest.startswith("__", at)]
        known = next((slug for slug in reversed(slugs) if slug in self.guides), None)
        return None if known is None or known in WITHOUT_GUIDES else self.guides[known]


@frozen
class Verdict:
    """needs: paths to be read first; empty where the call may be made."""

    needs: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.needs


@define
class Prerequisites:
    """The state of one running session. read: what was read. asked: what was refused for once. pending: skills."""

    read: set[str] = field(factory=set)
    asked: set[str] = field(factory=set)
    pending: list[str] = field(factory=list)

    def mention(self, paths: Iterable[str]) -> None:
        """The SKILL.md files of skills that a message mentions: to be read, and to be asked for, again."""
        for path in paths:
            self.asked.discard(path)
            if path not in self.pending:
                self.pending.append(path)

    def has_read(self, path: str, home: str) -> None:
        """A whole file was read, and that worked."""
        if path:
            self._read(normpath(expand_home(path, home)))

    def has_run(self, command: str, home: str) -> bool:
        """A command ran. Whether it showed what was pending: a program that prints whole files had that to print."""
        try:
            commands = shell.parse(command)
        except shell.Refused:
            return False
        shown = [
            normpath(expand_home(word.text, home) if word.tilde else word.text)
            for one in commands
            if one.name in _PRINTING
            for word in one.arguments
        ]
        found = [path for path in self.pending if path in shown]
        for path in found:
            self._read(path)
        return bool(found)

    def _read(self, path: str) -> None:
        self.read.add(path)
        self.pending = [one for one in self.pending if one != path]

    def check(self, tool: str, guides: Guides) -> Verdict:
        """Whether *tool* may be called now; a refusal counts as asking."""
        if self.pending and tool != "Read":
            left = [path for path in self.pending if path not in self.asked]
            if left:
                self.asked.update(self.pending)
                return Verdict(tuple(self.pending))
            self.pending.clear()
        guide = guides.needed(tool)
        if guide is None or guide in self.read:
            return Verdict()
        if tool not in BROWSER_TOOLS:
            if guide in self.asked:
                return Verdict()
            self.asked.add(guide)
        return Verdict((guide,))

    def reset(self) -> None:
        """The history was compacted or cleared: nothing is known to be read any more."""
        self.read.clear()
        self.asked.clear()
        self.pending.clear()

    def as_json(self) -> Record:
        return {"read": sorted(self.read), "asked": sorted(self.asked), "pending": list(self.pending)}

    @classmethod
    def of_json(cls, state: Mapping[str, Any]) -> Prerequisites:
        """Raises: ValueError, naming the member that is no list of texts."""
        lists: dict[str, list[str]] = {}
        for name in ("read", "asked", "pending"):
            given = state.get(name, [])
            if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
                raise ValueError(name)
            lists[name] = given
        return cls(set(lists["read"]), set(lists["asked"]), list(dict.fromkeys(lists["pending"])))
