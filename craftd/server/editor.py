"""What every LSP client expects of a server: `initialize`, `shutdown`, commands, reports of changed files."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from craftd.errors import InvalidParams
from craftd.protocol import contract, lsp
from craftd.protocol.framing import MAX_BODY
from craftd.protocol.initialize import Opened, Welcome, Wishes, abilities_of, options_of, token_of
from craftd.protocol.registry import RIGHTS
from craftd.protocol.rendezvous import PROTOCOL, VERSION
from craftd.server.blobs import BLOB_BYTES, CHUNK_BYTES
from craftd.server.connection import MAX_IN_FLIGHT, Connection
from craftd.server.outbox import LAPSE_BYTES
from craftd.workspace.first_reading import FirstReading
from craftd.workspace.journal import JOURNAL_CHANGES, JOURNAL_MS

if TYPE_CHECKING:
    from craftd.server.dispatch import Call

log = logging.getLogger(__name__)

CRAFT_CALL = "craft.call"
"""The command through which any editor reaches the whole protocol: arguments `[method, params]`."""


async def initialize(call: Call, params: Any) -> Any:
    """Answered from lsprotocol's classes, so it waits until they are imported; but who asks comes first."""
    if call.connection.caller is not None:
        await call.dispatcher.core.authenticate(call.connection, token_of(params))
    await asyncio.shield(call.dispatcher.lsp_loaded())
    from lsprotocol import types

    asked = lsp.structure("initialize", params)
    wishes = Wishes(
        options=options_of(asked.initialization_options),
        abilities=abilities_of(asked.capabilities.experimental),
        folders=_folders(asked),
    )
    connection = call.connection
    connection.name = None if asked.client_info is None else asked.client_info.name
    opened = await call.dispatcher.core.initialize(connection, wishes)
    connection.workspaces = tuple(workspace.id for workspace in opened.workspaces)
    connection.roles = frozenset(wishes.abilities.roles)
    connection.watchers = _watchers(asked.capabilities, opened)
    if not getattr(asked.capabilities.window, "work_done_progress", False):
        connection.readings = ()
    if connection.lifecycle.initialized:  # said without waiting for the answer
        call.after.append(partial(initialized, connection))
    result = lsp.unstructure(
        types.InitializeResult(
            server_info=types.ServerInfo(name="craftd", version=VERSION),
            capabilities=types.ServerCapabilities(
                execute_command_provider=types.ExecuteCommandOptions(commands=[CRAFT_CALL]),
                workspace=types.WorkspaceOptions(
                    workspace_folders=types.WorkspaceFoldersServerCapabilities(supported=True)
                ),
            ),
        )
    )
    result["capabilities"]["experimental"] = {"craft": _welcome(call, opened)}
    return result


def shutdown(call: Call, params: Any) -> None:
    """The end of this connection alone. Its turn comes after the changes sent before."""


def unknown_command(call: Call, params: Any) -> None:
    raise InvalidParams.of("command", f"there is no command {params.command!r}")


def watched_files(call: Call, params: Any) -> None:
    """A hint only: the daemon watches by itself."""
    call.dispatcher.core.hint([path for change in params.changes if (path := path_of(change.uri)) is not None])


def initialized(connection: Connection) -> None:
    """The client is ready to be asked."""
    if connection.watchers:
        registration = {
            "id": "files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": connection.watchers},
        }
        asked = connection.ask("client/registerCapability", {"registrations": [registration]})
        asked.add_done_callback(_registered)
    for number, (name, reading) in enumerate(connection.readings):
        if not reading.finished:
            token = f"reading-{number}"
            created = connection.ask("window/workDoneProgress/create", {"token": token})
            created.add_done_callback(partial(_show_reading, connection, token, name, reading))
    connection.readings = ()


def _show_reading(
    connection: Connection, token: str, name: str, reading: FirstReading, created: asyncio.Future[Any]
) -> None:
    """The client shows how far *reading* is, if it takes the token and there is still something to show."""
    if created.cancelled() or created.exception() is not None or reading.finished:
        return

    def say(kind: str, **more: Any) -> None:
        connection.notify("$/progress", {"token": token, "value": {"kind": kind, **more}})

    def heard(percent: int) -> None:
        if percent < 100:
            say("report", percentage=percent)
        else:
            say("end")

    say("begin", title=f"Reading {name}", percentage=reading.percent)
    reading.hear(heard)


LIFE: Mapping[str, Callable[[Call, Any], Any]] = {"initialize": initialize, "shutdown": shutdown}
"""Their params are taken as they come."""
SERVED: Mapping[str, Callable[[Call, Any], Any]] = {
    "workspace/executeCommand": unknown_command,
    "workspace/didChangeWatchedFiles": watched_files,
}


def path_of(uri: str) -> str | None:
    """The path that a `file:` URI names; None for any other, and for one that cannot be read."""
    from pygls import uris

    try:
        return uris.to_fs_path(uri) if uri.startswith("file:") else None
    except ValueError:
        return None


def _folders(asked: Any) -> tuple[str, ...]:
    if asked.workspace_folders:
        uris = [folder.uri for folder in asked.workspace_folders]
    elif asked.root_uri is not None:
        uris = [asked.root_uri]
    else:
        return () if asked.root_path is None else (asked.root_path,)
    return tuple(path for uri in uris if (path := path_of(uri)) is not None)


def _watchers(capabilities: Any, opened: Opened) -> tuple[dict[str, Any], ...]:
    ability = getattr(capabilities.workspace, "did_change_watched_files", None)
    if not getattr(ability, "dynamic_registration", False):
        return ()
    return tuple({"globPattern": f"{workspace.path}/**/*"} for workspace in opened.workspaces)


def _welcome(call: Call, opened: Opened) -> Welcome:
    connection = call.connection
    return Welcome(
        epoch=opened.epoch,
        read_only=opened.read_only,
        workspaces=opened.workspaces,
        features=opened.features,
        protocol=PROTOCOL,
        client_id=connection.id,
        pid=os.getpid(),
        rights=tuple(right for right in RIGHTS if right in connection.rights),
        methods=tuple(call.dispatcher.served),
        notifications=tuple(call.dispatcher.registry.notifications),
        limits={
            "maxMessageBytes": MAX_BODY,
            "maxInFlight": MAX_IN_FLIGHT,
            "blobChunkBytes": CHUNK_BYTES,
            "blobBytes": BLOB_BYTES,
            "listLimit": contract.MAX_LIMIT,
            "queueBytes": LAPSE_BYTES,
            "journalEvents": JOURNAL_CHANGES,
            "journalMs": JOURNAL_MS,
        },
    )


def _registered(asked: asyncio.Future[Any]) -> None:
    if not asked.cancelled() and (failure := asked.exception()) is not None:
        log.debug("the client does not report changed files: %s", failure)
