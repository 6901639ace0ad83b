"""A real MCP server, by the SDK's server side: `python mcp_server.py stdio|http|sse PORT`. Of what it is asked for over
HTTP it wants the token in `WANTED`, if there is one."""

from __future__ import annotations

import os
import subprocess
import sys

from mcp.server.fastmcp import FastMCP

kind, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = FastMCP("harbour", host="127.0.0.1", port=port, log_level="CRITICAL")


@server.tool()
def berths(ship: str) -> str:
    """Free berths."""
    return ship


@server.resource("harbour://tides")
def tides() -> str:
    return "low"


@server.prompt()
def greet() -> str:
    return "Hello"


if kind == "hang":  # shakes no hands, and has a child
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.environ["TELL"], "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    child.wait()
elif kind == "stdio":
    print("environment:", os.environ.get("GITHUB_TOKEN"), os.environ.get("LOGBOOK"), file=sys.stderr)
    if "TELL" in os.environ:
        with open(os.environ["TELL"], "w") as file:
            file.write(f"{os.environ.get('GITHUB_TOKEN')} {os.environ.get('LOGBOOK')} {os.getcwd()}")
    server.run("stdio")
else:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    inner = server.streamable_http_app() if kind == "http" else server.sse_app()

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        wanted = os.environ.get("WANTED")
        if scope["type"] == "http" and wanted and Request(scope).headers.get("authorization") != f"Bearer {wanted}":
            await PlainTextResponse("who are you", 401)(scope, receive, send)
        else:
            await inner(scope, receive, send)

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")
