"""The list of all nouns. Adding one: its file in model/, its row here, its place in store/layout.py."""

from __future__ import annotations

from craftd.model.app_records import CONNECTIONS, PREFERENCES, SETTINGS
from craftd.model.credentials import CREDENTIALS
from craftd.model.drafts import DRAFTS
from craftd.model.labels import LABELS
from craftd.model.messages import MESSAGES
from craftd.model.noun import Noun
from craftd.model.permissions import PERMISSIONS
from craftd.model.projects import PROJECTS
from craftd.model.sessions import SESSIONS
from craftd.model.skills import SKILLS
from craftd.model.sources import SOURCES
from craftd.model.statuses import STATUSES
from craftd.model.views import VIEWS
from craftd.model.workspaces import WORKSPACES

NOUNS: dict[str, Noun] = {
    noun.name: noun
    for noun in (
        WORKSPACES, SESSIONS, MESSAGES, PROJECTS, SOURCES, SKILLS, STATUSES, LABELS, VIEWS, PERMISSIONS, CREDENTIALS,
        CONNECTIONS, SETTINGS, PREFERENCES, DRAFTS,
    )
}  # fmt: skip
