"""What is wrong with the files of all workspaces; sessions mended, by the daemon if one runs, else by this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from attrs import frozen

from craftd.cli import door, text
from craftd.client.failures import CallFailed
from craftd.protocol import rendezvous

if TYPE_CHECKING:
    from craftd.workspace.repair import Repaired

Found = dict[str, Any]
"""An issue of `issues/list`; of a session's file with `remedy`, and after mending `mended` and `kept`."""


@click.command()
@door.in_workspace
@click.option("--fix", is_flag=True, help="Mend damaged sessions; what each file was stays beside it.")
@door.as_json
def doctor(workspace: str | None, fix: bool, json: bool) -> int:
    """Report everything that is wrong with the files of all workspaces, and what --fix would make of sessions.

    Without --fix nothing is changed. A daemon is asked if one runs; none is started. Exit 1 if errors are left.
    """
    name = None if workspace is None else door.name_of(workspace)
    errors = total = mended = 0
    with door.connected_if_running() as client:
        surgery: Surgery = Alone(Path(rendezvous.find().config)) if client is None else Served(client)
        for ward in surgery.wards(name):
            outcomes = surgery.treat(ward) if fix else {}
            for found in ward.issues:
                session = str(found.get("id")) if found.get("noun") == "sessions" else None
                remedy = None if session is None else ward.remedies.get((session, found["code"], found["message"]))
                if remedy is not None:
                    found["remedy"] = remedy
                outcome = outcomes.get(session or "")
                if remedy is not None and isinstance(outcome, Mended):
                    found |= {"mended": True, "kept": outcome.kept}
                total += 1
                mended += "mended" in found
                errors += found.get("severity") == "error" and "mended" not in found
                if json:
                    text.emit({**({} if ward.id is None else {"workspace": ward.id}), **found}, one_line=True)
                else:
                    text.say(_line(ward.shown, found))
            for session, outcome in outcomes.items():
                if not isinstance(outcome, Mended):
                    text.complain(f"{ward.shown}: sessions/{session} could not be mended: {outcome}")
    if not json:
        left = text.plural(errors, "error")
        text.say(f"{text.plural(total, 'finding')}, {f'{mended} mended, ' if fix else ''}{left}" if total else _WELL)
    return 1 if errors else 0


_WELL = "nothing is wrong"


@frozen
class Ward:
    """What was found in one scope. remedies: by session, code and message. damaged: sessions that can be mended."""

    id: str | None
    shown: str
    issues: list[Found]
    remedies: dict[tuple[str, str, str], str]
    damaged: list[str]


@frozen
class Mended:
    """kept: name of the file as it was, in the session's folder."""

    kept: str


class Surgery(Protocol):
    """Who looks and mends."""

    def wards(self, name: str | None) -> Iterator[Ward]:
        """The workspace called *name*, else the configuration and all workspaces."""
        ...

    def treat(self, ward: Ward) -> dict[str, Mended | str]:
        """Mend what can be; by session what came of it, or why nothing did."""
        ...


@frozen
class Served:
    """The running daemon."""

    client: door.Door

    def wards(self, name: str | None) -> Iterator[Ward]:
        if name is not None:
            yield self._ward(name, name)
            return
        registered = self.client.pages("workspaces/list", {})
        yield self._ward(None, "configuration")
        for item in registered:
            if not _is_elsewhere(item):
                yield self._ward(str(item["id"]), str(item["value"]["path"]))

    def _ward(self, id: str | None, shown: str) -> Ward:
        issues = self.client.call("issues/list", {} if id is None else {"workspace": id})["items"]
        remedies: dict[tuple[str, str, str], str] = {}
        sessions = dict.fromkeys(
            str(found["id"]) for found in issues if found.get("noun") == "sessions" and found.get("id")
        )
        for session in sessions:
            try:
                answer = self.client.call("sessions/repair", {"workspace": id, "id": session, "dryRun": True})
            except CallFailed:
                continue
            remedies |= {
                (session, one["code"], one["message"]): one["remedy"] for one in answer["found"] if "remedy" in one
            }
        return Ward(id, shown, issues, remedies, list(dict.fromkeys(session for session, _, _ in remedies)))

    def treat(self, ward: Ward) -> dict[str, Mended | str]:
        outcomes: dict[str, Mended | str] = {}
        for session in ward.damaged:
            try:
                answer = self.client.call("sessions/repair", {"workspace": ward.id, "id": session})
            except CallFailed as error:
                outcomes[session] = f"{error.name} ({error.code}): {error.message}"
            else:
                outcomes[session] = Mended(answer.get("kept", ""))
        return outcomes


@frozen
class Alone:
    """This process."""

    config: Path

    def wards(self, name: str | None) -> Iterator[Ward]:
        from craftd.errors import CraftdError
        from craftd.workspace import alone

        try:
            for seen in alone.look(self.config, name):
                remedies = {
                    (session, one.code, one.message): one.remedy
                    for session, found in seen.damaged.items()
                    for one in found
                    if one.remedy is not None
                }
                shown = "configuration" if seen.id is None else str(seen.root) if name is None else name
                issues = [issue.as_json() for issue in seen.issues]
                yield Ward(seen.id, shown, issues, remedies, list(dict.fromkeys(session for session, _, _ in remedies)))
        except CraftdError as error:
            raise click.ClickException(f"{type(error).__name__} ({error.code}): {error}") from None

    def treat(self, ward: Ward) -> dict[str, Mended | str]:
        from craftd.errors import CraftdError
        from craftd.workspace import alone

        if ward.id is None or not ward.damaged:
            return {}
        try:
            done = alone.mend(self.config, [(ward.id, session) for session in ward.damaged])
        except CraftdError as error:
            return dict.fromkeys(ward.damaged, _reason(error))
        return {session: _outcome(one) for (_, session), one in done.items()}


def _outcome(one: Repaired | Exception) -> Mended | str:
    return _reason(one) if isinstance(one, Exception) else Mended(one.kept or "")


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} ({getattr(error, 'code', 0)}): {error}"


def _is_elsewhere(item: dict[str, Any]) -> bool:
    """Not to be asked by itself: its folder is gone, which the configuration's list says, or another entry has it."""
    info = item.get("info", {})
    return bool(info.get("missing") or info.get("aliasOf"))


def _line(scope: str, found: Found) -> str:
    place = str(found.get("path", ""))
    span = found.get("range")
    if isinstance(span, dict):
        place += f":{span['start']['line'] + 1}"
    code = f" [{found['code']}]" if found.get("code") else ""
    end = ""
    if found.get("mended"):
        end = f"; mended: {found['remedy']}" + (f" (what it was: {found['kept']})" if found.get("kept") else "")
    elif "remedy" in found:
        end = f"; --fix: {found['remedy']}"
    return f"{found.get('severity')}: {scope}: {place}: {found.get('message')}{code}{end}"
