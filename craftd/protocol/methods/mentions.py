"""What a message mentions, and what has to be read before tools are called."""

from __future__ import annotations

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol.contract import Position, Ref
from craftd.protocol.registry import method


@frozen(kw_only=True)
class Mentioned:
    """kind: skill, source, file, folder. name: slug or path as written. start, end: UTF-16 units of the text.

    path: of the SKILL.md, of the source's folder, or where the file would be; title: the skill's or source's name.
    """

    kind: str
    name: str
    start: int
    end: int
    known: bool
    """Whether there is such a skill or source; of files and folders nothing is looked up."""
    path: str | None = None
    title: str | None = None


@frozen(kw_only=True)
class Skipped:
    """reason: missing, disabled, needs-authentication."""

    source: str
    reason: str


@frozen(kw_only=True)
class Unread:
    """Text that looks like a mention and is none."""

    start: int
    end: int


@frozen(kw_only=True)
class ResolvedMentions(Position):
    """message: the text as a model gets it. enable: sources that the skills require and the session has not switched
    on; skipped: those that cannot be.
    """

    message: str
    mentions: tuple[Mentioned, ...]
    near_misses: tuple[Unread, ...]
    enable: tuple[str, ...]
    skipped: tuple[Skipped, ...]


@method("mentions/resolve", result=ResolvedMentions, right="read")
@frozen(kw_only=True)
class ResolveMentions(Ref):
    """What a text mentions."""

    text: str
    session: str | None = None
    """Whose working directory and sources count."""
    directory: str | None = None
    """What paths are relative to, instead of the session's or workspace's."""
    skills: tuple[str, ...] = ()
    """Slugs of skills chosen beside the text: what they require counts too."""


@frozen(kw_only=True)
class CheckedPrerequisites:
    """state: to be given with the next check of this running session. answers: one for each step, null but for a call.

    A call's is `{allowed, needs}`; needs: paths to be read first.
    """

    state: Record
    answers: tuple[Record | None, ...]


@method("prerequisites/check", result=CheckedPrerequisites, right="read")
@frozen(kw_only=True)
class CheckPrerequisites(Ref):
    """Whether tools may be called, by what was read before. Nothing is kept here: the state goes with the client."""

    steps: tuple[Record, ...]
    """In their order, each with one member: `{mention: [path of a SKILL.md]}`, `{read: path}` (a whole file, and it
    worked), `{bash: command}` (it ran), `{call: tool}` (may it be made?), `{reset: true}` (compacted or cleared)."""
    state: Record | None = None
    """Of the answer before; absent: the session has just begun."""
    browser: bool = False
    """The browser is on."""
