"""Sessions into a file, for people or for another workspace, and back."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from craftd.cli import door, text

PIECE = 1 << 20
"""Bytes of one request: the most that the daemon takes or gives."""


@click.command("export")
@click.argument("id")
@click.option(
    "--format", "kind", type=click.Choice(("md", "bundle")), default="md", help="For people, or to be imported."
)
@click.option("-o", "--output", metavar="FILE", default="-", help="Write to a new FILE instead of standard output.")
@click.option("--redact", is_flag=True, help="Take out what looks like a secret (md).")
@click.option("--tools", is_flag=True, help="Also what tools were given and gave (md).")
@door.in_workspace
def export(id: str, kind: str, output: str, redact: bool, tools: bool, workspace: str | None) -> None:
    """Export one session: as Markdown for people, or as a bundle for `craftd import` and the app."""
    if kind == "bundle" and (redact or tools):
        raise click.UsageError("--redact and --tools are for --format md: a bundle has everything")
    with door.connected() as client:
        scope, _ = door.find_session(client, workspace, id, fields=["name"])
        if kind == "md":
            how = {"workspace": scope, "id": id, "redact": redact, "tools": tools}
            made = client.call("sessions/exportMarkdown", how)
        else:
            made = client.call("bundles/export", {"workspace": scope, "session": id})
        with click.open_file(output, "xb" if output != "-" else "wb") as file:
            for piece in _pieces(client, made):
                file.write(piece)
    for warning in made.get("warnings", ()):
        text.complain(f"{warning['path'] or id}: {warning['message']}")
    if made.get("redacted"):
        text.complain(f"{made['redacted']} secrets taken out; read it before you send it")


def _pieces(client: door.Door, made: Any) -> Iterator[bytes]:
    at = 0
    while at < made["size"]:
        piece = base64.b64decode(client.call("blobs/read", {"blob": made["blob"], "offset": at})["data"])
        at += len(piece)
        yield piece
    client.call("blobs/delete", {"blob": made["blob"]})


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--on-conflict",
    type=click.Choice(("skip", "overwrite", "rename")),
    default="skip",
    help="With what is there already (skip). What is overwritten goes to the trash.",
)
@door.in_workspace
@door.as_json
def bring_in(file: BinaryIO, on_conflict: str, workspace: str | None, json: bool) -> int:
    """Import a bundle of sessions, sources, skills and automations into one workspace."""
    with door.connected() as client:
        scopes = door.scopes(client, workspace)
        if len(scopes) != 1:
            raise click.UsageError("name the workspace with --workspace: there is more than one")
        content = {"blob": _staged(client, file)}
        came = client.call("bundles/import", {"workspace": scopes[0], "content": content, "onConflict": on_conflict})
    if json:
        text.emit(came, one_line=True)
    else:
        _tell(came)
    return 1 if any(came[noun]["failed"] for noun in _NOUNS) else 0


_NOUNS = ("sessions", "sources", "skills", "automations")


def _staged(client: door.Door, file: BinaryIO) -> str:
    size = os.fstat(file.fileno()).st_size if file is not sys.stdin.buffer else None
    blob: str = client.call("blobs/create", {} if not size else {"size": size})["blob"]
    at = 0
    while piece := file.read(PIECE):
        client.call("blobs/write", {"blob": blob, "offset": at, "data": base64.b64encode(piece).decode()})
        at += len(piece)
    return blob


def _tell(came: Any) -> None:
    for noun in _NOUNS:
        new = {pair["id"]: pair["newId"] for pair in came[noun]["renamed"]}
        for id in came[noun]["imported"]:
            text.say(f"{noun}/{new.get(id, id)}" + (f" (was {id})" if id in new else ""))
        for id in came[noun]["skipped"]:
            text.complain(f"{noun}/{id} is there already and was left as it is")
        for one in came[noun]["failed"]:
            text.complain(f"{noun}/{one['id']}: {one['error']}: {one['message']}")
    for warning in came["warnings"]:
        text.complain(f"sessions/{warning['id']}: {warning['path']}: {warning['message']}")
