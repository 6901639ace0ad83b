"""What an editor and a shell wait for: a bridge to the running daemon, the first command without one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import daemon
from benchmarks.listing import importing
from benchmarks.report import Figure, check, p50
from craftd.client import wire

INITIALIZE = {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}
CRAFTD = [sys.executable, "-m", "craftd"]


def measure(quick: bool) -> Iterator[Figure]:
    rounds = 3 if quick else 15
    bare, bridges, pygls, calls, imports, firsts = [], [], [], [], [], []
    with daemon.running(sessions=100) as server:
        server.connect().call("sessions/list", {"workspace": daemon.WORKSPACE})
        variables = daemon.environment(server.base)
        for _ in range(rounds):
            bare.append(timed([sys.executable, "-c", "pass"]))
            bridges.append(bridge(variables))
            pygls.append(timed([sys.executable, "-c", "import pygls.lsp.server"]))
            calls.append(timed([*CRAFTD, "call", "daemon/status"], variables))
    for _ in range(rounds):
        with daemon.folder() as base:
            daemon.prepare(base)
            imports.append(importing(base) * 1000)
            variables = daemon.environment(base)
            firsts.append(timed([*CRAFTD, "call", "daemon/status"], variables))
            timed([*CRAFTD, "stop"], variables)
    yield Figure(
        what="bridge start to `initialize` answered", value=p50(bridges), unit="ms", beside=p50(pygls),
        otherwise="a server per editor: import of pygls alone", at_most=60,
    )  # fmt: skip
    yield Figure(
        what="  of which a bare interpreter", value=p50(bare), unit="ms",
    )  # fmt: skip
    yield Figure(
        what="`craftd call`, daemon running", value=p50(calls), unit="ms", beside=p50(bare),
        otherwise="a bare interpreter",
    )  # fmt: skip
    beyond = p50([first - imported for first, imported in zip(firsts, imports, strict=True)])
    yield Figure(what="first `craftd call` without a daemon", value=p50(firsts), unit="ms", beside=p50(imports),
        otherwise="imports alone")  # fmt: skip
    yield Figure(what="  beyond the imports", value=beyond, unit="ms", at_most=500)


def timed(command: list[str], variables: dict[str, str] | None = None) -> float:
    """Milliseconds that a command takes."""
    start = time.perf_counter()
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL, timeout=60)
    return (time.perf_counter() - start) * 1000


def bridge(variables: dict[str, str]) -> float:
    start = time.perf_counter()
    with subprocess.Popen(
        [*CRAFTD, "stdio"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(wire.frame(INITIALIZE))
        answer = wire.Incoming(process.stdout.read).next()
        took = (time.perf_counter() - start) * 1000
        check(answer is not None and "capabilities" in answer["result"], f"the answer {json.dumps(answer)[:200]}")
        process.stdin.close()
    return took
