"""Statuses, labels, projects: changes that reach into sessions, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from craftd.errors import InvalidParams
from craftd.model.nouns import NOUNS
from craftd.protocol.contract import Committed
from craftd.protocol.methods.labels import DeleteLabel, RenameLabel, ReorderLabels
from craftd.protocol.methods.projects import DeleteProject
from craftd.protocol.methods.statuses import DeleteStatus, Removed, Rename, Renamed, RenameStatus, ReorderStatuses
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.nouns import chosen
from craftd.workspace.definitions import ReorderRecords
from craftd.workspace.many import AT_ONCE
from craftd.workspace.reshaping import Reshaping
from craftd.workspace.workspace import Workspace


@handles
async def delete_status(call: Call, params: DeleteStatus) -> Removed:
    return await _delete(call, params, params.move_to)


@handles
async def delete_label(call: Call, params: DeleteLabel) -> Removed:
    return await _delete(call, params, None)


@handles
async def delete_project(call: Call, params: DeleteProject) -> Removed:
    return await _delete(call, params, None)


async def _delete(call: Call, params: DeleteStatus | DeleteLabel | DeleteProject, move_to: str | None) -> Removed:
    workspace: Workspace = call.scope
    with _reshaping(call, params.id, params.work_done_token, "Deleting") as reshaping:
        done = await reshaping.delete(move_to, params.expected_version, missing_ok=params.missing_ok)
    return Removed(sessions=done.sessions, epoch=workspace.epoch, revision=workspace.revision)


@handles
async def rename_status(call: Call, params: RenameStatus) -> Renamed:
    return await _rename(call, params)


@handles
async def rename_label(call: Call, params: RenameLabel) -> Renamed:
    return await _rename(call, params)


async def _rename(call: Call, params: Rename) -> Renamed:
    workspace: Workspace = call.scope
    _check_id(call.method.noun, params.new_id, "newId")
    with _reshaping(call, params.id, params.work_done_token, "Renaming") as reshaping:
        done = await reshaping.give_id(params.new_id, params.expected_version)
    answer = done.done.answer
    return Renamed(
        item=chosen(answer.item, None),
        changed=answer.changed,
        sessions=done.sessions,
        epoch=workspace.epoch,
        revision=workspace.revision,
    )


@contextmanager
def _reshaping(call: Call, id: str, token: int | str | None, verb: str) -> Iterator[Reshaping]:
    """With progress once it is known that there is much to do."""
    noun = call.method.noun
    begun = False

    def told(done: int, total: int) -> None:
        nonlocal begun
        if total <= AT_ONCE:
            return
        if not begun:
            title = f"{verb} {NOUNS[noun].singular} {id}"
            call.progress(token, {"kind": "begin", "title": title, "percentage": 0})
            begun = True
        report = {"kind": "report", "message": f"{done} of {total}", "percentage": 100 * done // total}
        call.progress(token, report)

    try:
        yield Reshaping(
            workspace=call.scope, noun=noun, id=id, origin=call.origin, connection=call.connection, told=told
        )
    finally:
        if begun:
            call.progress(token, {"kind": "end"})


def _check_id(noun: str, id: str, member: str) -> None:
    pattern = NOUNS[noun].id_pattern
    if pattern.fullmatch(id) is None:
        raise InvalidParams.of(member, f"is no id of {noun}: it must match {pattern.pattern}")


@handles
async def reorder_statuses(call: Call, params: ReorderStatuses) -> Committed:
    return await _reorder(call, params.ids, None)


@handles
async def reorder_labels(call: Call, params: ReorderLabels) -> Committed:
    return await _reorder(call, params.ids, params.parent)


async def _reorder(call: Call, ids: Sequence[str], parent: str | None) -> Committed:
    workspace: Workspace = call.scope
    table = workspace.tables[call.method.noun]
    done = await workspace.commit(
        ReorderRecords(
            origin=call.origin,
            connection=call.connection,
            noun=table.noun,
            key=table.shelf.key_for("", {}),
            workspace=workspace.id,
            facts=workspace.facts(),
            parent=parent,
            ids=ids,
        )
    )
    return Committed(epoch=done.epoch, revision=done.revision)
