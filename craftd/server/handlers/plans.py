"""Plans of a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import count

from craftd.errors import AlreadyExists, InvalidParams, NotFound, Ref, VersionConflict
from craftd.model import plans
from craftd.model.records import Item, Record
from craftd.protocol.contract import Committed, Created, Got, Page, Updated
from craftd.protocol.methods.plans import CreatePlan, DeletePlan, GetPlan, ListPlans, UpdatePlan
from craftd.server.dispatch import Call, handles
from craftd.server.handlers.files import check_text
from craftd.server.handlers.nouns import chosen, page_of
from craftd.workspace import session_files
from craftd.workspace.changes import check_patch
from craftd.workspace.files import DeleteFile
from craftd.workspace.record_files import Edited, EditText, written
from craftd.workspace.session_files import PLANS, folder_of
from craftd.workspace.workspace import Workspace


@handles
async def list_plans(call: Call, params: ListPlans) -> Page:
    workspace: Workspace = call.scope
    workspace.session(params.session, "session")
    epoch, revision = workspace.epoch, workspace.revision
    work = partial(session_files.plan_index, session=params.session, epoch=epoch)
    return page_of(await workspace.in_pool(work, workspace.ground()), params, epoch, revision)


@handles
async def get(call: Call, params: GetPlan) -> Got:
    workspace = _scope(call, params.session, params.id)
    workspace.session(params.session, "session")
    revision = workspace.revision
    item = await session_files.item(workspace, "plans", params.session, params.id)
    return Got(item=chosen(item, params.fields), epoch=workspace.epoch, revision=revision)


@handles
async def create(call: Call, params: CreatePlan) -> Created:
    workspace = _scope(call, params.session, params.id)
    title, text = _given(params.value, "value")
    if title is None and not text:
        raise InvalidParams.of("value", "has a title or a text")
    new = session_files.edited("", title, text)
    for id in (params.id,) if params.id is not None else _names(workspace, title, new):
        try:
            done = await workspace.commit(
                EditText(
                    origin=call.origin,
                    connection=call.connection,
                    parts=folder_of(params.session, PLANS, id),
                    record=Ref("plans", id, workspace.id),
                    expected="",
                    edit=lambda there: new,
                    what="a plan",
                )
            )
            break
        except VersionConflict:
            if params.id is not None:
                there: Record | None = None
                with suppress(NotFound):  # it went since
                    there = (await session_files.item(workspace, "plans", params.session, id)).as_json()
                raise AlreadyExists(Ref("plans", id, workspace.id), there) from None
    item = _written(params.session, id, done.answer)
    return Created(item=item, epoch=done.epoch, revision=done.revision)


def _written(session: str, id: str, edited: Edited) -> Item:
    """The plan as it was written, whatever others have made of it since."""
    return session_files.plan_item(session, written(id, edited.written), edited.text, whole=True)


def _names(workspace: Workspace, title: str | None, text: str) -> Iterator[str]:
    """Names for a new plan, until one is free."""
    day = time.strftime("%Y-%m-%d", time.gmtime(workspace.now() / 1000))
    slug = plans.slug(title or plans.title_of(text) or "", plans.outline(text)["context"])
    return (plans.file_name(day, slug, number) for number in count(1))


@handles
async def update(call: Call, params: UpdatePlan) -> Updated:
    workspace = _scope(call, params.session, params.id)
    patch = check_patch(params.patch)
    if further := sorted(patch.keys() - {"set"}):
        raise InvalidParams.of(f"patch.{further[0]}", "a plan has a title and a text, which are set")
    title, text = _given(patch.get("set", {}), "patch.set")
    done = await workspace.commit(
        EditText(
            origin=call.origin,
            connection=call.connection,
            parts=folder_of(params.session, PLANS, params.id),
            record=Ref("plans", params.id, workspace.id),
            expected=params.expected_version,
            edit=partial(session_files.edited, title=title, new=text),
            what="a plan",
            existing=True,
        )
    )
    shown = chosen(_written(params.session, params.id, done.answer), params.fields)
    return Updated(item=shown, changed=done.answer.changed, epoch=done.epoch, revision=done.revision)


@handles
async def delete(call: Call, params: DeletePlan) -> Committed:
    workspace = _scope(call, params.session, params.id)
    done = await session_files.delete(
        workspace,
        DeleteFile(
            origin=call.origin,
            connection=call.connection,
            parts=folder_of(params.session, PLANS, params.id),
            record=Ref("plans", params.id, workspace.id),
            expected=params.expected_version,
            missing_ok=params.missing_ok,
        ),
    )
    return Committed(epoch=done.epoch, revision=done.revision)


def _given(value: Record, member: str) -> tuple[str | None, str | None]:
    """Title and text of *value*, None for what it does not name. Raises: InvalidParams."""
    for name, text in value.items():
        where = f"{member}.{name}"
        if name not in ("title", "text"):
            raise InvalidParams.of(where, "cannot be set: a plan is {title?, text?}")
        if not isinstance(text, str):
            raise InvalidParams.of(where, "must be a string")
        check_text(where, text)
    title = value.get("title")
    if title is not None and (not title or title != title.strip() or any(char < " " for char in title)):
        raise InvalidParams.of(f"{member}.title", "must be one line of text without blanks around it")
    return title, value.get("text")


def _scope(call: Call, session: str, id: str | None) -> Workspace:
    """Where the plan would be. Raises: InvalidParams for what is no id."""
    workspace: Workspace = call.scope
    workspace.check_session_id(session, "session")
    if id is not None:
        plans.check_id(id)
    return workspace
