"""Commands about the daemon itself."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from craftd.cli import door, text
from craftd.client import launch
from craftd.protocol import rendezvous
from craftd.protocol.rendezvous import Places

if TYPE_CHECKING:
    from craftd.server.daemon import Address


def _address(text: str) -> Address:
    from craftd.server.daemon import Address

    host, _, port = text.rpartition(":")
    name = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not name or not port.isascii() or not port.isdigit() or int(port) > 65_535 or (":" in name and name == host):
        raise click.BadParameter(f"{text!r} is not HOST:PORT, for example 127.0.0.1:4711 or [::1]:0")
    return Address(name, int(port))


def _origin(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s*]*", text) is None:
        raise click.BadParameter(f"{text!r} is no origin, for example http://localhost:5173")
    return text.lower()


@click.command()
@click.option(
    "--tcp",
    type=_address,
    metavar="HOST:PORT",
    help="Listen for TCP too; port 0: any that is free. Clients need a token.",
)
@click.option("--ws", type=_address, metavar="HOST:PORT", help="The same for WebSockets. Port 0: any.")
@click.option("--tls-cert", metavar="FILE", help="Certificate chain (PEM): --tcp and --ws speak TLS only.")
@click.option("--tls-key", metavar="FILE", help="Its private key (PEM), not encrypted.")
@click.option(
    "--allow-origin",
    "origins",
    type=_origin,
    metavar="ORIGIN",
    multiple=True,
    help="Let pages of this origin in; repeatable.",
)
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A name of this machine in URLs; repeatable."
)
@click.option("--allow-insecure-bind", is_flag=True, help="Listen without TLS where others can read along.")
@click.option("--max-connections", type=click.IntRange(min=1), help="Of all ways together (128).")
@click.option("--auto", is_flag=True, help="As started by clients: end after a while without them, and if one runs.")
@click.option("--exclusive", is_flag=True, help="Keep the Craft Agents app from starting for as long as this runs.")
def serve(
    tcp: Address | None,
    ws: Address | None,
    tls_cert: str | None,
    tls_key: str | None,
    origins: tuple[str, ...],
    hosts: tuple[str, ...],
    allow_insecure_bind: bool,
    max_connections: int | None,
    auto: bool,
    exclusive: bool,
) -> int:
    """Run the daemon in the foreground, until it is stopped.

    Programs of this user connect without further ado. --tcp and --ws are for others; they show the token in
    <configuration>/craftd/token, or one made by `craftd token create`.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    if not (tcp or ws) and (tls_cert or origins or hosts or allow_insecure_bind):
        raise click.UsageError("without --tcp or --ws there is nothing that this could mean")
    places = rendezvous.find()
    if auto:
        _leave_everything_behind(places)
    from craftd.server import daemon  # half a second of imports

    network = daemon.Network(
        tcp=tcp,
        ws=ws,
        tls_cert=tls_cert and os.path.abspath(tls_cert),
        tls_key=tls_key and os.path.abspath(tls_key),
        origins=origins,
        hosts=tuple(name.lower() for name in hosts),
        insecure=allow_insecure_bind,
        max_connections=max_connections,
    )
    return daemon.run(places.config, auto=auto, exclusive=exclusive, network=network)


def _leave_everything_behind(places: Places) -> None:
    """Keep nothing of the terminal or editor that started us: folder, files, variables, the right of others to read."""
    os.closerange(3, 1024)
    os.umask(0o077)
    if os.path.isdir(places.config):
        os.chdir(places.config)
    kept = launch.daemon_environment(places, os.environ)
    os.environ.clear()
    os.environ.update(kept)


@click.command()
@door.as_json
def status(json: bool) -> int:
    """Show the running daemon; exit 1 if there is none."""
    places = rendezvous.find()
    with door.connected_if_running() as client:
        if client is None:
            if json:
                text.emit({"running": False, "configDir": places.config})
            else:
                text.say(f"no daemon is running for {places.config}")
            return 1
        answer: dict[str, Any] = {"running": True, **client.hello, **client.call("daemon/status")}
    if json:
        text.emit(answer)
    else:
        text.facts((_words(name), _value(value)) for name, value in answer.items() if name != "running")
    return 0


def _words(name: str) -> str:
    """A wire name as words: configDir, config dir."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(member)}" for name, member in value.items())
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    return "" if value is None else str(value)


@click.command()
def stop() -> None:
    """Stop the daemon: what it has acknowledged is on disk, clients are told."""
    places = rendezvous.find()
    pid = _stop(places)
    text.say(f"no daemon is running for {places.config}" if pid is None else f"stopped (pid {pid})")


@click.command()
def restart() -> None:
    """Stop the daemon and start another, of this version; clients connect anew.

    One that listens on the network is left alone: only `craftd serve` with its options makes another.
    """
    places = rendezvous.find()
    card = rendezvous.read_card(places)
    network = (
        [one for one in card.listeners if one.get("kind") != "unix"] if card and rendezvous.is_held(places) else []
    )
    if network:
        where = ", ".join(f"--{one['kind']} {one['address']}" for one in network)
        raise click.ClickException(f"the daemon was started with {where}: use `craftd stop`, then start it so again")
    _stop(places)
    link = launch.connect(places, "craftd restart")
    link.close()
    text.say(f"running (pid {link.hello['pid']}, version {link.hello['version']})")


def _stop(places: Places) -> int | None:
    """Stop the daemon and wait until another can start; its pid, None if none ran."""
    link = launch.greet(places, "craftd stop")
    if link is None:
        return None
    pid = int(link.hello["pid"])
    answer = link.ask("daemon/stop", reason="stop")
    if "error" in answer:
        raise click.ClickException(f"the daemon (pid {pid}) does not stop: {answer['error'].get('message')}")
    ended = link.wait_for_end()
    link.close()  # the daemon waits for the last client to hang up
    if not (ended and _released(places)):
        raise click.ClickException(
            f"the daemon (pid {pid}) has not ended after {launch.PATIENCE:.0f} s, see {places.log}"
        )
    return pid


def _released(places: Places) -> bool:
    """Wait until a daemon that has closed its connections has let go of the lock, so that the next can have it."""
    deadline = time.monotonic() + launch.PATIENCE
    while rendezvous.is_held(places):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@click.command()
def release() -> None:
    """Let the Craft Agents app have the configuration now; the daemon goes on reading."""
    with door.connected_if_running() as client:
        if client is None:
            text.say("no daemon is running")
        else:
            client.call("daemon/release")
            text.say("released")


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is added.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=100, help="How many of the last lines (100).")
def logs(follow: bool, lines: int) -> None:
    """Print the daemon's log."""
    path = rendezvous.find().log
    try:
        file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 (replaced below when the log is)
    except FileNotFoundError:
        raise click.ClickException(f"there is no log yet: {path}") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    for line in file.read().splitlines()[-lines:] if lines else []:
        text.say(line)
    rest = ""
    while follow:
        added = file.read()
        *complete, rest = (rest + added).split("\n")
        for line in complete:
            text.say(line)
        if not added:
            try:
                renewed = os.stat(path).st_ino != os.fstat(file.fileno()).st_ino
            except FileNotFoundError:
                renewed = False
            if renewed:
                file.close()
                file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115
            else:
                time.sleep(0.2)
    file.close()
    sys.stdout.flush()
