"""Search for people."""

from __future__ import annotations

from typing import Any

import click

from craftd.cli import door, text

IN = ("sessions", "messages", "plans", "notes", "projects", "memory", "sources", "skills")
_BEFORE = 30
"""Characters shown before a match: more would push it out of the window."""


@click.command("search")
@click.argument("query")
@click.option("-r", "--regex", is_flag=True, help="The query is a regular expression.")
@click.option(
    "--in",
    "nouns",
    type=click.Choice(IN),
    multiple=True,
    help="Look there (names of sessions, messages, plans and notes); may be repeated.",
)
@click.option("-n", "--limit", type=click.IntRange(1, 500), default=20, help="How many sessions or others (20).")
@door.in_workspace
@door.as_json
def search(query: str, regex: bool, nouns: tuple[str, ...], limit: int, workspace: str | None, json: bool) -> None:
    """Find a text, whatever its case: the sessions in which it is, the newest first, and where."""
    params: dict[str, Any] = {"query": query, "regex": regex, "limit": limit, "budgetMs": 60_000}
    if nouns:
        params["in"] = nouns
    with door.connected() as client:
        for scope in door.scopes(client, workspace):
            answer = client.call("search/query", {**params, "workspace": scope})
            for item in answer["items"]:
                if json:
                    text.emit({"workspace": scope, **item}, one_line=True)
                else:
                    _print(item)
            if "stopped" in answer:
                text.complain(f"{scope}: looked into {answer['searched']} of {answer['of']} ({answer['stopped']})")


def _print(item: dict[str, Any]) -> None:
    text.say(f"{item['id']}  {item.get('title') or ''}".rstrip())
    for match in item["matches"]:
        place = match.get("type") or match["noun"]
        where = place if match.get("id") in (None, item["id"]) else f"{place} {match['id']}"
        text.say(f"  {where}: {_shown(match)}")
    if item["count"] > len(item["matches"]):
        more = item["count"] - len(item["matches"])
        text.say(f"  and {more}{' or more' if item.get('more') else ''}")


def _shown(match: dict[str, Any]) -> str:
    """The snippet on one line, from shortly before the match."""
    units = match["snippet"].encode("utf-16-le", "surrogatepass")
    before = units[: 2 * match["at"]].decode("utf-16-le", "surrogatepass")
    rest = units[2 * match["at"] :].decode("utf-16-le", "surrogatepass")
    kept = before[-_BEFORE:]
    cut = len(kept) < len(before) or match["start"] > match["at"]
    return f"{'…' if cut else ''}{' '.join((kept + rest).split())}"
