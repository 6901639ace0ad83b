"""May this tool run? One pure function answers for every executor.

`allow-all` asks nobody. `safe` allows what is known only to read, and what writes where a session may write; `ask`
allows the same reading and leaves the rest to a person. What nobody knows is not known to be harmless: a pattern only
counts for the program or tool it names, for whole words, and for every command of a line separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from attrs import field, frozen

from craftd.model import portable, programs, shell
from craftd.model.javascript import TooSlow
from craftd.model.permissions import ANY_PROGRAM, Mode
from craftd.model.rules import Rule, Rules

ALWAYS: Final = frozenset(
    (
        "Read", "Glob", "Grep", "Task", "TaskOutput", "WebFetch", "WebSearch", "TodoWrite", "SubmitPlan", "LSP",
        "Skill", "browser_tool",
    )
)  # fmt: skip
"""Tools of the app itself that read, or that ask again for what they start."""

WRITES: Final = frozenset(("Write", "Edit", "MultiEdit", "NotebookEdit"))

SESSION_TOOLS: Final = frozenset(
    (
        "SubmitPlan", "config_validate", "skill_validate", "mermaid_validate", "source_test", "transform_data",
        "script_sandbox", "render_template", "call_llm", "browser_tool", "get_session_info", "list_sessions",
        "list_background_tasks", "list_messaging_channels",
    )
)  # fmt: skip
"""Of the app's own server `session`; all others of it change something."""

MUTATING: Final = re.compile(
    r"add|append|approve|archive|assign|ban|cancel|clear|close|commit|create|delete|deploy|destroy|disable|drop|edit"
    r"|enable|erase|exec|execute|grant|import|insert|install|invite|kill|lock|merge|modify|move|overwrite|patch|pay|post"
    r"|publish|purge|push|put|reject|remove|rename|reopen|replace|reset|restart|restore|revert|revoke|rollback|run|save"
    r"|schedule|send|set|share|start|stop|submit|terminate|toggle|transfer|trigger|truncate|unassign|uninstall|unlock"
    r"|update|upload|upsert|wipe|write"
)
"""Words that say that something is changed, whatever other words stand beside them."""

SLOW_AT_MOST: Final = 3
"""Patterns that may take too long in one decision; after that, none is tried any more."""


@frozen(kw_only=True)
class Places:
    """Where things are. writable: real paths of the folders a session writes to; real(path): links resolved."""

    home: str = "/"
    cwd: str | None = None
    writable: tuple[str, ...] = ()
    real: Callable[[str], str] = lambda path: path


@frozen(kw_only=True)
class Decision:
    """decision: allow, ask or deny. code: why, in one word; reason: for people; rule: what allowed it.

    hint: the entry of `blockedCommandHints` for a command that was not allowed.
    """

    decision: str
    code: str
    reason: str
    rule: Rule | None = None
    hint: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        made = {"decision": self.decision, "code": self.code, "reason": self.reason}
        rule = {} if self.rule is None else {"rule": self.rule.as_json()}
        return {**made, **rule, **({} if self.hint is None else {"hint": self.hint})}


def decide(mode: Mode, tool: str, input: Mapping[str, Any], rules: Rules, places: Places | None = None) -> Decision:
    """Whether *tool* may be called with *input*."""
    if mode == "allow-all":
        return Decision(decision="allow", code="mode", reason="everything is allowed in this mode")
    found = _Reading(rules, places or Places()).verdict(tool, input)
    if mode == "safe":
        return found
    if tool in WRITES:
        return Decision(decision="ask", code="file-write", reason="it writes a file")
    if found.decision == "allow":
        return found
    code = "admin" if tool == "Bash" and _installs(input.get("command")) else found.code
    return Decision(decision="ask", code=code, reason=found.reason, hint=found.hint)


def _installs(command: object) -> bool:
    """Whether the system itself will ask for an administrator."""
    return isinstance(command, str) and re.search(r"(?<!\S)(?:sudo|--cask|installer\s+-pkg)(?!\S)", command) is not None


def _allow(code: str, reason: str, rule: Rule | None = None) -> Decision:
    return Decision(decision="allow", code=code, reason=reason, rule=rule)


def _deny(code: str, reason: str, hint: dict[str, Any] | None = None) -> Decision:
    return Decision(decision="deny", code=code, reason=reason, hint=hint)


_MCP = re.compile(r"mcp__(?P<server>[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__(?P<tool>.+)", re.DOTALL)
_API = re.compile(r"(?:mcp__(?P<server>[A-Za-z0-9_-]+?)__)?api_(?P<name>[A-Za-z0-9_-]+)")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@frozen
class _Reading:
    """One decision of the mode that only reads."""

    rules: Rules
    places: Places
    slow: list[str] = field(factory=list)

    def verdict(self, tool: str, input: Mapping[str, Any]) -> Decision:
        if tool in ALWAYS:
            return _allow("built-in", f"{tool} only reads", Rule("built-in", "tools", tool))
        if tool == "Bash":
            return self.bash(input.get("command"))
        if tool in WRITES:
            return self.write(input.get("notebook_path" if tool == "NotebookEdit" else "file_path"))
        api = _API.fullmatch(tool)
        if api is not None and (api["server"] is None or _alike(api["server"], api["name"])):
            return self.api(input)
        mcp = _MCP.fullmatch(tool)
        if mcp is not None:
            return self.mcp(tool, mcp["server"], mcp["tool"])
        return _deny("unknown-tool", f"nothing is known about {tool!r}")

    def tried(self, rule: Rule, search: Callable[[], Any], otherwise: Any = None) -> Any:
        """What *search* finds with the pattern of *rule*; *otherwise* if it takes too long."""
        if len(self.slow) >= SLOW_AT_MOST:
            return otherwise
        try:
            return search()
        except TooSlow:
            self.slow.append(rule.pattern)
            return otherwise

    # Commands

    def bash(self, command: object) -> Decision:
        if not isinstance(command, str):
            return _deny("no-command", "there is no command")
        try:
            commands = shell.parse(command)
        except shell.Refused as error:
            return _deny(error.code, str(error))
        first: Rule | None = None
        for one in commands:
            found = self.simple(one)
            if isinstance(found, Decision):
                return found
            first = first or found
        return _allow("listed", "every command is known only to read", first)

    def simple(self, command: shell.Simple) -> Rule | Decision:
        """The rule that allows *command*, or why it is refused."""
        objection = programs.objection(command)
        if objection is not None:
            return _deny("argument", objection, self.hint(command))
        rule = next((rule for rule in self.rules.bash if self.names(rule, command)), None)
        if rule is None:
            return _deny("not-listed", f"no rule allows {command.text!r}", self.hint(command))
        for redirect in command.redirects:
            if redirect.writes and not self.may_be_written(redirect.target):
                return _deny("target-not-allowed", f"it writes to {redirect.target.text}")
        return rule

    def names(self, rule: Rule, command: shell.Simple) -> bool:
        """Whether *rule* is about this program and these arguments, in whole words from the first one on."""
        pattern, text, program = rule.compiled, command.text, command.words[0].shown
        assert pattern is not None
        if not program.isascii():
            return False
        end = self.tried(rule, lambda: pattern.match(text))
        if end is None or end < len(program):
            return False
        if end < len(text) and text[end] != " " and text[end - 1] not in " /=:":
            return False
        if self.tried(rule, lambda: pattern.match(ANY_PROGRAM + text[len(program) :]), otherwise=0) is None:
            return True
        return [word.text for word in command.arguments] in (["--help"], ["--version"])

    def may_be_written(self, target: shell.Word) -> bool:
        """A redirect may lead to nowhere, or to where a file may be written. Where a shell is nobody knows."""
        if target.text == "/dev/null":
            return True
        path = portable.expand_home(target.text, self.places.home) if target.tilde else target.text
        return not target.wild and path.startswith("/") and self.target(path) is not None

    def hint(self, command: shell.Simple) -> dict[str, Any] | None:
        for hint in self.rules.hints:
            if hint.command == command.name.lower():
                try:
                    if hint.unless is None or hint.unless.search(command.text) is None:
                        return dict(hint.value)
                except TooSlow:
                    return None
        return None

    # Files

    def write(self, path: object) -> Decision:
        if not isinstance(path, str) or not path or "\0" in path:
            return _deny("no-path", "there is no path")
        whole = portable.expand_home(path, self.places.home, self.places.cwd)
        if not whole.startswith("/"):
            return _deny("target-not-allowed", f"nobody knows here where {path} is")
        rule = self.target(whole)
        if rule is None:
            return _deny("target-not-allowed", f"{path} is not where this session may write")
        return _allow("writable", "it writes where this session may write", rule)

    def target(self, path: str) -> Rule | None:
        """What allows the absolute *path* to be written, judged by where it really is."""
        real = self.places.real(path)
        for folder in self.places.writable:
            if real.startswith(f"{folder}/"):
                return Rule("built-in", "writable", folder)
        return next((rule for rule in self.rules.write if glob_matches(self.real_glob(rule.pattern), real)), None)

    def real_glob(self, pattern: str) -> str:
        """*pattern* with its part before the first wildcard resolved like the paths it is held against."""
        if pattern.startswith("~/"):
            pattern = self.places.home + pattern[1:]
        fixed = re.match(r"(?:/[^/*?]+(?=/))*", pattern)
        head = fixed[0] if fixed is not None else ""
        return (self.places.real(head) if head else "") + pattern[len(head) :]

    # Services

    def api(self, input: Mapping[str, Any]) -> Decision:
        method, path = input.get("method", "GET"), input.get("path", "")
        if not isinstance(method, str) or not isinstance(path, str):
            return _deny("api", "method and path must be text")
        if method.upper() == "GET":
            return _allow("built-in", "GET only reads", Rule("built-in", "methods", "GET"))
        plain = re.split(r"[?#]", unquote(unquote(path)), maxsplit=1)[0]
        if any(part in (".", "..") for part in re.split(r"[/\\]", plain)):
            return _deny("api", "its path leads somewhere else than it says")
        for rule in self.rules.api:
            pattern = rule.compiled
            assert pattern is not None
            if rule.method == method.upper() and self.tried(rule, lambda p=pattern: p.search(path)) is not None:  # type: ignore[misc]
                return _allow("listed", "the endpoint is listed", rule)
        return _deny("api", f"no rule allows {method.upper()} {path}")

    def mcp(self, tool: str, server: str, name: str) -> Decision:
        if server == "craft-agents-docs":
            return _allow("built-in", "the documentation only reads", Rule("built-in", "tools", f"mcp__{server}__"))
        if server == "session":
            if name in SESSION_TOOLS:
                return _allow("built-in", f"{name} only reads", Rule("built-in", "tools", tool))
            return _deny("session-tool", f"{name} changes the session")
        rule = next((rule for rule in self.rules.mcp if self.is_about(rule, tool, server, name)), None)
        if rule is None:
            return _deny("mcp", f"no rule allows {tool}")
        return _allow("listed", "the tool is listed", rule)

    def is_about(self, rule: Rule, tool: str, server: str, name: str) -> bool:
        """Whether *rule* names the tool: whole words of it, and every word that says that something is changed.

        A pattern that spells out a server and is anchored is the word of somebody who means that server.
        """
        pattern = rule.compiled
        assert pattern is not None
        if rule.source is not None and rule.source != server:
            return False
        if rule.source is None and rule.pattern.startswith(("^", "mcp__")):
            end = self.tried(rule, lambda: pattern.match(tool))
            if end is None or not _ends_word(tool, end):
                return False
            if re.match(rf"\^?mcp__{re.escape(server)}__", rule.pattern):
                return True
        elif not any(
            end is not None and _ends_word(name, end)
            for start in _word_starts(name)
            for end in (self.tried(rule, lambda s=start: pattern.match(name, s)),)  # type: ignore[misc]
        ):
            return False
        return all(word in rule.pattern.lower() for word in _words(name) if MUTATING.fullmatch(word))


def _alike(one: str, other: str) -> bool:
    return one.replace("-", "_") == other.replace("-", "_")


def _words(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]


def _word_starts(name: str) -> Iterator[int]:
    return (part.start() for part in _PART.finditer(name))


def _ends_word(name: str, end: int) -> bool:
    return end == len(name) or not name[end - 1].isalnum() or any(part.end() == end for part in _PART.finditer(name))


def glob_matches(pattern: str, path: str) -> bool:
    """`**` is anything, `*` and `?` anything and any one character but a slash. Takes pattern times path at most."""
    pieces = re.findall(r"\*\*|.", pattern, re.DOTALL)
    reached = {0}
    for piece in pieces:
        if piece == "**":
            reached = set(range(min(reached), len(path) + 1))
        elif piece == "*":
            further = set(reached)
            for at in sorted(reached):
                while at < len(path) and path[at] != "/":
                    at += 1
                    if at in further:
                        break
                    further.add(at)
            reached = further
        else:
            reached = {
                at + 1 for at in reached if at < len(path) and (path[at] == piece or (piece == "?" and path[at] != "/"))
            }
        if not reached:
            return False
    return len(path) in reached
