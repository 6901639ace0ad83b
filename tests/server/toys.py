"""A core of toys behind the real dispatcher: one shelf of items per scope, and handlers that wait until told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from craftd.errors import NotFound, Ref
from craftd.model.noun import Noun
from craftd.model.records import Item, Record
from craftd.protocol import contract
from craftd.protocol.contract import Committed, Create, Created, Got, List, Mutation, Page, Update
from craftd.protocol.initialize import Opened, OpenWorkspace, Wishes
from craftd.protocol.registry import Registry
from craftd.protocol.rendezvous import Places
from craftd.server.auth import Auth, Tokens
from craftd.server.connection import Connection
from craftd.server.daemon import Address, Network
from craftd.server.dispatch import Call, Dispatcher, Handlers
from craftd.server.listeners import listen
from craftd.server.network import Listener, open_all
from craftd.server.outbox import Subscription
from craftd.workspace.journal import Change, Journal
from tests.wire import PATIENCE, Wire

REGISTRY = Registry()
HANDLERS = Handlers()
NOUNS = {noun.name: noun for noun in (Noun(name="toys"), Noun(name="shelves", scope="global"))}


@REGISTRY.method("toys/echo", result=Record, right="read", scope="none")
@frozen(kw_only=True)
class Echo:
    """Anything, back."""

    value: Any = None


@REGISTRY.method("toys/wait", result=str, right="read")
@frozen(kw_only=True)
class Wait(contract.Ref):
    """Answers when the gate opens."""

    gate: str


@REGISTRY.method("toys/slowly", result=Committed, right="write")
@frozen(kw_only=True)
class Slowly(Mutation):
    """A change that is made when the gate opens."""

    gate: str
    fail: bool = False
    firm: bool = False
    """It cannot be taken back once it has begun."""


@REGISTRY.method("toys/subscribe", result=Record, right="read")
@frozen(kw_only=True)
class Subscribe(contract.Ref):
    topics: tuple[str, ...] | None = None
    sessions: tuple[str, ...] | None = None
    since: int | None = None


@REGISTRY.method("toys/look", result=None, right="none", notification=True)
@frozen(kw_only=True)
class Look(contract.Ref):
    what: str


@REGISTRY.method("toys/fail", result=None, right="read", scope="none")
@frozen(kw_only=True)
class Fail:
    how: str


@REGISTRY.method("daemon/hello", result=Record, right="none")
@frozen(kw_only=True)
class Hello:
    pass


@REGISTRY.method("toys/forbid", result=None, right="secrets", scope="none")
@frozen(kw_only=True)
class Forbidden:
    pass


@REGISTRY.method("toys/unserved", result=None, right="read", scope="none")
@frozen(kw_only=True)
class Unserved:
    pass


contract.derive(NOUNS, REGISTRY)


class Log(list[str]):
    """What began and what ended, in order."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def note(self, entry: str) -> None:
        self.append(entry)
        self._news.set()

    async def reached(self, entry: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while entry not in self:
                self._news.clear()
                await self._news.wait()


@define(eq=False)
class Shelf:
    """A scope."""

    id: str | None
    core: Core
    journal: Journal
    items: dict[str, Record] = field(factory=dict)
    log: Log = field(factory=Log)

    def commit(self, call: Call, method: str, members: dict[str, Any], session: str | None = None) -> Committed:
        change = Change(method, "toys", members, session)
        for published in self.journal.publish([change], call.origin, 0):
            self.core.dispatcher.deliver(self.id, published)
        return Committed(epoch=self.journal.epoch, revision=self.journal.revision)


@define(eq=False)
class Core:
    shelves: dict[str | None, Any] = field(factory=dict)
    gates: dict[str, asyncio.Event] = field(factory=dict)
    wishes: list[Wishes] = field(factory=list)
    hinted: list[str] = field(factory=list)
    left: list[str] = field(factory=list)
    auth: Any = None
    dispatcher: Dispatcher = field(init=False)

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    def scope(self, name: str | None, call: Call) -> Any:
        if name not in self.shelves:
            raise NotFound(Ref("workspaces", str(name)))
        return self.shelves[name]

    async def authenticate(self, connection: Connection, token: str | None) -> None:
        assert connection.caller is not None
        if token is None and connection.grant is not None:
            return
        connection.grant = await self.auth.grant(token, connection.caller)

    async def initialize(self, connection: Connection, wishes: Wishes) -> Opened:
        self.wishes.append(wishes)
        named = [choice.id for choice in wishes.options.workspaces or () if choice.id is not None]
        opened = [
            OpenWorkspace(id=id_, name=id_, path=f"/shelves/{id_}", epoch="e", revision=0, read_only=False)
            for id_ in named or ["a"]
        ]
        return Opened(epoch="e", read_only=False, workspaces=tuple(opened), features={"relay": False})

    async def item(self, call: Call, id: str) -> Any:
        value = call.scope.items.get(id)
        return None if value is None else Item(id, "later", value)

    def hint(self, paths: Iterable[str]) -> None:
        self.hinted += paths

    def gone(self, connection: Connection) -> None:
        self.left.append(connection.id)


@HANDLERS.handles
def echo(call: Call, params: Echo) -> Any:
    return {"value": params.value}


@HANDLERS.handles
async def wait(call: Call, params: Wait) -> str:
    call.scope.log.note(f"read {params.gate}")
    await call.dispatcher.core.gate(params.gate).wait()
    return params.gate


@HANDLERS.handles
async def slowly(call: Call, params: Slowly) -> Committed:
    call.scope.log.note(f"begin {params.gate}")
    opened = asyncio.ensure_future(call.dispatcher.core.gate(params.gate).wait())
    while not opened.done():
        try:
            await asyncio.shield(opened)
        except asyncio.CancelledError:
            if not params.firm:
                raise
    if params.fail:
        raise ValueError("a fault of ours, in /home/ann/secret.py")
    call.scope.log.note(f"end {params.gate}")
    return call.scope.commit(call, "toys/didChange", {"gate": params.gate}, params.gate)


@HANDLERS.handles
def subscribe(call: Call, params: Subscribe) -> Any:
    journal = call.scope.journal
    at = {"epoch": journal.epoch, "revision": journal.revision if params.since is None else params.since}
    topics = None if params.topics is None else frozenset(params.topics)
    sessions = None if params.sessions is None else frozenset(params.sessions)
    call.connection.subscribe(call.scope.id, Subscription(topics=topics, sessions=sessions, **at))
    if params.since is not None:
        missed = journal.since(journal.epoch, params.since)
        call.after.append(lambda: call.connection.replay(call.scope.id, missed))
    return at


@HANDLERS.handles
def look(call: Call, params: Look) -> None:
    call.scope.log.note(f"look {params.what}")


@HANDLERS.handles
def fail(call: Call, params: Fail) -> Any:
    if params.how == "raise":
        raise ValueError("a fault of ours, in /home/ann/secret.py")
    return {"set": {1, 2}}


@HANDLERS.handles
def hello(call: Call, params: Hello) -> Any:
    return {"pid": 1}


@HANDLERS.handles
def forbidden(call: Call, params: Forbidden) -> None:
    return None


@HANDLERS.handles
def list_(call: Call, params: List) -> Page:
    items = [Item(id_, "v", value) for id_, value in call.scope.items.items()]
    return Page(items=items, epoch=call.scope.journal.epoch, revision=call.scope.journal.revision)


@HANDLERS.handles
def get(call: Call, params: contract.Get) -> Got:
    if params.id not in call.scope.items:
        raise NotFound(Ref(call.method.noun, params.id, call.scope.id))
    item = Item(params.id, "v", call.scope.items[params.id])
    return Got(item=item, epoch=call.scope.journal.epoch, revision=call.scope.journal.revision)


@HANDLERS.handles
async def create(call: Call, params: Create) -> Created:
    id_ = params.id or f"t{len(call.scope.items)}"
    call.scope.items[id_] = params.value
    call.scope.log.note(f"create {id_}")
    await asyncio.sleep(0)
    item = Item(id_, "v", params.value)
    done = call.scope.commit(call, f"{call.method.noun}/didCreate", {"item": item.as_json()})
    return Created(item=item, epoch=done.epoch, revision=done.revision)


@HANDLERS.handles
async def update(call: Call, params: Update) -> Committed:
    call.scope.items[params.id] = params.patch
    return call.scope.commit(call, f"{call.method.noun}/didChange", {"id": params.id, "patch": params.patch})


@define(eq=False)
class Toys:
    """The whole: socket, dispatcher, core; shelves `a` and `b` and the global one are open."""

    path: Path
    core: Core
    dispatcher: Dispatcher
    server: asyncio.Server
    _clients: list[Wire] = field(factory=list)
    _opened: list[Listener] = field(factory=list)

    @classmethod
    async def start(cls, path: Path) -> Toys:
        core = Core()
        core.dispatcher = dispatcher = Dispatcher(core, REGISTRY, HANDLERS)
        for id_ in ("a", "b", None):
            core.shelves[id_] = Shelf(id_, core, Journal(id_, "e"))
        dispatcher.start()
        return cls(path, core, dispatcher, await listen(path, dispatcher))

    async def client(self, craft: Any = None, **more: Any) -> Wire:
        wire = await Wire.connect(self.path)
        self._clients.append(wire)
        await wire.initialize(craft, **more)
        return wire

    async def open(self, kind: str, **network: Any) -> str:
        """A way in over the network, kind tcp or ws: its URL. Its token is `secret`."""
        self.core.auth = self.core.auth or Auth(Tokens(Places(str(self.path.parent))))
        Path(Places(str(self.path.parent)).folder).mkdir(exist_ok=True)
        self.core.auth.tokens.ensure_local()
        address = {kind: Address("127.0.0.1", 0)}
        (listener,) = await open_all(Network(**address, **network), self.dispatcher)
        self._opened.append(listener)
        return f"{kind}{'s' if listener.tls else ''}://{listener.address}"

    @property
    def secret(self) -> str:
        return Path(Places(str(self.path.parent)).token).read_text().strip()

    async def dial(self, url: str, **how: Any) -> Wire:
        """A connection that shows the right token, unless told otherwise."""
        wire = await Wire.connect(url, **{"token": self.secret, **how})
        self._clients.append(wire)
        return wire

    async def stop(self) -> None:
        self.server.close()
        for listener in self._opened:
            listener.server.close()
        for wire in self._clients:
            await wire.close()
        await self.dispatcher.close(1.0)
