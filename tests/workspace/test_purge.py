"""What is purged is looked at again in its turn."""

from __future__ import annotations

from craftd.workspace.trash import PurgeSession
from tests.workspace.house import CLIENT, SESSION, House

NOW = 1_800_000_000_000


async def test_a_session_that_began_to_work_since_it_was_looked_for_stays(house: House) -> None:
    await house.update("sessions", SESSION, isArchived=True, archivedAt=NOW - 2)
    live = house.workspace.place.live
    for activity, purged in (("running", None), ("waiting", None), ("idle", SESSION)):
        live.say("an executor", SESSION, activity)
        done = await house.workspace.commit(PurgeSession(origin=CLIENT, id=SESSION, before=NOW))
        assert done.answer == purged
