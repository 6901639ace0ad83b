"""Editors as pytest-lsp plays them: each runs `craftd stdio`, and all of them meet in one daemon."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities, make_test_lsp_client

from tests.daemon import CRAFTD, Daemon
from tests.wire import PATIENCE

pytestmark = pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")

EDITORS = ("visual_studio_code", "neovim", "emacs")


class Editor:
    """One language client and what it was told, in order: notifications as (method, params).

    pytest-lsp by itself misses what comes before it is waited for.
    """

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.told: list[tuple[str, Any]] = []
        self.registered: list[str] = []
        self._news = asyncio.Event()
        for method in ("sessions/didCreate", "sessions/didChange", "messages/didAppend", "events/didLapse"):
            client.feature(method)(lambda params, method=method: self._hear(method, params))
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: self._register(params))

    def _hear(self, method: str, params: Any) -> None:
        self.told.append((method, params))
        self._news.set()

    def _register(self, params: types.RegistrationParams) -> None:
        self.registered += [one.method for one in params.registrations]
        self._news.set()

    async def until(self, true: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                self._news.clear()
                await self._news.wait()

    async def ask(self, method: str, params: Any = None) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.client.protocol.send_request_async(method, params)

    async def open(self, root: Path, capabilities: types.ClientCapabilities | None = None) -> types.InitializeResult:
        folder = types.WorkspaceFolder(uri=root.as_uri(), name="notes")
        return await self.client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities or types.ClientCapabilities(), workspace_folders=[folder], root_uri=None
            )
        )


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    (daemon.base / "notes" / "sessions").mkdir(parents=True)
    daemon.register(notes=daemon.base / "notes")
    daemon.start()
    return daemon


@pytest.fixture
def root(daemon: Daemon) -> Path:
    return daemon.base / "notes"


@pytest.fixture
async def start(daemon: Daemon) -> AsyncIterator[Callable[[], Awaitable[Editor]]]:
    """Starts editors that have not initialized; they are ended with the test."""
    clients: list[LanguageClient] = []
    config = ClientServerConfig(
        server_command=[*CRAFTD, "stdio"], client_factory=make_test_lsp_client, server_env=daemon.environment
    )

    async def begin() -> Editor:
        client = await config.start()
        assert isinstance(client, LanguageClient)
        clients.append(client)
        return Editor(client)

    yield begin
    for client in clients:
        server = client._server
        if server is not None and server.returncode is None:
            server.terminate()  # `stop` waits for its end
        await client.stop()
        assert client.error is None


@pytest.mark.parametrize("editor", [*EDITORS, None])
async def test_every_editor_is_told_what_it_can_understand(
    start: Callable[[], Awaitable[Editor]], root: Path, editor: str | None
) -> None:
    one = await start()
    capabilities = types.ClientCapabilities() if editor is None else client_capabilities(editor)
    result = await one.open(root, capabilities)
    assert result.server_info is not None
    assert result.server_info.name == "craftd"
    provider = result.capabilities.execute_command_provider
    assert provider is not None
    assert [*provider.commands] == ["craft.call"]
    craft = result.capabilities.experimental["craft"]
    assert [workspace["id"] for workspace in craft["workspaces"]] == ["notes"]
    assert craft["protocol"] == "1.0"
    watching = capabilities.workspace and capabilities.workspace.did_change_watched_files
    if watching and watching.dynamic_registration:
        await one.until(lambda: one.registered == ["workspace/didChangeWatchedFiles"])
    await one.client.shutdown_session()
    assert one.client.messages == []


async def test_an_editor_that_ends_takes_nobody_along(
    daemon: Daemon, start: Callable[[], Awaitable[Editor]], root: Path
) -> None:
    first, second = await start(), await start()
    for editor in (first, second):
        await editor.open(root)
    await first.client.shutdown_async(None)
    with pytest.raises(JsonRpcException) as refused:
        await first.ask("sessions/list")
    assert refused.value.code == -32600
    first.client.exit(None)
    server = first.client._server
    assert server is not None
    async with asyncio.timeout(PATIENCE):
        assert await server.wait() == 0
    assert daemon.process is not None
    assert (await second.ask("daemon/status")).pid == daemon.process.pid
    third = await start()
    await third.open(root)
    assert (await third.ask("sessions/list")).epoch == (await second.ask("sessions/list")).epoch


async def test_two_editors_see_what_either_does(
    daemon: Daemon, start: Callable[[], Awaitable[Editor]], root: Path
) -> None:
    first, second = await start(), await start()
    for editor in (first, second):
        await editor.open(root)
        await editor.ask("events/subscribe", {"workspace": "notes"})

    made = await first.ask("sessions/create", {"value": {"name": "From the first"}})
    # Whoever asked was told before the answer came.
    assert [(method, params.item.id) for method, params in first.told] == [("sessions/didCreate", made.item.id)]
    await second.until(lambda: second.told)
    renamed = {"id": made.item.id, "patch": {"set": {"name": "From the second"}}}
    await second.client.workspace_execute_command_async(
        types.ExecuteCommandParams(command="craft.call", arguments=["sessions/update", renamed])
    )
    await first.until(lambda: len(first.told) == 2)
    message = {"type": "user", "content": "Hello", "id": "m1"}
    await first.ask("messages/append", {"session": made.item.id, "messages": [message]})
    await second.until(lambda: second.told[-1][0] == "sessions/didChange" and len(second.told) == 4)

    for editor in (first, second):
        assert [method for method, _ in editor.told] == [
            "sessions/didCreate", "sessions/didChange", "messages/didAppend", "sessions/didChange",
        ]  # fmt: skip
        revisions = [params.revision for _, params in editor.told]
        assert revisions == list(range(revisions[0], revisions[0] + 4))
        assert editor.told[1][1].patch.set.name == "From the second"
        assert editor.told[2][1].messages[0].content == "Hello"
    assert [params.origin.client for _, params in first.told] == [params.origin.client for _, params in second.told]


async def test_what_a_language_server_may_be_asked_is_answered_by_the_rules(
    start: Callable[[], Awaitable[Editor]], root: Path
) -> None:
    editor = await start()
    await editor.open(root, client_capabilities("neovim"))
    document = types.TextDocumentIdentifier(uri=(root / "README.md").as_uri())
    position = types.Position(line=0, character=0)
    with pytest.raises(JsonRpcException) as refused:
        await editor.client.text_document_hover_async(types.HoverParams(text_document=document, position=position))
    assert refused.value.code == -32601
    with pytest.raises(JsonRpcException) as refused:
        await editor.client.workspace_execute_command_async(types.ExecuteCommandParams(command="no.such"))
    assert refused.value.code == -32602
    with pytest.raises(JsonRpcException) as refused:
        await editor.ask("sessions/get", {"id": 12})
    assert refused.value.code == -32602
    assert refused.value.data["issues"][0]["path"] == "id"

    # Notifications of open texts are taken without a word.
    item = types.TextDocumentItem(uri=document.uri, language_id="markdown", version=1, text="# x")
    editor.client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(text_document=document))
    editor.client.set_trace(types.SetTraceParams(value=types.TraceValue.Verbose))
    await editor.ask("daemon/sync", {"workspace": "notes"})
    assert editor.client.messages == []
    assert editor.client.log_messages == []


async def test_a_file_that_the_editor_reports_is_looked_at(start: Callable[[], Awaitable[Editor]], root: Path) -> None:
    editor = await start()
    await editor.open(root, client_capabilities("visual_studio_code"))
    await editor.ask("events/subscribe", {"workspace": "notes"})
    folder = root / "sessions" / "260101-by-hand"
    folder.mkdir()
    file = folder / "session.jsonl"
    file.write_text('{"id":"260101-by-hand","createdAt":1,"lastUsedAt":1,"name":"By hand"}\n')
    created = types.FileEvent(uri=file.as_uri(), type=types.FileChangeType.Created)
    elsewhere = types.FileEvent(uri="file:///nowhere/nul%00", type=types.FileChangeType.Created)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes=[elsewhere, created]))
    await editor.until(lambda: editor.told)
    [(method, params)] = editor.told
    assert (method, params.item.id, params.origin.kind) == ("sessions/didCreate", "260101-by-hand", "disk")


async def test_the_first_editor_starts_the_daemon_and_the_last_one_leaves_it(
    make_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon = make_daemon()
    (daemon.base / "notes").mkdir()
    daemon.register(notes=daemon.base / "notes")
    config = ClientServerConfig(
        server_command=[*CRAFTD, "stdio", "--stdio", "--clientProcessId=1"],
        client_factory=make_test_lsp_client,
        server_env=daemon.environment,
    )
    pids = set()
    try:
        for _ in range(2):
            editor = Editor(await config.start())  # type: ignore[arg-type]
            result = await editor.open(daemon.base / "notes")
            pids.add(result.capabilities.experimental["craft"]["pid"])
            await editor.client.shutdown_session()
            await editor.client.stop()
    finally:
        stop = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "craftd", "stop", env=daemon.environment, stdout=asyncio.subprocess.DEVNULL
        )
        assert await stop.wait() == 0
    assert len(pids) == 1
