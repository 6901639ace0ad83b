"""Ways to hurt a program that stores things. They know `craftd.store.disk` and nothing above it, so every layer can use
them: single disk calls that fail, power cuts at every moment, `kill -9`.

A fault suite that cannot fail proves nothing: each way comes with a switch that breaks the promise, and the suites
assert that losses are then seen.
"""

from __future__ import annotations

import errno
import functools
import importlib
import itertools
import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen

from craftd.store import disk

CHANGING = (
    "create", "open_append", "write", "write_at", "copy_range", "truncate", "flush", "flush_full", "flush_directory",
    "rename", "rename_new", "exchange", "remove", "make_directory", "remove_directory", "remove_tree",
    "keep_mode_and_owner", "set_mode",
)  # fmt: skip
"""The disk's functions, but for those made of them and `close`, whose errors the kernel reports on flushing."""


_HELD = Path("/proc/self/fd")


# Single calls that fail


class Breaker:
    """Fails the disk calls it is told to, in order of all calls together; counts them otherwise.

    `arm(3, ENOSPC)`: the fourth call from now raises; with *torn* a failing write first writes half. *within*: only
    calls that touch something whose path begins so are counted and fail.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self._fail_at = -1
        self._number = 0
        self._torn = False
        self._forever = False
        self._within = ""
        self._mutex = threading.Lock()
        self._inside = threading.local()
        for name in CHANGING:
            monkeypatch.setattr(disk, name, self._wrapped(name, getattr(disk, name)))

    def arm(self, at: int, number: int, *, torn: bool = False, forever: bool = False, within: Path | str = "") -> None:
        with self._mutex:
            self.calls.clear()
            self._fail_at, self._number, self._torn, self._forever = at, number, torn, forever
            self._within = str(within)

    def disarm(self) -> None:
        self.arm(-1, 0)

    def _fails(self, name: str, args: tuple[Any, ...]) -> bool:
        with self._mutex:
            if not any(path.startswith(self._within) for path in _paths(args)):
                return False
            self.calls.append(name)
            reached = len(self.calls) - 1
            return self._fail_at >= 0 and (reached == self._fail_at or (self._forever and reached > self._fail_at))

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "call", False):
                return function(*args, **kwargs)
            if self._fails(name, args):
                if self._torn and name in ("write", "write_at"):
                    function(args[0], args[1][: len(args[1]) // 2], *args[2:])
                raise OSError(self._number, errno.errorcode[self._number])
            self._inside.call = True
            try:
                return function(*args, **kwargs)
            finally:
                self._inside.call = False

        return call


def _paths(args: tuple[Any, ...]) -> list[str]:
    """The files a disk call is about: a handle comes first, names may be two."""
    if isinstance(args[0], int):
        return [os.readlink(f"/proc/self/fd/{args[0]}")]
    return [str(_plain(arg)) for arg in args if isinstance(arg, Path)]


def _plain(arg: Any) -> Any:
    """A path in a folder that is held open, by the folder's name."""
    if not isinstance(arg, Path) or not arg.is_relative_to(_HELD):
        return arg
    number, *rest = arg.relative_to(_HELD).parts
    return Path(os.readlink(_HELD / number), *rest)


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

    `mark(x)`: the program has acknowledged x. Other writers are simulated by calling `disk` as well. A move from one
    folder to another is one change of both: file systems with a journal never keep half of it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.step = 0
        self.marks: list[tuple[int, Any]] = []
        self._live = self._snapshot(root)
        self._handles: dict[int, Node] = {}
        self._moves: list[tuple[int, Node, Node]] = []
        self._mutex = threading.RLock()
        self._depth = 0
        for name in (*CHANGING, "close"):
            monkeypatch.setattr(disk, name, self._wrapped(name, getattr(disk, name)))

    def mark(self, what: Any) -> None:
        with self._mutex:
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
            with self._mutex:
                if self._depth:
                    return function(*args, **kwargs)
                self._depth += 1
                try:
                    plain = tuple(map(_plain, args))
                    copied = os.pread(args[0], args[3] - args[2], args[2]) if name == "copy_range" else b""
                    if name == "close":
                        self._handles.pop(args[0], None)
                    try:
                        result = function(*args, **kwargs)
                    except OSError:
                        if name in ("flush", "flush_full") and args[0] in self._handles:
                            self._log(self._handles[args[0]], "failed", None)
                        raise
                    if self._is_ours(name, plain):
                        self._record(name, plain, result, copied)
                    return result
                finally:
                    self._depth -= 1

        return call

    def _is_ours(self, name: str, args: tuple[Any, ...]) -> bool:
        what = args[1 if name == "copy_range" else 0]
        return what in self._handles if isinstance(what, int) else what.is_relative_to(self.root)

    def _log(self, node: Node, kind: str, argument: Any) -> None:
        self.step += 1
        node.ops.append((self.step, kind, argument))

    def _change(self, path: Path, change: Callable[[dict[str, Node]], Any]) -> None:
        self._log(self._node(path.parent), "names", change)

    def _move(self, old: Path, new: Path) -> None:
        """One step that two folders share."""
        moved, source, target = self._node(old), self._node(old.parent), self._node(new.parent)
        self._log(source, "names", lambda names: names.pop(old.name))
        target.ops.append((self.step, "names", lambda names: names.update({new.name: moved})))
        self._moves.append((self.step, source, target))

    def _swap(self, one: Path, two: Path) -> None:
        """Names in two folders, in one step that both share."""
        first, second, left, right = self._node(one), self._node(two), self._node(one.parent), self._node(two.parent)
        self._log(left, "names", lambda names: names.update({one.name: second}))
        right.ops.append((self.step, "names", lambda names: names.update({two.name: first})))
        self._moves.append((self.step, left, right))

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
        elif name in ("rename", "rename_new") and args[0].parent != args[1].parent:
            self._move(args[0], args[1])
        elif name in ("rename", "rename_new"):
            old, new = args[0].name, args[1].name
            self._change(args[0], lambda names: names.update({new: names.pop(old)}))
        elif name == "exchange" and result and args[0].parent != args[1].parent:
            self._swap(args[0], args[1])
        elif name == "exchange" and result:
            one, two = args[0].name, args[1].name
            self._change(args[0], lambda names: names.update({one: names[two], two: names[one]}))
        elif name in ("remove", "remove_directory", "remove_tree"):
            gone = args[0].name
            self._change(args[0], lambda names: names.pop(gone))
        elif name == "make_directory":
            made = Node(True, {})
            self._change(args[0], lambda names, key=args[0].name: names.update({key: made}))

    def outages(self, *, honest: bool = True, sample: int = 400) -> Iterator[Outage]:
        """Every distinct state of the disk a power cut could leave, at every moment.

        What was not flushed is lost from any point on, separately for each file and folder; of the write at that point
        half may be there, or zeros in its place. What a failed flush did not write stays lost, whatever is flushed
        later. *sample*: of more combinations than that at one moment, so many: nothing of what was not flushed is
        there, all of it, each file or folder alone ahead of or behind the others, and random ones. With *honest* =
        False no flush counts: the switch.
        """
        chance = random.Random(0)
        seen: set[Any] = set()
        for moment in range(self.step + 1):
            marks = tuple(what for step, what in self.marks if step <= moment)
            nodes = [node for node in self._all(self._live) if any(step <= moment for step, *_ in node.ops)]
            moves = [(step, id(source), id(target)) for step, source, target in self._moves if step <= moment]
            choices = [_survivors(node, moment, honest) for node in nodes]
            for combination in _combinations(choices, sample, chance):
                states = {id(node): state for node, state in zip(nodes, combination, strict=True)}
                if any(_has(states[source], step) != _has(states[target], step) for step, source, target in moves):
                    continue
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


def _combinations(choices: Sequence[Sequence[Any]], sample: int, chance: random.Random) -> Iterator[tuple[Any, ...]]:
    total = 1
    for choice in choices:
        total *= len(choice)
    if total <= sample:
        yield from itertools.product(*choices)
        return
    least, most = [choice[0] for choice in choices], [choice[-1] for choice in choices]
    extremes = [least, most]
    for at, choice in enumerate(choices):
        if len(choice) > 1:
            extremes += [[*least[:at], most[at], *least[at + 1 :]], [*most[:at], least[at], *most[at + 1 :]]]
    if len(extremes) > sample:
        extremes = [*extremes[:2], *chance.sample(extremes[2:], sample - 2)]
    yield from map(tuple, extremes)
    for _ in range(sample - len(extremes)):
        yield tuple(chance.choice(choice) for choice in choices)


def _has(folder: Sequence[tuple[int, str, Any]], step: int) -> bool:
    return any(at == step for at, *_ in folder)


def _survivors(node: Node, moment: int, honest: bool) -> list[Any]:
    """All states of one file or folder that a cut after *moment* can leave; the one with least first, most last."""
    ops = [op for op in node.ops if op[0] <= moment and (honest or op[1] not in ("flush", "failed"))]
    done = [(kind, argument) for _, kind, argument in ops]
    durable = max((number + 1 for number, (kind, _) in enumerate(done) if kind == "flush"), default=0)
    if node.folder:
        changed = [number + 1 for number in range(durable, len(ops)) if done[number][0] == "names"]
        return [ops[:upto] for upto in (durable, *changed)]
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
    for _, kind, change in states.get(id(node), ()):
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

    @property
    def lost(self) -> bool:
        """Whether something acknowledged was not there any more."""
        return any("acknowledged was" in problem for problem in self.problems)


class Program:
    """A process that runs *main*(say, *args*), forked from one that has imported everything, so it begins at once.

    say: writes lines which `kill_rounds` reads. lazy: with the disk that loses what is acknowledged.
    """

    def __init__(self, main: Callable[..., None], *args: Any, lazy: bool = False) -> None:
        self.hears, says = forking().Pipe(duplex=False)
        self._process = forking().Process(target=_run, args=(says, lazy, main, args), daemon=True)
        self._process.start()
        says.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def fileno(self) -> int:
        return self.hears.fileno()

    def killed(self) -> bool:
        """Wait for its end; whether signal 9 was its end."""
        self._process.join()
        self.hears.close()
        return self._process.exitcode == -signal.SIGKILL


@functools.cache
def forking() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.faults.harness", "tests.faults.victim", "tests.faults.scope_victim", "tests.faults.frozen"]
    )
    return context


def _run(says: Any, lazy: bool, main: Callable[..., None], args: tuple[Any, ...]) -> None:
    if lazy:
        os.environ["CRAFTD_TEST_DISK"] = "lazy"
        importlib.reload(disk)

    def say(*lines: str) -> None:
        os.write(says.fileno(), "".join(f"{line}\n" for line in lines).encode())

    main(say, *args)


def kill_rounds(
    start: Callable[[int], Program],
    check: Callable[[list[str]], list[str]],
    *,
    rounds: int,
    most: int = 16,
    longest: float = 0.004,
    until_a_loss: bool = False,
) -> Killed:
    """Start a program, kill it with SIGKILL at a random moment, look at what it left; again and again.

    start: gets the round's number; the program says one line before a change and one per acknowledgement, and "ready"
    when it begins. check: gets this round's lines (without "ready"), returns problems in words. It is killed up to
    *longest* seconds after one of the first *most* lines, whichever chance takes: so a busy machine does not decide how
    far it comes. This process only listens, so what it heard of was acknowledged before the kill.
    """
    chance = random.Random(7)
    killed = Killed()
    for number in range(rounds):
        program = start(number)
        heard = b""
        last_line, delay = chance.randint(1, most), chance.uniform(0.0, longest)
        while heard.count(b"\n") < last_line:
            piece = os.read(program.fileno(), 1 << 16)
            assert piece, f"the program ended by itself: {heard[-1000:]!r}"
            heard += piece
        time.sleep(delay)
        os.kill(program.pid, signal.SIGKILL)
        while piece := os.read(program.fileno(), 1 << 16):
            heard += piece
        assert program.killed(), "the program ended by itself"
        lines = heard.decode().split("\n")[1:-1]
        killed.rounds += 1
        killed.acknowledged += len(lines)
        killed.problems += check(lines)
        if until_a_loss and killed.lost:
            break
    return killed


def number_of_kills(default: int) -> int:
    """Rounds of a kill suite: CRAFTD_KILLS, else *default*."""
    return int(os.environ.get("CRAFTD_KILLS", default))
