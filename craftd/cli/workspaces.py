"""Workspaces: which are known, and one more."""

from __future__ import annotations

import os

import click

from craftd.cli import door, text
from craftd.client.failures import CallFailed


@click.group(invoke_without_command=True)
@click.pass_context
def workspaces(ctx: click.Context) -> None:
    """List the registered workspaces, or add one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_all, json=False)


@workspaces.command("list")
@door.as_json
def list_all(json: bool) -> None:
    """List the registered workspaces."""
    rows = []
    with door.connected() as client:
        for item in client.pages("workspaces/list", {}):
            if json:
                text.emit(item, one_line=True)
            else:
                value = item["value"]
                rows.append((str(item["id"]), str(value.get("name", "")), str(value.get("path", ""))))
    if not json:
        text.table(("ID", "NAME", "FOLDER"), rows)


@workspaces.command("add")
@click.argument("path", type=click.Path(file_okay=False))
@click.option("--name", help="What it is called; default: the folder's name.")
@click.option("--adopt", is_flag=True, help="Make a workspace of a folder that has other files in it.")
@door.as_json
def add(path: str, name: str | None, adopt: bool, json: bool) -> None:
    """Register a workspace folder; made if it does not exist."""
    if not path:
        raise click.UsageError("PATH is empty")
    folder = os.path.realpath(os.path.expanduser(path))
    value = {"name": name or os.path.basename(folder) or folder, "path": folder}
    with door.connected() as client:
        try:
            item = client.call("workspaces/create", {"value": value, **({"adopt": True} if adopt else {})})["item"]
        except CallFailed as error:
            if "adopt" not in error.data.get("allowed", []):
                raise
            raise click.ClickException(
                f"{folder} is neither empty nor a workspace; --adopt makes it one, its files stay"
            ) from None
    if json:
        text.emit(item, one_line=True)
    else:
        text.say(f"{item['id']}  {folder}")
