"""What is true of sessions only while somebody is connected: who looks at them, and what executors say they do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from attrs import define, field

ACTIVITIES: Final = ("idle", "running", "waiting", "error")


@define(eq=False)
class Live:
    """One workspace. A party is whoever says something; what it said goes when it is released. Nothing is stored."""

    _views: dict[Hashable, frozenset[str]] = field(factory=dict)
    _states: dict[str, dict[Hashable, str]] = field(factory=dict)
    """By session, of each party, the latest last."""

    def view(self, party: Hashable, sessions: Iterable[str]) -> frozenset[str]:
        """*party* has these sessions on its screen and no others; those that it had not before."""
        before, now = self._views.pop(party, frozenset()), frozenset(sessions)
        if now:
            self._views[party] = now
        return now - before

    def is_viewed(self, session: str) -> bool:
        return any(session in sessions for sessions in list(self._views.values()))

    def say(self, party: Hashable, session: str, activity: str) -> None:
        states = self._states.setdefault(session, {})
        states.pop(party, None)
        states[party] = activity

    def activity(self, session: str) -> str | None:
        """One of ACTIVITIES, as it was said last; None: nobody says anything. Any thread may ask."""
        said = list(self._states.get(session, {}).values())
        return said[-1] if said else None

    def sessions(self, *activities: str) -> frozenset[str]:
        """Of which one of these is said."""
        return frozenset(session for session in self._states if self.activity(session) in activities)

    def release(self, party: Hashable) -> list[str]:
        """Forget *party*; the sessions whose activity is another one now."""
        self._views.pop(party, None)
        changed = []
        for session, states in list(self._states.items()):
            if party not in states:
                continue
            before = self.activity(session)
            del states[party]
            if not states:
                del self._states[session]
            if self.activity(session) != before:
                changed.append(session)
        return changed
