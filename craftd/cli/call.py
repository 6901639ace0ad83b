"""The whole protocol from a shell: any method, any notification."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class

from craftd.cli import door, text

if TYPE_CHECKING:
    from craftd.protocol.registry import Method


def _methods() -> dict[str, Method]:
    """What the command line calls: every request that is craftd's own."""
    import craftd.protocol.methods  # noqa: F401 (fills the registry)
    from craftd.protocol.registry import METHODS

    return {name: row for name, row in sorted(METHODS.items()) if not row.notification}


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(name, help=_first_line(row)) for name, row in _methods().items() if name.startswith(incomplete)
    ]


class _Call(click.Command):
    """Its help comes from the registry: all methods, or the one that is named beside --help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # --help is answered before arguments have their values
        if {"-h", "--help"} & {*args}:
            ctx.meta["method"] = next(filter(None, map(_methods().get, args)), None)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        row = ctx.meta.get("method")
        if row is None:
            super().format_help_text(ctx, formatter)
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{row.name} (right: {row.right}, since {row.since})")
            for paragraph in row.doc.split("\n\n"):
                formatter.write_paragraph()
                formatter.write_text(paragraph)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        row = ctx.meta.get("method")
        if row is None:
            with formatter.section("Methods"):
                formatter.write_dl([(name, _first_line(row)) for name, row in _methods().items()])
        else:
            with formatter.section("Params"):
                formatter.write_dl(_members(row) or [("none", "")])


def _first_line(row: Method) -> str:
    return row.doc.partition("\n")[0]


def _members(row: Method) -> list[tuple[str, str]]:
    from attrs import NOTHING, fields

    from craftd.protocol.codec import camel

    return [
        (camel(member.name), f"{'required, ' if member.default is NOTHING else ''}{member.type}")
        for member in fields(row.params)
    ]


@click.command(cls=_Call)
@click.argument("method", shell_complete=_complete)
@click.argument("params", metavar="[JSON|-]", default="{}")
@click.option("-w", "--workspace", metavar="ID|PATH", help="Member `workspace` of the params.")
def call(method: str, params: str, workspace: str | None) -> None:
    """Send one request and print its result.

    METHOD is a name like sessions/list; `craftd call METHOD --help` shows its params. "-" reads the params from
    standard input.
    """
    members = _parse(sys.stdin.buffer.read() if params == "-" else params.encode(errors="surrogateescape"))
    if workspace is not None:
        members["workspace"] = door.name_of(workspace)
    with door.connected() as client:
        text.emit(client.call(method, members))


def _parse(source: bytes) -> dict[str, Any]:
    try:
        members = json.loads(source.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise click.UsageError("the params are not UTF-8") from None
    except RecursionError:
        raise click.UsageError("the params are nested too deeply") from None
    except ValueError as error:
        raise click.UsageError(f"the params are not JSON: {error}") from None
    if not isinstance(members, dict):
        raise click.UsageError("the params must be a JSON object")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


@click.command()
@door.in_workspace
@click.option(
    "-t", "--topic", "topics", multiple=True, metavar="NOUN", help="Only this noun, e.g. sessions; repeatable."
)
def listen(workspace: str | None, topics: tuple[str, ...]) -> None:
    """Print every change as it happens, one JSON object a line: {"method", "params"}."""
    wanted = list(topics) or None
    with door.connected() as client:
        for scope in door.scopes(client, workspace):
            client.subscribe(scope, topics=wanted)
        if workspace is None:
            client.subscribe(None, topics=wanted)
        for event in client.notifications():
            text.emit({"method": event["method"], "params": event.get("params", {})}, one_line=True)
            if event["method"] == "workspaces/didCreate" and workspace is None:
                client.subscribe(event["params"]["item"]["id"], topics=wanted)


@click.command()
def schema() -> None:
    """Print the protocol as an OpenRPC document."""
    from craftd.protocol import generate

    text.emit(generate.openrpc())


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and methods.

    bash: eval "$(craftd completion bash)" in ~/.bashrc; zsh the same in ~/.zshrc; fish: craftd completion fish >
    ~/.config/fish/completions/craftd.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    text.say(kind(ctx.find_root().command, {}, "craftd", "_CRAFTD_COMPLETE").source())
