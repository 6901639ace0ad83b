"""Measure craftd beside what a user would have otherwise.

    python -m benchmarks [NAME ...] [--json FILE] [--quick]

Every figure stands beside its alternative from the same run; trust the ratios more than the absolute values. Each
benchmark checks the answers it times. Times are wall-clock medians unless a line says otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import time
from pathlib import Path

from benchmarks.report import Figure, Measure, table

NAMES = (
    "append",
    "written",
    "turn",
    "rename",
    "sizes",
    "listing",
    "search",
    "requests",
    "fanout",
    "ways",
    "door",
    "idle",
    "watch",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--quick", action="store_true", help="small and short, to see that everything works")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    print(f"{machine()}\n")
    measured: dict[str, list[Figure]] = {}
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        measure: Measure = module.measure
        start = time.perf_counter()
        measured[name] = list(measure(options.quick))
        print(f"## {name}: {(module.__doc__ or '').partition(chr(10))[0]}\n")
        print(f"{table(measured[name])}\n\n{time.perf_counter() - start:.0f} s\n", flush=True)
    if options.json is not None:
        content = {name: [figure.as_json() for figure in figures] for name, figures in measured.items()}
        options.json.write_text(json.dumps({"machine": machine(), "benchmarks": content}, indent=2) + "\n")


def machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    system = f"{platform.system()} {platform.release()}"
    return f"Python {platform.python_version()}, {system}, {os.cpu_count()} CPUs, {memory:.0f} GiB"


if __name__ == "__main__":
    main()
