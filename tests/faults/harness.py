"""Ways to hurt a program that stores things. They know `craftd.store.disk` and nothing above it, so every layer can use
them: single disk calls that fail, power cuts at every moment, `kill -9`.

A fault suite that cannot fail proves nothing: each way comes with a switch that breaks the promise, and the suites
assert that losses are then seen.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from craftd.store import disk

CHANGING = (
    "create", "open_append", "write", "copy_range", "truncate", "flush", "flush_full", "flush_directory", "rename",
    "rename_new", "exchange", "remove", "make_directory", "remove_tree", "keep_mode_and_owner", "set_mode",
)  # fmt: skip
"""The disk's functions, but for those made of them and `close`, whose errors the kernel reports on flushing."""


# Single calls that fail


class Breaker:
    """Fails the disk calls it is told to, in order of all calls together; counts them otherwise.

    `arm(3, ENOSPC)`: the fourth call from now raises; with *torn* a failing write first writes half.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self._fail_at = -1
        self._number = 0
        self._torn = False
        self._forever = False
        for name in CHANGING:
            monkeypatch.setattr(disk, name, self._wrapped(name, getattr(disk, name)))
        self._depth = 0

    def arm(self, at: int, number: int, *, torn: bool = False, forever: bool = False) -> None:
        self.calls.clear()
        self._fail_at, self._number, self._torn, self._forever = at, number, torn, forever

    def disarm(self) -> None:
        self.arm(-1, 0)

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return function(*args, **kwargs)
            self.calls.append(name)
            reached = len(self.calls) - 1
            if self._fail_at >= 0 and (reached == self._fail_at or (self._forever and reached > self._fail_at)):
                if self._torn and name == "write":
                    function(args[0], args[1][: len(args[1]) // 2])
                raise OSError(self._number, errno.errorcode[self._number])
            self._depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1

        return call


# Power cuts


@define(eq=False)
class Node:
    """A file (ops: append bytes, cut to a size) or a folder (ops: changes of its names) as a power cut sees it."""

    folder: bool
    base: Any
    ops: list[tuple[int, str, Any]] = field(factory=list)
    """(step, kind, argument); kinds: write, truncate, names, flush, failed."""


class Recorder:
    """Records what a program does to the folder *root* through `craftd.store.disk`, from now on.

    `mark(x)`: the program has acknowledged x. Other writers are simulated by calling `disk` as well.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.step = 0
        self.marks: list[tuple[int, Any]] = []
        self._live = self._snapshot(root)
        self._handles: dict[int, Node] = {}
        self._depth = 0
        for name in (*CHANGING, "close"):
            monkeypatch.setattr(disk, name, self._wrapped(name, getattr(disk, name)))

    def mark(self, what: Any) -> None:
        self.step += 1
        self.marks.append((self.step, what))

    def _snapshot(self, path: Path) -> Node:
        if path.is_dir():
            return Node(True, {entry.name: self._snapshot(entry) for entry in path.iterdir()})
        return Node(False, path.read_bytes())

    def _names(self, folder: Node) -> dict[str, Node]:
        names = dict(folder.base)
        for _, kind, change in folder.ops:
            if kind == "names":
                change(names)
        return names

    def _node(self, path: Path) -> Node:
        node = self._live
        for name in path.relative_to(self.root).parts:
            node = self._names(node)[name]
        return node

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return function(*args, **kwargs)
            self._depth += 1
            try:
                copied = os.pread(args[0], args[3] - args[2], args[2]) if name == "copy_range" else b""
                if name == "close":
                    self._handles.pop(args[0], None)
                try:
                    result = function(*args, **kwargs)
                except OSError:
                    if name in ("flush", "flush_full"):
                        self._log(self._handles[args[0]], "failed", None)
                    raise
                self._record(name, args, result, copied)
                return result
            finally:
                self._depth -= 1

        return call

    def _log(self, node: Node, kind: str, argument: Any) -> None:
        self.step += 1
        node.ops.append((self.step, kind, argument))

    def _change(self, path: Path, change: Callable[[dict[str, Node]], Any]) -> None:
        self._log(self._node(path.parent), "names", change)

    def _record(self, name: str, args: tuple[Any, ...], result: Any, copied: bytes) -> None:
        if name == "create":
            node = self._handles[result] = Node(False, b"")
            self._change(args[0], lambda names, key=args[0].name: names.update({key: node}))
        elif name == "open_append":
            self._handles[result] = self._node(args[0])
        elif name in ("write", "copy_range"):
            data = bytes(args[1]) if name == "write" else copied
            if data:
                self._log(self._handles[args[1 if name == "copy_range" else 0]], "write", data)
        elif name == "truncate":
            self._log(self._handles[args[0]], "truncate", args[1])
        elif name in ("flush", "flush_full"):
            self._log(self._handles[args[0]], "flush", None)
        elif name == "flush_directory":
            self._log(self._node(args[0]), "flush", None)
        elif name in ("rename", "rename_new"):
            old, new = args[0].name, args[1].name
            assert args[0].parent == args[1].parent, "the model knows no moves between folders"
            self._change(args[0], lambda names: names.update({new: names.pop(old)}))
        elif name == "exchange" and result:
            one, two = args[0].name, args[1].name
            self._change(args[0], lambda names: names.update({one: names[two], two: names[one]}))
        elif name in ("remove", "remove_tree"):
            gone = args[0].name
            self._change(args[0], lambda names: names.pop(gone))
        elif name == "make_directory":
            made = Node(True, {})
            self._change(args[0], lambda names, key=args[0].name: names.update({key: made}))

    def outages(self, *, honest: bool = True, sample: int = 400) -> Iterator[Outage]:
        """Every distinct state of the disk a power cut could leave, at every moment.

        What was not flushed is lost from any point on, separately for each file and folder; of the write at that point
        half may be there, or zeros in its place. What a failed flush did not write stays lost, whatever is flushed
        later. *sample*: at most so many combinations per moment. With *honest* = False no flush counts: the switch.
        """
        chance = random.Random(0)
        seen: set[Any] = set()
        for moment in range(self.step + 1):
            marks = tuple(what for step, what in self.marks if step <= moment)
            nodes = [node for node in self._all(self._live) if any(step <= moment for step, *_ in node.ops)]
            choices = [_survivors(node, moment, honest) for node in nodes]
            total = 1
            for choice in choices:
                total *= len(choice)
            if total <= sample:
                combinations: Iterator[tuple[Any, ...]] = itertools.product(*choices)
            else:
                combinations = (tuple(chance.choice(choice) for choice in choices) for _ in range(sample))
            for combination in combinations:
                states = {id(node): state for node, state in zip(nodes, combination, strict=True)}
                tree = _tree(self._live, states)
                key = (len(marks), _frozen(tree))
                if key not in seen:
                    seen.add(key)
                    yield Outage(moment, marks, tree)

    def _all(self, node: Node) -> Iterator[Node]:
        """Every node that ever had a name."""
        found: dict[int, Node] = {}

        def visit(node: Node) -> None:
            if id(node) in found:
                return
            found[id(node)] = node
            if node.folder:
                names = dict(node.base)
                for member in names.values():
                    visit(member)
                for _, kind, change in node.ops:
                    if kind == "names":
                        change(names)
                        for member in names.values():
                            visit(member)

        visit(node)
        return iter(found.values())


@frozen
class Outage:
    """The disk after a power cut. tree: name -> bytes or tree; marks: what had been acknowledged."""

    moment: int
    marks: tuple[Any, ...]
    tree: dict[str, Any] = field(repr=False)

    def restore(self, root: Path) -> None:
        """Make this the content of the empty or missing folder *root*."""
        _restore(self.tree, root)


def _restore(tree: dict[str, Any], root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        if isinstance(content, bytes):
            (root / name).write_bytes(content)
        else:
            _restore(content, root / name)


def _survivors(node: Node, moment: int, honest: bool) -> list[Any]:
    """All states of one file or folder that a cut after *moment* can leave."""
    done = [(kind, argument) for step, kind, argument in node.ops if step <= moment]
    if not honest:
        done = [op for op in done if op[0] not in ("flush", "failed")]
    durable = max((number + 1 for number, (kind, _) in enumerate(done) if kind == "flush"), default=0)
    if node.folder:
        return [done[:upto] for upto in range(durable, len(done) + 1)]
    failures = [number for number, (kind, _) in enumerate(done) if kind == "failed"]
    states: list[bytes] = []
    for upto in range(durable, len(done) + 1):
        for torn in ("whole", "half", "zeros") if durable < upto and done[upto - 1][0] == "write" else ("whole",):
            data = node.base
            for number, (kind, argument) in enumerate(done[:upto]):
                last = number == upto - 1
                if kind == "truncate":
                    data = data[:argument]
                elif kind == "write":
                    # Dropped by a failed flush that came before the next good one.
                    flushed = next((at for at in range(number, len(done)) if done[at][0] == "flush"), len(done))
                    dropped = any(number < failure < flushed for failure in failures)
                    if dropped or (last and torn == "zeros"):
                        data += bytes(len(argument))
                    else:
                        data += argument[: len(argument) // 2] if last and torn == "half" else argument
            if data not in states:
                states.append(data)
    return states


def _tree(node: Node, states: dict[int, Any]) -> Any:
    if not node.folder:
        return states.get(id(node), node.base)
    names = dict(node.base)
    for kind, change in states.get(id(node), ()):
        if kind == "names":
            change(names)
    return {name: _tree(member, states) for name, member in names.items()}


def _frozen(tree: Any) -> Any:
    return tree if isinstance(tree, bytes) else tuple((name, _frozen(tree[name])) for name in sorted(tree))


# kill -9


@define
class Killed:
    """What `kill_rounds` saw."""

    rounds: int = 0
    acknowledged: int = 0
    problems: list[str] = field(factory=list)


def kill_rounds(
    start: Callable[[int], subprocess.Popen[bytes]],
    check: Callable[[list[str]], list[str]],
    *,
    rounds: int,
    shortest: float = 0.02,
    longest: float = 0.09,
    stop_at_problem: bool = False,
) -> Killed:
    """Start a program, kill it with SIGKILL at a random moment, look at what it left; again and again.

    start: gets the round's number; the program writes one line per acknowledgement to its standard output, and the
    line "ready" when it begins. check: gets this round's lines (without "ready"), returns problems in words. Seconds
    from "ready" to the kill lie between *shortest* and *longest*. This process only listens, so what it heard of was
    acknowledged before the kill.
    """
    chance = random.Random(7)
    killed = Killed()
    for number in range(rounds):
        process = start(number)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first == b"ready\n", f"the program did not begin: {first!r}"
        time.sleep(chance.uniform(shortest, longest))
        os.kill(process.pid, signal.SIGKILL)
        heard = process.stdout.read().decode()
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL, "the program ended by itself"
        lines = heard.split("\n")[:-1]
        killed.rounds += 1
        killed.acknowledged += len(lines)
        killed.problems += check(lines)
        if stop_at_problem and killed.problems:
            break
    return killed


def number_of_kills(default: int) -> int:
    """Rounds of a kill suite: CRAFTD_KILLS, else *default*."""
    return int(os.environ.get("CRAFTD_KILLS", default))
