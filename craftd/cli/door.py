"""How commands reach the daemon, and which workspaces they mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from craftd.client import launch
from craftd.client.client import CallFailed, Client
from craftd.protocol import rendezvous

in_workspace = click.option(
    "-w",
    "--workspace",
    metavar="ID|PATH",
    help="Work in this workspace: its id, slug or folder. Default: where you are, else all.",
)
as_json = click.option("--json", "json", is_flag=True, help="Print JSON, one value a line.")


@contextmanager
def connected() -> Iterator[Client]:
    """A client of the daemon, which is started if it does not run."""
    with Client.connect(rendezvous.find(), "craftd command line") as client:
        yield client


@contextmanager
def connected_if_running() -> Iterator[Client | None]:
    """A client of the running daemon, None if there is none."""
    link = launch.greet(rendezvous.find(), "craftd command line")
    if link is None:
        yield None
    else:
        with Client(link, "craftd command line") as client:
            yield client


def name_of(workspace: str) -> str:
    """What the user typed as the protocol wants it: a folder gets its full name, everything else stays."""
    if os.sep in workspace or workspace.startswith(("~", ".")):
        return os.path.realpath(os.path.expanduser(workspace))
    return workspace


def scopes(client: Client, workspace: str | None) -> list[str]:
    """The workspace that was named; else those of the working directory; else all that are registered."""
    if workspace is not None:
        return [name_of(workspace)]
    selected = [str(found["id"]) for found in client.selected]
    return selected or [str(item["id"]) for item in client.pages("workspaces/list", {})]


def find_session(client: Client, workspace: str | None, id: str, **params: Any) -> tuple[str, Any]:
    """The workspace in which session *id* lives, and the answer of `sessions/get`.

    Where you are is only looked at first: an id is hardly ever in two workspaces.
    """
    candidates = scopes(client, workspace)
    if workspace is None:
        others = (str(item["id"]) for item in client.pages("workspaces/list", {}))
        candidates = list(dict.fromkeys([*candidates, *others]))
    missing: CallFailed | None = None
    for candidate in candidates:
        try:
            return candidate, client.call("sessions/get", {"workspace": candidate, "id": id, **params})
        except CallFailed as error:
            if error.name != "NotFound":
                raise
            missing = error
    raise missing or click.ClickException("no workspace is registered: craftd workspaces add PATH")
