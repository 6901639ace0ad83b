"""Check files without a daemon, as a compiler would."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from craftd.cli import door, text
from craftd.protocol import rendezvous

if TYPE_CHECKING:
    from craftd.errors import Issue

Found = tuple[Path, "Issue"]


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@door.as_json
def check(paths: tuple[str, ...], strict: bool, json: bool) -> int:
    """Report everything that is wrong with files; no daemon is needed, and nothing is written.

    PATH is a workspace, registered or not, a configuration folder (with the workspaces it names), or a file or folder
    in one of them. Default: the workspace of the current folder, else the configuration folder.

    One line for each finding: `path:line:column: severity: message [code]`. Exit 1 if there are errors, 2 if a PATH
    cannot be checked.
    """
    config = Path(rendezvous.find().config)
    errors = total = 0
    for root, issue in _findings(paths, config):
        total += 1
        errors += issue.severity == "error" or strict
        if json:
            text.emit({"folder": str(root), **issue.as_json()}, one_line=True)
        else:
            text.say(line_of(root, issue))
    if not json:
        text.complain(
            f"{text.plural(total, 'finding')}, {text.plural(errors, 'error')}" if total else "nothing is wrong"
        )
    return 1 if errors else 0


def _findings(paths: tuple[str, ...], config: Path) -> Iterator[Found]:
    """In the order asked for, each once."""
    from craftd.workspace import checking

    here = [Path(os.path.abspath(os.path.expanduser(path))) for path in paths]
    if not here:
        found = checking.root_of(Path.cwd())
        here = [found if found is not None and checking.kind_of(found) == "workspace" else config]
    told: set[tuple[Path, str]] = set()
    for path in here:
        root = path if path == config else checking.root_of(path)
        if root is None or not os.path.lexists(path):
            reason = (
                "is neither a workspace nor a configuration folder, nor in one" if path.exists() else "is not there"
            )
            raise click.UsageError(f"{path} {reason}")
        try:
            folders = checking.look(root, config, within=path)
        except OSError as error:
            raise click.UsageError(f"{error.filename or path} cannot be read: {error.strerror}") from None
        for folder in folders:
            for name, issues in folder.issues.items():
                if (folder.root, name) not in told:
                    told.add((folder.root, name))
                    yield from ((folder.root, issue) for issue in issues)


def line_of(root: Path, issue: Issue) -> str:
    """`path:line:column: severity: message [code]`; the path from here, where it lies below."""
    place = _shown(root / issue.path)
    if issue.range is not None:
        start = issue.range["start"]
        place += f":{start['line'] + 1}:{start['character'] + 1}"
    code = f" [{issue.code}]" if issue.code else ""
    return f"{place}: {issue.severity}: {' '.join(issue.message.split())}{code}"


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
