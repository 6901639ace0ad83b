"""Workspaces: which are known, one more, and what is wrong with their files."""

from __future__ import annotations

import os
from typing import Any

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


@click.command()
@door.in_workspace
@door.as_json
def doctor(workspace: str | None, json: bool) -> int:
    """Report everything that is wrong with the files of all workspaces; changes nothing. Exit 1 if there are errors."""
    errors = total = 0
    with door.connected() as client:
        registered = client.pages("workspaces/list", {})
        there = [(str(item["id"]), item["value"]["path"]) for item in registered if not _is_elsewhere(item)]
        scopes = [(None, "configuration"), *there] if workspace is None else [(door.name_of(workspace), workspace)]
        for id, shown in scopes:
            named = {} if id is None else {"workspace": id}
            for found in client.call("issues/list", named)["items"]:
                total += 1
                errors += found.get("severity") == "error"
                if json:
                    text.emit({**named, **found}, one_line=True)
                else:
                    text.say(_line(shown, found))
    if not json:
        text.say(text.plural(total, "finding") + f", {text.plural(errors, 'error')}" if total else "nothing is wrong")
    return 1 if errors else 0


def _is_elsewhere(item: dict[str, Any]) -> bool:
    """Not to be asked by itself: its folder is gone, which the configuration's list says, or another entry has it."""
    info = item.get("info", {})
    return bool(info.get("missing") or info.get("aliasOf"))


def _line(scope: str, found: dict[str, object]) -> str:
    place = str(found.get("path", ""))
    span = found.get("range")
    if isinstance(span, dict):
        place += f":{span['start']['line'] + 1}"
    code = f" [{found['code']}]" if found.get("code") else ""
    return f"{found.get('severity')}: {scope}: {place}: {found.get('message')}{code}"
