"""Tokens for clients of the network."""

from __future__ import annotations

import click

from craftd.cli import door, text


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that clients of --tcp and --ws show."""


@token.command()
@click.option("--name", default="", help="For you, to know it again.")
@click.option("--read", "rights", flag_value="read", multiple=True, help="It may see everything but secrets.")
@click.option("--write", "rights", flag_value="write", multiple=True, help="It may change records and files.")
@click.option("--execute", "rights", flag_value="execute", multiple=True, help="It may have programs started.")
@click.option("--secrets", "rights", flag_value="secrets", multiple=True, help="It may see secrets.")
@click.option("--admin", "rights", flag_value="admin", multiple=True, help="It may stop the daemon and make tokens.")
@click.option("-w", "--workspace", "workspaces", metavar="ID|PATH", multiple=True, help="Only this one; repeatable.")
@door.as_json
def create(name: str, rights: tuple[str, ...], workspaces: tuple[str, ...], json: bool) -> None:
    """Print a new token. It is shown this once; give it at least one right."""
    if not rights:
        raise click.UsageError("say what it may do: --read, --write, --execute, --secrets, --admin")
    params = {"name": name, "rights": list(rights)}
    if workspaces:
        params["workspaces"] = [door.name_of(workspace) for workspace in workspaces]
    with door.connected() as client:
        made = client.call("tokens/create", params)
    if json:
        text.emit(made)
    else:
        text.say(made["secret"])


@token.command("list")
@door.as_json
def list_(json: bool) -> None:
    """List all tokens, without their secrets."""
    with door.connected() as client:
        tokens = client.call("tokens/list")["tokens"]
    if json:
        for one in tokens:
            text.emit(one, one_line=True)
        return
    text.table(
        ("ID", "NAME", "RIGHTS", "WORKSPACES", "MADE"),
        (
            (
                one["id"],
                one["name"],
                " ".join(one["rights"]),
                " ".join(one.get("workspaces") or ["all"]),
                text.ago(one.get("createdAt")),
            )
            for one in tokens
        ),
    )


@token.command()
@click.argument("id")
def revoke(id: str) -> None:
    """Make the token ID worthless and close its connections. `local` is replaced by a new one."""
    with door.connected() as client:
        client.call("tokens/revoke", {"id": id})
    text.say(f"revoked {id}")
