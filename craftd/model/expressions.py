"""The language of view expressions: Filtrex 3.1 as the app uses it.  App 0.11.1.

Binding, from loose to tight: `if then else` and `? :`; `or`; `and`; `in`, `not in`; `== != < <= > >= ~=` (chained:
`1 < x < 9`); `+ -`; `* / % mod`; `not` and minus; `^` (to the right); `of`. `"text"` is text, `'name'` a name. What
differs: a failure is no value, a word may be followed directly by a bracket, and objects have only their own members.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from attrs import field, frozen

from craftd.model import javascript, json_text
from craftd.model.records import milliseconds

LONGEST: Final = 4000
"""Characters of an expression."""

DEEPEST: Final = 100
"""Levels of an expression's tree."""

Context: TypeAlias = Mapping[str, Any]


class ExpressionError(Exception):
    """offset: of the place in the expression that is to blame, in characters from 0.

    code: syntax, unknown-function, unknown-name, type, bad-pattern or too-slow.
    """

    def __init__(self, offset: int, message: str, code: str = "syntax") -> None:
        super().__init__(message)
        self.offset = offset
        self.code = code

    def __str__(self) -> str:
        return f"{self.args[0]} (at {self.offset})"

    @property
    def message(self) -> str:
        found: str = self.args[0]
        return found


@frozen
class Node:
    """kind: what `_value` does with it. at: its offset."""

    kind: str
    at: int
    value: Any = None
    parts: tuple[Node, ...] = ()
    depth: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((part.depth for part in self.parts), default=0))
        if self.depth > DEEPEST:
            raise ExpressionError(self.at, "nests too deeply")


@frozen
class Expression:
    """A parsed expression."""

    source: str
    root: Node

    def value(self, context: Context, now: int) -> Any:
        """What it comes to; None where JavaScript says undefined. now: ms since 1970. Raises: ExpressionError."""
        return _value(self.root, context, now)

    def matches(self, context: Context, now: int) -> bool:
        """Whether that is true in the sense of JavaScript. Raises: ExpressionError."""
        found = self.value(context, now)
        if isinstance(found, (list, dict)):
            return True
        return bool(found) and found == found

    def unknown_functions(self) -> Iterator[ExpressionError]:
        for node in _walk(self.root):
            if node.kind == "call" and node.value not in FUNCTIONS:
                yield ExpressionError(node.at, f"there is no function {node.value}", "unknown-function")

    def doubts(self, names: Container[str], samples: Iterable[Context]) -> Iterator[ExpressionError]:
        """What will not do what was meant, found beforehand: unknown functions and *names*, failures on *samples*."""
        known = True
        for error in self.unknown_functions():
            known = False
            yield error
        for node in _walk(self.root):
            if node.kind in ("name", "quoted", "of") and node.value not in names and node.value not in CONSTANTS:
                known = False
                yield ExpressionError(node.at, f"there is no {node.value}", "unknown-name")
        for sample in samples if known else ():
            try:
                self.value(sample, 0)
            except ExpressionError as error:
                yield error
                return


# Text to tree

_TOKEN = re.compile(
    r"""
    (?P<number>[0-9]+(?:\.[0-9]+)?(?![0-9.]))
    |(?P<text>"(?:\\["\\]|[^"\\])*")
    |(?P<quoted>'(?:\\['\\]|[^'\\])*')
    |(?P<name>[A-Za-z$_][.A-Za-z0-9$_]*)
    |(?P<sign>==|!=|<=|>=|~=|[-+*/%^<>(),?:])
    |(?P<end>\Z)""",
    re.VERBOSE | re.ASCII,
)
_SPACE = re.compile(r"\s*")
_WORDS: Final = frozenset({"if", "then", "else", "or", "and", "in", "not", "of", "mod"})
_RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "~="})
_BINDS: Final = {
    "?": 1, "or": 2, "and": 3, "in": 4, "not": 4, **dict.fromkeys(_RELATIONS, 5),
    "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "mod": 7, "^": 9,
}  # fmt: skip
_UNARY: Final = 8
CONSTANTS: Final = {"true": True, "false": False}


def parse(source: str) -> Expression:
    """Raises: ExpressionError."""
    if len(source) > LONGEST:
        raise ExpressionError(LONGEST, f"is longer than {LONGEST} characters")
    parser = _Parser(list(_tokens(source)))
    root = parser.expression(0)
    if parser.kind != "end":
        raise parser.unexpected()
    return Expression(source, root)


def _tokens(source: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and offset; of a word and a sign the kind is the text."""
    at = 0
    while True:
        if space := _SPACE.match(source, at):
            at = space.end()
        found = _TOKEN.match(source, at)
        if found is None:
            raise ExpressionError(at, f"{source[at]!r} means nothing here")
        kind = found.lastgroup or "end"
        word = found[kind]
        yield (word if kind == "sign" or (kind == "name" and word in _WORDS) else kind), word, at
        if kind == "end":
            return
        at = found.end()


class _Parser:
    """Precedence climbing over the tokens."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self.tokens = tokens
        self.next = 0
        self.depth = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.next][0]

    @property
    def at(self) -> int:
        return self.tokens[self.next][2]

    def take(self, kind: str | None = None) -> str:
        """The text of the token there is, which must be of *kind*."""
        if kind is not None and self.kind != kind:
            raise self.unexpected(kind)
        word = self.tokens[self.next][1]
        self.next += 1
        return word

    def unexpected(self, wanted: str = "") -> ExpressionError:
        _, word, at = self.tokens[self.next]
        there = repr(word) if word else "the end"
        return ExpressionError(at, f"{there} instead of {wanted!r}" if wanted else f"{there} cannot stand here")

    def expression(self, least: int) -> Node:
        """What binds at least as tightly as *least*."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise ExpressionError(self.at, "nests too deeply")
        left = self.operand()
        while (binds := _BINDS.get(self.kind, -1)) >= max(least, 1):
            left = self.behind(left, binds)
        self.depth -= 1
        return left

    def behind(self, left: Node, binds: int) -> Node:
        """*left* with the operator that follows it."""
        at, sign = self.at, self.take()
        if sign == "?":
            then = self.expression(0)
            self.take(":")
            return Node("if", at, None, (left, then, self.expression(0)))
        if sign == "not":
            self.take("in")
            return Node("not", at, None, (Node("in", at, None, (left, self.expression(binds + 1))),))
        if sign in _RELATIONS:
            signs, parts = [(sign, at)], [left, self.expression(binds + 1)]
            while self.kind in _RELATIONS:
                signs.append((self.kind, self.at))
                self.take()
                parts.append(self.expression(binds + 1))
            return Node("relation", at, tuple(signs), tuple(parts))
        right = self.expression(_UNARY if sign == "^" else binds + 1)
        kind = sign if sign in ("and", "or", "in") else "operator"
        return Node(kind, at, "mod" if sign == "%" else sign, (left, right))

    def operand(self) -> Node:
        at, kind = self.at, self.kind
        if kind == "if":
            self.take()
            condition = self.expression(0)
            self.take("then")
            then = self.expression(0)
            self.take("else")
            return Node("if", at, None, (condition, then, self.expression(0)))
        if kind in ("not", "-"):
            self.take()
            return Node("not" if kind == "not" else "minus", at, None, (self.expression(_UNARY),))
        if kind == "(":
            self.take()
            parts = [self.expression(0)]
            while self.kind == ",":
                self.take()
                parts.append(self.expression(0))
            self.take(")")
            return parts[0] if len(parts) == 1 else Node("list", at, None, tuple(parts))
        if kind == "number":
            return Node("constant", at, float(self.take()))
        if kind == "text":
            return Node("constant", at, re.sub(r"\\(.)", r"\1", self.take()[1:-1]))
        if kind not in ("name", "quoted"):
            raise self.unexpected()
        word = self.take()
        name = word if kind == "name" else re.sub(r"\\(.)", r"\1", word[1:-1])
        if self.kind == "(":
            return Node("call", at, name, self.arguments())
        if self.kind == "of":
            self.take()
            return Node("of", at, name, (self.expression(_BINDS["^"] + 1),))
        if name in CONSTANTS and kind == "name":
            return Node("constant", at, CONSTANTS[name])
        return Node(kind, at, name)

    def arguments(self) -> tuple[Node, ...]:
        self.take("(")
        parts: list[Node] = []
        while self.kind != ")":
            if parts:
                self.take(",")
            parts.append(self.expression(0))
        self.take(")")
        return tuple(parts)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for part in node.parts:
        yield from _walk(part)


# Tree to value


def _value(node: Node, context: Context, now: int) -> Any:
    kind, parts = node.kind, node.parts
    if kind == "constant":
        return node.value
    if kind == "name":
        return _member(context, node.value)
    if kind == "quoted":
        if node.value not in context:
            raise ExpressionError(node.at, f"'{node.value}' is a name, and there is none; text stands in \"\"", "type")
        return context[node.value]
    if kind == "if":
        condition, then, other = parts
        return _value(then if _flag(condition, context, now) else other, context, now)
    if kind == "and":
        return all(_flag(part, context, now) for part in parts)
    if kind == "or":
        return any(_flag(part, context, now) for part in parts)
    if kind == "not":
        return not _flag(parts[0], context, now)
    if kind == "call" and node.value not in FUNCTIONS:
        raise ExpressionError(node.at, f"there is no function {node.value}", "unknown-function")
    values = [_value(part, context, now) for part in parts]
    if kind == "call":
        return FUNCTIONS[node.value](values, now)
    if kind == "list":
        return values
    if kind == "of":
        return _member(values[0], node.value)
    if kind == "in":
        here, there = (_listed(part, value) for part, value in zip(parts, values, strict=True))
        return all(any(_same(one, other) for other in there) for one in here)
    if kind == "minus":
        return -_number(parts[0], values[0])
    if kind == "relation":
        return all(
            _relation(sign, at, (parts[number], values[number]), (parts[number + 1], values[number + 1]))
            for number, (sign, at) in enumerate(node.value)
        )
    return _operation(node, values)


def _member(value: Any, name: str) -> Any:
    for step in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _alone(value: Any) -> Any:
    """A list of one is that one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _flag(node: Node, context: Context, now: int) -> bool:
    value = _alone(_value(node, context, now))
    if not isinstance(value, bool):
        raise _wrong_type(node, "true or false", value)
    return value


def _number(node: Node, value: Any) -> float:
    value = _alone(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong_type(node, "a number", value)
    return _float(value)


def _text(node: Node, value: Any) -> str:
    value = _alone(value)
    if not isinstance(value, str):
        raise _wrong_type(node, "text", value)
    return value


def _listed(node: Node, value: Any) -> list[Any]:
    if value is None:
        raise _wrong_type(node, "a list", value)
    return value if isinstance(value, list) else [value]


def _wrong_type(node: Node, wanted: str, value: Any) -> ExpressionError:
    kinds: dict[type, str] = {bool: "true or false", str: "text", list: "a list", dict: "an object"}
    there = "nothing" if value is None else kinds.get(type(value), "a number")
    return ExpressionError(node.at, f"must be {wanted} and is {there}", "type")


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _same(one: Any, other: Any) -> bool:
    """Identity as JavaScript has it: text and numbers by value, lists and objects by being the same."""
    if isinstance(one, (list, dict)) or isinstance(other, (list, dict)):
        return one is other
    if isinstance(one, bool) or isinstance(other, bool) or isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and one == other
    return bool(one == other)


def _relation(sign: str, at: int, left: tuple[Node, Any], right: tuple[Node, Any]) -> bool:
    if sign in ("==", "!="):
        return _same(left[1], right[1]) == (sign == "==")
    if sign == "~=":
        subject, pattern = _text(*left), _text(*right)
        try:
            return javascript.compile(pattern).search(subject) is not None
        except javascript.BadPattern as error:
            raise ExpressionError(right[0].at, f"the pattern {error}", "bad-pattern") from error
        except javascript.TooSlow:
            raise ExpressionError(at, "the pattern takes too long", "too-slow") from None
    one, other = _number(*left), _number(*right)
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[sign]


def _operation(node: Node, values: list[Any]) -> Any:
    (left, right), sign = node.parts, node.value
    if sign == "+":
        one, other = (_addend(part, value) for part, value in zip(node.parts, values, strict=True))
        if isinstance(one, str) or isinstance(other, str):
            return _shown(one) + _shown(other)
        return one + other
    one, other = _number(left, values[0]), _number(right, values[1])
    if sign == "-":
        return one - other
    if sign == "*":
        return one * other
    if sign == "/":
        return one / other if other else _signed_infinity(one, other)
    if sign == "mod":
        return one % other if other and math.isfinite(one) and math.isfinite(other) else math.nan
    return _power(one, other)


def _addend(node: Node, value: Any) -> str | float:
    return value if isinstance(value := _alone(value), str) else _number(node, value)


def _shown(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return json_text.dumps(value).decode()


def _signed_infinity(one: float, zero: float) -> float:
    if not one or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, zero)


def _power(one: float, other: float) -> float:
    try:
        found = one**other
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return found if isinstance(found, float) else math.nan


# Functions

Function: TypeAlias = Callable[[list[Any], int], Any]

_MINUTE: Final = 60_000


def _loose(value: Any) -> float:
    """What JavaScript's `Math` takes *value* for."""
    if isinstance(value, (bool, int, float)):
        return _float(value)
    return math.nan


def _math(function: Callable[[float], float]) -> Function:
    def call(values: list[Any], now: int) -> float:
        value = _loose(values[0]) if values else math.nan
        try:
            return function(value) if math.isfinite(value) else value
        except ValueError:
            return -math.inf if value == 0 else math.nan

    return call


def _extreme(choose: Callable[[list[float]], float], of_none: float) -> Function:
    def call(values: list[Any], now: int) -> float:
        numbers = [_loose(value) for value in values]
        if any(map(math.isnan, numbers)):
            return math.nan
        return choose(numbers) if numbers else of_none

    return call


def _since(unit: int) -> Function:
    """Whole units since a time, 0 for what is no time or not yet."""

    def call(values: list[Any], now: int) -> float:
        at = milliseconds(values[0]) if values else None
        return float(max(0, (now - at) // unit)) if at is not None and at > 0 else 0.0

    return call


def _first(values: list[Any]) -> Any:
    return values[0] if values else None


def _contains(values: list[Any], now: int) -> bool:
    """An element of a list, also a label by the id before its `::`; a part of a text."""
    whole, wanted = values[0] if values else None, values[1] if len(values) > 1 else None
    if isinstance(whole, str):
        return isinstance(wanted, str) and wanted in whole
    return isinstance(whole, list) and any(
        _same(one, wanted) or (isinstance(one, str) and "::" in one and _same(one.partition("::")[0], wanted))
        for one in whole
    )


def _starts_with(values: list[Any], now: int) -> bool:
    return len(values) > 1 and all(isinstance(value, str) for value in values[:2]) and values[0].startswith(values[1])


FUNCTIONS: Final[Mapping[str, Function]] = {
    "abs": _math(abs),
    "ceil": _math(math.ceil),
    "floor": _math(math.floor),
    "log": _math(math.log),
    "log2": _math(math.log2),
    "log10": _math(math.log10),
    "max": _extreme(max, -math.inf),
    "min": _extreme(min, math.inf),
    "round": _math(lambda value: math.floor(value + 0.5)),
    "sqrt": _math(math.sqrt),
    "exists": lambda values, now: _first(values) is not None,
    "empty": lambda values, now: _first(values) is None or _first(values) in ("", []),
    "daysSince": _since(24 * 60 * _MINUTE),
    "hoursSince": _since(60 * _MINUTE),
    "contains": _contains,
    "length": lambda values, now: float(len(value)) if isinstance(value := _first(values), (str, list)) else 0.0,
    "startsWith": _starts_with,
    "lower": lambda values, now: value.lower() if isinstance(value := _first(values), str) else "",
}
