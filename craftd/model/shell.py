"""A shell command taken apart, as far as it is made of harmless parts; everything else is refused.

Two readers must agree. tree-sitter's Bash grammar says how commands, pipes and lists hang together; it forgives errors
and takes some legal text for something else than bash does (a word behind a redirect for a second target). So a scanner
of our own, which knows simple commands, `|`, `&&`, `||`, `;`, newlines, `( )`, `!` and redirects and nothing else,
reads the same text, and a command counts only if both see the same commands at the same places. What the words say
comes from the scanner. Whatever runs, expands or assigns something is refused by name: `code` says by which.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from attrs import frozen

LONGEST: Final = 20_000
"""Characters of a command."""


@frozen
class Word:
    """One argument as the program would get it. wild: a pattern that the shell replaces by file names; tilde: begins
    with a `~` that the shell replaces."""

    text: str
    wild: bool = False
    tilde: bool = False

    @property
    def shown(self) -> str:
        """The word so that it cannot be taken for two."""
        return self.text if _PLAIN.fullmatch(self.text) else "'" + self.text.replace("'", "'\\''") + "'"


@frozen
class Redirect:
    """operator: `<`, `>`, `>>`, `&>`, ... A copy of another descriptor (`2>&1`) is none."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        return self.operator != "<"


@frozen
class Simple:
    """One program and its arguments, without the redirects. words: at least one."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()

    @property
    def name(self) -> str:
        return self.words[0].text

    @property
    def arguments(self) -> tuple[Word, ...]:
        return self.words[1:]

    @property
    def text(self) -> str:
        """What rules are matched against: the words, one space between them."""
        return " ".join(word.shown for word in self.words)


class Refused(Exception):
    """code: unparsable, substitution, variable, assignment, background, null-byte, odd-character. str(): for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


_PLAIN: Final = re.compile(r"[^\s'\"\\;|&<>()$`]+")
_SPACE: Final = " \t"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_WORDS: Final = "if then elif else fi for while until do done case esac in function select time coproc { } [[ ]] [ !"
_RESERVED: Final = frozenset(_WORDS.split())
_LITERAL_AFTER_DOLLAR: Final = frozenset('" |)/.,:;%\\')
"""What may follow a `$` in double quotes that is then only a dollar sign."""


def parse(command: str) -> tuple[Simple, ...]:
    """The simple commands of *command*, each of which would run. Raises: Refused."""
    _check_characters(command)
    scanned = _Scanner(command)
    commands = tuple(scanned.commands())
    starts = [len(command[:at].encode()) for at in scanned.starts]
    if not commands or list(_command_starts(command)) != starts:
        raise Refused("unparsable", "it is not made of simple commands alone")
    return commands


def _check_characters(command: str) -> None:
    if len(command) > LONGEST:
        raise Refused("unparsable", f"it is longer than {LONGEST} characters")
    if "\0" in command:
        raise Refused("null-byte", "it holds a null byte")
    for char in command:
        if char not in " \t\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp"):
            raise Refused("odd-character", f"it holds U+{ord(char):04X}, which cannot be seen")


class _Scanner:
    """Reads one command line. starts: where each simple command begins, in characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts: list[int] = []

    def commands(self) -> Iterator[Simple]:
        while self._skip_separators():
            yield self._simple()

    def _peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _blanks(self) -> None:
        while self.at < len(self.text) and (self.text[self.at] in _SPACE or self._peek("\\\n")):
            self.at += 2 if self._peek("\\\n") else 1

    def _skip_separators(self) -> bool:
        """Go to the next simple command; False at the end. How separators may follow each other the grammar knows."""
        while True:
            self._blanks()
            if self.at >= len(self.text):
                return False
            if self._peek("#"):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self._peek(";;") or self._peek(";&"):
                raise Refused("unparsable", "it holds a case")
            elif self._peek("&&") or self._peek("||") or self._peek("|&"):
                self.at += 2
            elif self._peek("&") and not self._peek("&>"):
                raise Refused("background", "it runs something in the background")
            elif self.text[self.at] in ";|\n()" or self._peek("! ") or self._peek("!\t"):
                self.at += 1
            else:
                return True

    def _simple(self) -> Simple:
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blanks()
            if self.at >= len(self.text) or self.text[self.at] in ";|\n)":
                break
            if self._peek("&") and not self._peek("&>"):
                if self._peek("&&"):
                    break
                raise Refused("background", "it runs something in the background")
            if self._peek("#"):
                break
            if self._peek("("):
                raise Refused("unparsable", "it defines a function")
            if (found := self._redirect()) is not None:
                redirects += found
                continue
            start = self.at
            word = self._word()
            if not words:
                self.starts.append(start)
                raw = self.text[start : self.at]
                if _NAME.match(raw):
                    raise Refused("assignment", "it sets a variable")
                if raw in _RESERVED:
                    raise Refused("unparsable", f"it holds {raw!r}, which is no simple command")
            words.append(word)
        if not words:
            raise Refused("unparsable", "a redirect belongs to no command")
        return Simple(tuple(words), tuple(redirects))

    _REDIRECT = re.compile(r"(?P<fd>[0-9]*)(?P<op>&>>|&>|<<<|<<-|<<|<>|>>|>\||>&|<&|<\(|>\(|<|>)")

    def _redirect(self) -> list[Redirect] | None:
        found = self._REDIRECT.match(self.text, self.at)
        if found is None:
            return None
        operator = found["op"]
        if operator in ("<(", ">("):
            raise Refused("unparsable", "it substitutes a process for a file")
        if operator in ("<<<", "<<-", "<<"):
            raise Refused("unparsable", "it holds a here-document")
        if operator in ("<>", "<&"):
            raise Refused("unparsable", f"it redirects by {operator}")
        self.at = found.end()
        self._blanks()
        if self.at >= len(self.text) or self.text[self.at] in ";|&\n()<>#":
            raise Refused("unparsable", "a redirect leads nowhere")
        target = self._word()
        if operator == ">&" and target.text.isascii() and target.text.isdigit():
            return []
        return [Redirect("&>" if operator == ">&" else operator, target)]

    def _word(self) -> Word:
        """One word with its quotes taken away."""
        made: list[str] = []
        start, wild, braces = self.at, False, 0
        tilde = self._peek("~")
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;|&<>)":
                break
            self.at += 1
            if char == "(":
                raise Refused("unparsable", "it holds a ( inside of a word")
            if char == "`":
                raise Refused("substitution", "it runs a command inside of a word")
            if char == "'":
                made.append(self._until_quote())
            elif char == '"':
                made.append(self._double_quoted())
            elif char == "\\":
                if self.at >= len(self.text):
                    raise Refused("unparsable", "it ends with a backslash")
                made.append("" if self.text[self.at] == "\n" else self.text[self.at])
                self.at += 1
            elif char == "$":
                if self.at < len(self.text) and self.text[self.at] not in " \t\n;|&<>)":
                    self._refuse_dollar()
                made.append(char)
            else:
                braces += char == "{"
                wild = wild or char in "*?["
                made.append(char)
        raw = self.text[start : self.at]
        if braces and ("," in raw or ".." in raw):
            raise Refused("unparsable", "it holds braces that become several words")
        return Word("".join(made), wild, tilde)

    def _until_quote(self) -> str:
        end = self.text.find("'", self.at)
        if end < 0:
            raise Refused("unparsable", "a quote is not closed")
        inner = self.text[self.at : end]
        self.at = end + 1
        return inner

    def _double_quoted(self) -> str:
        made: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return "".join(made)
            after = self.text[self.at : self.at + 1]
            if char == "`":
                raise Refused("substitution", "it runs a command inside of a word")
            if char == "$" and after not in _LITERAL_AFTER_DOLLAR:
                self._refuse_dollar()
            if char == "\\" and after and after in '$`"\\\n':
                made.append("" if after == "\n" else after)
                self.at += 1
            else:
                made.append(char)
        raise Refused("unparsable", "a quote is not closed")

    def _refuse_dollar(self) -> None:
        if self._peek("("):
            raise Refused("substitution", "it runs a command inside of a word")
        raise Refused("variable", "it uses a variable, whose value nobody knows here")


_NODES: Final = """
    program command command_name word number string string_content raw_string concatenation list pipeline
    redirected_statement file_redirect file_descriptor subshell negated_command comment
    ; && || | |& ( ) ! > >> < >& &> &>> >| $ "
"""
_KINDS: Final = frozenset(_NODES.split()) | {"\n"}
"""What may stand in the tree: nodes and, by their text, operators."""


@cache
def _bash() -> tuple[Any, Any]:
    import tree_sitter  # 10 ms: only who asks about a command pays
    import tree_sitter_bash

    return tree_sitter.Parser, tree_sitter.Language(tree_sitter_bash.language())


def _command_starts(command: str) -> Iterator[int]:
    """Byte offsets of the names of all simple commands, in order. Raises: Refused for anything else in the tree."""
    parser, language = _bash()
    root = parser(language).parse(command.encode()).root_node
    if root.has_error:
        raise Refused("unparsable", "it cannot be parsed")
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_missing or node.type not in _KINDS:
            raise Refused("unparsable", f"it holds a {node.type.replace('_', ' ')}")
        if node.type == "command_name":
            yield node.start_byte
        waiting += reversed(node.children)
