"""One short function per method. Importing this package registers all of them."""

from craftd.server.handlers import daemon, events, issues, messages, nouns, workspaces

__all__ = ["daemon", "events", "issues", "messages", "nouns", "workspaces"]
