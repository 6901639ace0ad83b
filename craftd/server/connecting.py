"""Connecting to sources, once, to see whether it works. The extra `craftd[mcp]` is not imported before."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from craftd.errors import Unsupported
from craftd.model import source_tests as model
from craftd.model.records import Record
from craftd.model.source_tests import CONNECTED, FAILED, NEEDS_AUTH, Outcome, Unfit

SECONDS: Final = 30.0
"""For a server to start, to shake hands and to list what it has, if nothing else is said."""
API_SECONDS: Final = 10.0
ENDING_SECONDS: Final = 1.0
"""For a program to end by itself."""
LONGEST_LINE: Final = 8 * 1024 * 1024
"""Bytes of one message of a program."""
MOST: Final = 1000
"""Tools, and resources, and prompts that are told."""

Told = Callable[[str], None]

for _name in ("httpx", "httpcore", "mcp"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # they write addresses and bodies


class _Ended(Exception):
    """A program has, by itself."""


async def connect(config: Record, secret: str | None, root: Path, told: Told, seconds: float | None = None) -> Outcome:
    """What becomes of it; no secret is in anything of that.  Raises: Unsupported."""
    kind, words = config["type"], model.hidden(config, secret)
    seconds = seconds or (API_SECONDS if kind == "api" else SECONDS)

    def tell(message: str) -> None:
        told(model.without(message, words))

    try:
        async with asyncio.timeout(seconds):
            if kind == "local":
                outcome = await asyncio.to_thread(_read, Path(root, config["local"]["path"]))
            elif kind == "api":
                outcome = await _api(config, secret)
            else:
                outcome = await _mcp(config, secret, root, tell)
    except Unfit as error:
        return Outcome(FAILED, str(error))
    except TimeoutError:
        return Outcome(FAILED, f"there was no answer in {seconds:g} seconds", late=True)
    return outcome.without(words)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Unsupported(f"trying this source needs {name}: pip install 'craftd[mcp]'", "mcp") from None


def _read(path: Path) -> Outcome:
    try:
        if path.is_dir():
            count = sum(1 for _ in os.scandir(path))
            return Outcome(CONNECTED, found={"entries": count})
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would keep us
        try:
            os.read(file, 1)
            return Outcome(CONNECTED, found={"bytes": os.fstat(file).st_size})
        finally:
            os.close(file)
    except FileNotFoundError:
        return Outcome(FAILED, "there is nothing at its path")
    except OSError as error:
        return Outcome(FAILED, f"its path cannot be read: {error.strerror}")


async def _api(config: Record, secret: str | None) -> Outcome:
    httpx = await asyncio.to_thread(_library, "httpx")
    request = model.api_request(config, secret)
    try:
        async with httpx.AsyncClient(timeout=None) as client:
            status = await _status(client, request)
            if request.method == "HEAD" and status == 405:
                status = await _status(client, model.Request("GET", request.url, request.headers))
    except (httpx.HTTPError, httpx.InvalidURL):
        return Outcome(FAILED, "the service cannot be reached")
    return model.judge(status, secret is not None)


async def _status(client: Any, request: model.Request) -> int:
    content = None if request.body is None else request.body.encode()
    asked = client.stream(request.method, request.url, headers=dict(request.headers), content=content)
    async with asked as response:
        return int(response.status_code)


# -- MCP --


async def _mcp(config: Record, secret: str | None, root: Path, told: Told) -> Outcome:
    mcp = await asyncio.to_thread(_library, "mcp")
    httpx = await asyncio.to_thread(_library, "httpx")
    refused: list[int] = []
    given_up = asyncio.Event()

    async def look(response: Any) -> None:
        sse = config["mcp"].get("transport") == "sse"
        if response.status_code >= 300 and (sse or response.request.method == "POST"):
            refused.append(response.status_code)
            given_up.set()  # some transports only log it, and wait on

    async def talk() -> Outcome:
        async with (
            _transport(config, secret, root, look) as (hears, says, *_),
            mcp.ClientSession(hears, says) as one,
        ):
            return await _listed(one, told)

    try:
        outcome = await _first(talk(), given_up)
    except Exception as error:  # what libraries raise out of their task groups is of any class
        outcome = Outcome(FAILED, _reason(error, httpx, mcp))
    if outcome is not None and not refused:
        return outcome
    if refused[0] in (401, 403):
        return Outcome(NEEDS_AUTH, f"the server wants a sign-in: {refused[0]}")
    return Outcome(FAILED, f"the server answers {refused[0]}")


async def _first(talk: Coroutine[Any, Any, Outcome], given_up: asyncio.Event) -> Outcome | None:
    """What comes of *talk*; None if it is given up before."""
    talking, waiting = asyncio.create_task(talk), asyncio.create_task(given_up.wait())
    try:
        await asyncio.wait({talking, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return talking.result() if talking.done() else None
    finally:
        for task in (talking, waiting):
            task.cancel()
        await asyncio.gather(talking, waiting, return_exceptions=True)


def _transport(
    config: Record, secret: str | None, root: Path, look: Callable[[Any], Awaitable[None]]
) -> AbstractAsyncContextManager[Any]:
    mcp = config["mcp"]
    if mcp.get("transport") == "stdio":
        return _program([mcp["command"], *mcp.get("args", [])], model.environment(os.environ, config), root)
    httpx = _library("httpx")
    headers, url = model.mcp_headers(config, secret), mcp["url"].rstrip("/")

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        return httpx.AsyncClient(headers=headers, timeout=None, event_hooks={"response": [look]})

    if mcp.get("transport") == "sse":
        sse: AbstractAsyncContextManager[Any] = _library("mcp.client.sse").sse_client(
            url, headers=headers, httpx_client_factory=client
        )
        return sse
    return _streamable(url, client(headers))


@asynccontextmanager
async def _streamable(url: str, client: Any) -> AsyncIterator[Any]:
    http = _library("mcp.client.streamable_http").streamable_http_client
    async with client, http(url, http_client=client) as streams:
        yield streams


async def _listed(session: Any, told: Told) -> Outcome:
    hello = await session.initialize()
    server = hello.serverInfo
    found: Record = {"server": {"name": server.name, "version": server.version, "protocol": str(hello.protocolVersion)}}
    told(f"{server.name} answers")
    for name, able in (("tools", hello.capabilities.tools), ("resources", hello.capabilities.resources),
                       ("prompts", hello.capabilities.prompts)):  # fmt: skip
        found[name] = [] if able is None else await _all(getattr(session, f"list_{name}"), name)
        told(f"{len(found[name])} {name}")
    odd = {tool["name"]: model.unusable_member(tool.pop("inputSchema", None)) for tool in found["tools"]}
    for name, member in odd.items():
        if member is not None:
            return Outcome(FAILED, f"the tool {name} has a member called {member!r}, which no model takes", found)
    return Outcome(CONNECTED, found=found)


async def _all(ask: Callable[..., Awaitable[Any]], name: str) -> list[Record]:
    """Every page, up to MOST."""
    items: list[Record] = []
    cursor: str | None = None
    while True:
        page = await ask(cursor)
        for one in getattr(page, name):
            whole = one.model_dump(mode="json", by_alias=True, exclude_none=True)
            items.append({key: whole[key] for key in ("name", "uri", "description", "inputSchema") if key in whole})
        cursor = page.nextCursor
        if cursor is None or len(items) >= MOST:
            return items[:MOST]


@asynccontextmanager
async def _program(command: list[str], env: Mapping[str, str], root: Path) -> AsyncIterator[Any]:
    """A server that is a program, in a group of its own; whatever it started ends with it."""
    anyio, types, shared = _library("anyio"), _library("mcp.types"), _library("mcp.shared.message")
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=root,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        limit=LONGEST_LINE,
    )
    heard, hearing = anyio.create_memory_object_stream(0)
    saying, said = anyio.create_memory_object_stream(0)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def hear() -> None:
        async with heard:
            while line := await stdout.readline():
                with suppress(ValueError):  # what is no message is for people
                    await heard.send(shared.SessionMessage(types.JSONRPCMessage.model_validate_json(line)))

    async def say() -> None:
        async for one in said:
            stdin.write(one.message.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n")
            with suppress(ConnectionError):
                await stdin.drain()

    tasks = [asyncio.create_task(hear()), asyncio.create_task(say())]
    try:
        yield hearing, saying
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, _library("mcp").McpError) and cause.error.code != types.CONNECTION_CLOSED:
            raise  # its answer says more than that it has ended
        if tasks[0].done():  # it has closed its output
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), ENDING_SECONDS)
        if process.returncode is not None:
            raise _Ended(f"the program ended by itself ({process.returncode})") from None
        raise
    finally:
        for task in tasks:
            task.cancel()
        _signal(process.pid, signal.SIGTERM)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), ENDING_SECONDS)
        finally:
            _signal(process.pid, signal.SIGKILL)
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (heard, hearing, saying, said):
                stream.close()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _cause(error: BaseException) -> Any:
    """An error, or the first one in a group."""
    return _cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _reason(error: BaseException, httpx: Any, mcp: Any) -> str:
    """What to say of an error: nothing that has an address in it."""
    error = _cause(error)
    if isinstance(error, FileNotFoundError):
        return "its command is not found"
    if isinstance(error, OSError):
        return f"its command cannot be run: {error.strerror}"
    if isinstance(error, httpx.HTTPError):
        return "the server cannot be reached"
    if isinstance(error, (_Ended, mcp.McpError)):
        return str(error)
    return "the server cannot be spoken to"
