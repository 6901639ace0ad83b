"""The command `craftd`."""

from __future__ import annotations

import sys


def main() -> int:
    """Entry point. What an editor starts branches off before the imports of the command line: an editor waits."""
    try:
        if sys.argv[1:2] == ["stdio"]:
            from craftd.client import bridge

            return bridge.main(sys.argv[2:], _serve_here)
        from craftd.cli import commands

        return commands.run()
    except KeyboardInterrupt:  # in the midst of an import
        return 130


def _serve_here(config: str) -> int:
    from craftd.server import daemon

    return daemon.run_stdio(config)
