"""A daemon as small as can be, started in place of the real one: the lock, the socket, the card, and a few methods.

`$CRAFTD_FAKE` (JSON) changes how it behaves: `hello` replaces members of its answer, `refuseStop`, `fail` (exit code),
`silent` (never answers), `unreadable` (takes `echo` for no JSON; with `hangUp` as it begins),
`lateLock` (seconds it keeps the lock after it closed everything), `answers` (results by method), `byWorkspace` (results
by workspace), `errors` (errors by method), `events` (notifications sent after the answer to each `events/subscribe`),
`hangUp` (close after those).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
import time
from typing import Any

from craftd.client import wire
from craftd.protocol import rendezvous

sys.set_int_max_str_digits(0)
BEHAVIOUR: dict[str, Any] = json.loads(os.environ.get("CRAFTD_FAKE", "{}"))
places = rendezvous.find()
clients: set[socket.socket] = set()
change = threading.Lock()


def serve(connection: socket.socket) -> None:
    incoming = wire.Incoming(connection.recv)
    unreadable = {"id": None, "error": {"code": -32700, "message": "nested too deeply", "data": {"code": "ParseError"}}}
    try:
        while message := incoming.next():
            if BEHAVIOUR.get("silent"):
                continue
            if message["method"] == "exit":
                break
            if BEHAVIOUR.get("unreadable") and message["method"] == "initialized" and BEHAVIOUR.get("hangUp"):
                connection.recv(1)  # of a large `echo`
                connection.sendall(wire.frame(unreadable))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass
                break
            if BEHAVIOUR.get("unreadable") and message["method"] == "echo":
                connection.sendall(wire.frame(unreadable))
                continue
            if "id" in message:
                connection.sendall(wire.frame({"id": message["id"], **answer(connection, message)}))
            if message["method"] == "events/subscribe":
                for event in BEHAVIOUR.get("events", []):
                    connection.sendall(wire.frame(event))
                if BEHAVIOUR.get("hangUp"):
                    break
    except (OSError, wire.Broken):
        pass
    with change:
        clients.discard(connection)
    connection.close()


def answer(connection: socket.socket, message: dict[str, Any]) -> dict[str, Any]:
    method, params = message["method"], message.get("params", {})
    if method in BEHAVIOUR.get("errors", {}):
        return {"error": BEHAVIOUR["errors"][method]}
    if params.get("workspace") in BEHAVIOUR.get("byWorkspace", {}):
        return {"result": BEHAVIOUR["byWorkspace"][params["workspace"]]}
    if method in BEHAVIOUR.get("answers", {}):
        return {"result": BEHAVIOUR["answers"][method]}
    if method == "daemon/hello":
        hello = {
            "pid": os.getpid(), "version": rendezvous.VERSION, "protocol": rendezvous.PROTOCOL,
            "configDir": places.config, "readOnly": False, "clients": len(clients - {connection}), "asked": params,
        }  # fmt: skip
        return {"result": hello | BEHAVIOUR.get("hello", {})}
    if method == "daemon/stop":
        if BEHAVIOUR.get("refuseStop"):
            return {"error": {"code": 1004, "message": "a client is here", "data": {"code": "InvalidState"}}}
        threading.Thread(target=stop).start()
        return {"result": {}}
    if method == "initialize":
        craft = {"workspaces": [], "environ": dict(os.environ), "session": os.getsid(0)}
        return {"result": {"capabilities": {"experimental": {"craft": craft}}, "serverInfo": {"pid": os.getpid()}}}
    if method == "flood":
        for number in range(params["count"]):
            note = {"method": "note", "params": {"number": number, "text": "x" * 1000}}
            connection.sendall(wire.frame(note))
        return {"result": {}}
    if method == "echo":
        return {"result": params}
    return {"error": {"code": -32601, "message": f"no method {method}", "data": {"code": "MethodNotFound"}}}


def stop() -> None:
    time.sleep(0.05)
    listener.shutdown(socket.SHUT_RDWR)
    for connection in list(clients):
        connection.shutdown(socket.SHUT_RDWR)
    time.sleep(BEHAVIOUR.get("lateLock", 0))
    os._exit(0)


if "fail" in BEHAVIOUR:
    print("first line\nthe disk is made of cheese", file=sys.stderr)
    sys.exit(BEHAVIOUR["fail"])
lock = open(places.lock, "w")  # noqa: SIM115 (held for life)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(rendezvous.LOCK_LOST)
with open(os.path.join(places.folder, "starts"), "a") as starts:
    starts.write(f"{os.getpid()}\n")
name = os.path.join(places.folder, f".s{os.getpid()}")
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen(64)
os.rename(name, os.path.join(places.folder, "sock"))
with open(places.card, "wb") as card:
    card.write(rendezvous.Card(os.getpid(), os.path.join(places.folder, "sock")).as_json())
while True:
    try:
        connection, _ = listener.accept()
    except OSError:  # told to stop
        time.sleep(60)
    with change:
        clients.add(connection)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
