"""Google, Slack, Microsoft: where to sign in and what to ask for.  App 0.11.1; scopes as the services document them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen


@frozen(kw_only=True)
class Service:
    """member, scopes_member: of the `api` block: which part is meant, and own scopes. scopes: by part.

    hosts: parts by how a host begins; paths: parts by a word of the path. otherwise: the part when nothing fits.
    who: tells whose token it is.
    """

    authorize: str
    token: str
    member: str
    scopes_member: str
    scopes: Mapping[str, tuple[str, ...]]
    hosts: Mapping[str, str]
    paths: Mapping[str, str]
    paths_of: str | None = None
    otherwise: str | None = None
    who: str | None = None

    def named(self, part: object, base_url: object) -> str | None:
        """The part that is meant, None when it cannot be told."""
        if isinstance(part, str) and part in self.scopes:
            return part
        try:
            url = urlsplit(base_url if isinstance(base_url, str) else "")
            host = url.hostname or ""
        except ValueError:
            return self.otherwise
        if host == self.paths_of:
            words = [word for word in url.path.lower().split("/") if word]
            return next((self.paths[word] for word in words if word in self.paths), self.otherwise)
        return next((part for start, part in self.hosts.items() if host.startswith(start)), self.otherwise)


_AUTH = "https://www.googleapis.com/auth/"
_GRAPH = "https://graph.microsoft.com/"

GOOGLE: Final = Service(
    authorize="https://accounts.google.com/o/oauth2/v2/auth",
    token="https://oauth2.googleapis.com/token",
    member="googleService",
    scopes_member="googleScopes",
    scopes={
        "gmail": (f"{_AUTH}gmail.modify", f"{_AUTH}gmail.compose"),
        "calendar": (f"{_AUTH}calendar",),
        "drive": (f"{_AUTH}drive",),
        "docs": (f"{_AUTH}documents",),
        "sheets": (f"{_AUTH}spreadsheets",),
        "youtube": (f"{_AUTH}youtube",),
        "searchconsole": (f"{_AUTH}webmasters",),
    },
    hosts={
        "gmail.": "gmail",
        "calendar.": "calendar",
        "drive.": "drive",
        "docs.": "docs",
        "sheets.": "sheets",
        "youtube.": "youtube",
        "searchconsole.": "searchconsole",
        "webmasters.": "searchconsole",
    },
    paths={
        **{name: name for name in ("gmail", "calendar", "drive", "docs", "sheets", "youtube")},
        "webmasters": "searchconsole",
    },
    paths_of="www.googleapis.com",
    who="https://www.googleapis.com/oauth2/v2/userinfo",
)

_SLACK_PARTS: Final = {
    "messaging": ("chat:write",),
    "channels": ("channels:read", "channels:history", "groups:read", "groups:history"),
    "users": ("users:read", "users:read.email"),
    "files": ("files:read", "files:write"),
}

SLACK: Final = Service(
    authorize="https://slack.com/oauth/v2/authorize",
    token="https://slack.com/api/oauth.v2.access",
    member="slackService",
    scopes_member="slackUserScopes",
    scopes={
        **_SLACK_PARTS,
        "full": (
            *(scope for part in _SLACK_PARTS.values() for scope in part),
            "reactions:read", "reactions:write", "im:read", "im:history", "im:write", "mpim:read", "mpim:history",
            "search:read",
        ),
    },
    hosts={},
    paths={},
    otherwise="full",
)  # fmt: skip

MICROSOFT: Final = Service(
    authorize="https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
    token="https://login.microsoftonline.com/common/oauth2/v2.0/token",
    member="microsoftService",
    scopes_member="microsoftScopes",
    scopes={
        "outlook": (f"{_GRAPH}Mail.ReadWrite", f"{_GRAPH}Mail.Send"),
        "microsoft-calendar": (f"{_GRAPH}Calendars.ReadWrite",),
        "onedrive": (f"{_GRAPH}Files.ReadWrite",),
        "teams": (f"{_GRAPH}Chat.ReadWrite", f"{_GRAPH}ChannelMessage.Send"),
        "sharepoint": (f"{_GRAPH}Sites.ReadWrite.All",),
    },
    hosts={"outlook.": "outlook"},
    paths={
        "messages": "outlook",
        "mailfolders": "outlook",
        "calendar": "microsoft-calendar",
        "calendars": "microsoft-calendar",
        "events": "microsoft-calendar",
        "drive": "onedrive",
        "drives": "onedrive",
        "teams": "teams",
        "chats": "teams",
        "sites": "sharepoint",
    },
    paths_of="graph.microsoft.com",
    who=f"{_GRAPH}v1.0/me",
)
