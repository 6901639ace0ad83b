"""The daemon itself."""

from __future__ import annotations

import os

from craftd.errors import Forbidden, InvalidState
from craftd.model.records import Record
from craftd.protocol.contract import Position
from craftd.protocol.initialize import check_major
from craftd.protocol.methods.daemon import DaemonStatus, Hello, Release, SayHello, Stop, Sync
from craftd.protocol.rendezvous import PROTOCOL, VERSION
from craftd.server.core import Daemon
from craftd.server.dispatch import Call, handles
from craftd.workspace.home import Home
from craftd.workspace.workspace import Workspace


@handles
async def hello(call: Call, params: SayHello) -> Hello:
    daemon = daemon_of(call)
    await daemon.authenticate(call.connection, params.token)
    check_major(params.protocol)
    return Hello(
        pid=os.getpid(),
        version=VERSION,
        protocol=PROTOCOL,
        config_dir=daemon.places.config,
        read_only=daemon.guard.read_only,
        clients=len(call.dispatcher.connections) - 1,
    )


@handles
def status(call: Call, params: DaemonStatus) -> Record:
    return daemon_of(call).status(call.grant)


@handles
async def sync(call: Call, params: Sync) -> Position:
    scope: Workspace | Home = call.scope
    await scope.sync()
    return Position(epoch=scope.journal.epoch, revision=scope.journal.revision)


@handles
async def release(call: Call, params: Release) -> Record:
    if call.grant.workspaces is not None:
        raise Forbidden("this token is for some workspaces, not for what they share", scope="workspaces")
    await daemon_of(call).release()
    return {"released": True}


@handles
def stop(call: Call, params: Stop) -> None:
    others = len(call.dispatcher.connections) - 1
    if params.reason == "upgrade" and others:
        raise InvalidState(f"{others} other clients are connected", "in-use", ())
    if params.reason == "upgrade" and daemon_of(call).listeners:
        raise InvalidState("it listens on the network, which only who started it can make it do again", "in-use", ())
    call.after.append(lambda: daemon_of(call).stop(params.reason))


def daemon_of(call: Call) -> Daemon:
    assert isinstance(call.dispatcher.core, Daemon)
    return call.dispatcher.core
