"""Sessions for people: over the wire, and by the command line, which also carries bundles from one place to another."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from craftd.cli import commands
from tests.daemon import Daemon, snapshot
from tests.wire import Failed, Wire

Connect = Callable[..., Awaitable[Wire]]

ID = "260809-told-tale"
AT = 1772874000000
HUSH = "Tr0ub4dor9x"


@pytest.fixture(scope="module")
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    daemon = make_daemon()
    for name in ("notes", "other"):
        (root := daemon.base / name).mkdir()
        (root / "config.json").write_text(json.dumps({"id": f"ws_{name}", "name": name, "slug": name, "createdAt": 1}))
    folder = daemon.base / "notes/sessions" / ID
    (folder / "plans").mkdir(parents=True)
    (folder / "plans/a.md").write_text("# A\n")
    header = {
        "id": ID, "workspaceRootPath": str(daemon.base / "notes"), "createdAt": AT, "lastUsedAt": AT,
        "name": f"Deploy with password={HUSH}", "messageCount": 4,
    }  # fmt: skip
    records = [
        header,
        {"id": "m1", "content": f"log in with token: {HUSH} please", "timestamp": AT, "type": "user"},
        {
            "id": "m2", "content": "", "timestamp": AT, "toolName": "Bash", "toolStatus": "completed",
            "toolInput": {"command": "cat {{SESSION_PATH}}/plans/a.md", "apiKey": HUSH},
            "toolResult": f"AUTH_TOKEN={HUSH}\n{daemon.home}/x", "type": "tool",
        },
        {"id": "m3", "content": "hidden", "hidden": True, "timestamp": AT, "type": "user"},
        {"id": "m4", "content": "**done**", "timestamp": AT, "type": "assistant"},
    ]  # fmt: skip
    (folder / "session.jsonl").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in records))
    daemon.register(notes=daemon.base / "notes", other=daemon.base / "other")
    daemon.start()
    return daemon


async def told(client: Wire, **how: Any) -> Any:
    return await client.call("sessions/exportMarkdown", {"workspace": "notes", "id": ID, **how})


async def test_a_session_is_told_in_order_without_what_nobody_sees(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "notes")
    before = snapshot(daemon.base / "notes")
    made = await told(client, inline=True)
    assert made["text"] == (
        f"# Deploy with password={HUSH}\n\nSession `{ID}`, begun 2026-03-07 09:00 UTC\n"
        f"\n## User · 2026-03-07 09:00 UTC\n\nlog in with token: {HUSH} please\n"
        "\n### Tool Bash: completed · 2026-03-07 09:00 UTC\n"
        "\n## Assistant · 2026-03-07 09:00 UTC\n\n**done**\n"
    )
    assert made["redacted"] == 0
    blob = await told(client)
    piece = await client.call("blobs/read", {"blob": blob["blob"]})
    assert base64.b64decode(piece["data"]).decode() == made["text"]
    assert snapshot(daemon.base / "notes") == before


async def test_secrets_and_the_home_folder_are_taken_out_if_that_is_wanted(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "notes")
    plain, clean = await told(client, tools=True, inline=True), await told(client, tools=True, redact=True, inline=True)
    assert plain["text"].count(HUSH) == clean["redacted"] == 4
    assert HUSH not in clean["text"]
    assert "log in with token: [redacted] please" in clean["text"]
    assert '"command": "cat ./plans/a.md"' in clean["text"]
    assert str(daemon.home) in plain["text"]
    assert str(daemon.home) not in clean["text"]
    assert "~/x" in clean["text"]


async def test_a_session_that_is_not_there_is_told_so(daemon: Daemon, connect: Connect) -> None:
    client = await connect(daemon, "notes")
    for id, name in (("260101-no-such", "NotFound"), ("../x", "InvalidParams")):
        with pytest.raises(Failed) as caught:
            await client.call("sessions/exportMarkdown", {"workspace": "notes", "id": id})
        assert caught.value.name == name


def run(daemon: Daemon, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict("os.environ", daemon.environment),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        return commands.run([*arguments]), out.getvalue(), err.getvalue()


def test_commands_carry_a_session_to_another_place_and_tell_it(daemon: Daemon, tmp_path: Path) -> None:
    text, bundle = tmp_path / "a.md", tmp_path / "a.json"
    code, _, said = run(daemon, "export", ID, "-o", str(text), "--redact", "--tools", "-w", "notes")
    assert (code, said) == (0, "craftd: 4 secrets taken out; read it before you send it\n")
    assert text.read_text().startswith("# Deploy with password=[redacted]\n")
    assert run(daemon, "export", ID, "-o", str(text), "-w", "notes")[0] == 1  # nothing is written over
    assert text.read_text().startswith("# Deploy with password=[redacted]\n")
    assert run(daemon, "export", ID, "--format", "bundle", "-o", str(bundle), "-w", "notes")[:2] == (0, "")
    assert run(daemon, "import", str(bundle), "-w", "other")[:2] == (0, f"sessions/{ID}\n")
    assert (daemon.base / "other/sessions" / ID / "plans/a.md").read_text() == "# A\n"
    code, out, said = run(daemon, "import", str(bundle), "-w", "other")
    assert (code, out) == (0, "")
    assert "is there already" in said
    code, out, _ = run(daemon, "import", str(bundle), "-w", "other", "--on-conflict", "rename", "--json")
    assert json.loads(out)["sessions"]["renamed"][0]["id"] == ID
    assert run(daemon, "export", ID, "--format", "bundle", "--redact")[0] == 2
    assert run(daemon, "import", str(bundle))[0] == 2
    (tmp_path / "bad.json").write_text("{}")
    assert run(daemon, "import", str(tmp_path / "bad.json"), "-w", "other")[0] == 1
