"""All commands, and what becomes of their failures."""

from __future__ import annotations

import click

from craftd.cli import call, check, doctor, exchange, search, serve, sessions, text, token, workspaces
from craftd.client.failures import CallFailed, ConnectionLost
from craftd.client.launch import Mismatch, NotReached
from craftd.protocol.rendezvous import VERSION


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="craftd")
def craftd() -> None:
    """The workspace daemon for agent sessions: one program writes, every client is told what changed.

    Commands find the daemon of $CRAFT_CONFIG_DIR (default ~/.craft-agent) and start it if need be.
    """


@click.command("stdio", add_help_option=False)
def stdio() -> None:
    """Connect an editor: the daemon on standard input and output."""


for command in (
    serve.serve, stdio, serve.status, serve.stop, serve.restart, serve.release, serve.logs,
    call.call, call.listen, call.schema, call.completion,
    sessions.ls, sessions.show, sessions.tail, search.search, exchange.export, exchange.bring_in,
    workspaces.workspaces, doctor.doctor, check.check, token.token,
):  # fmt: skip
    craftd.add_command(command)


def run(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code: 1 for a failure, said on standard error as `craftd: <Name> (<code>): message`."""
    text.prepare()
    try:
        result = craftd.main(arguments, prog_name="craftd", standalone_mode=False)
    except CallFailed as error:
        return _fail(error.name, error.code, error.message + _advice(error))
    except Mismatch as error:
        return _fail("Unsupported", 1011, str(error))
    except (NotReached, ConnectionLost) as error:
        return _fail("Unavailable", 1014, str(error))
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        text.complain(error.message)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:  # a full disk below standard output, a log that cannot be read
        text.complain(": ".join(filter(None, [error.filename, error.strerror or str(error)])))
        return 1
    return result if isinstance(result, int) else 0


def _fail(name: str, code: int, message: str) -> int:
    text.complain(f"{name} ({code}): {message}")
    return 1


def _advice(error: CallFailed) -> str:
    """What the command line has for a failure that the protocol words for all clients."""
    noun = (error.data.get("resource") or {}).get("noun")
    if error.name == "NotFound" and noun == "workspaces":
        return ", or its folder is gone: `craftd workspaces` lists all, `craftd workspaces add FOLDER` registers one"
    return ""
