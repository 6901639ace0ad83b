"""Types for TypeScript, as text. That the compiler takes them is a matter of `clients/typescript`."""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

from craftd.model.records import Record
from craftd.protocol import contract, generate
from craftd.protocol.registry import Registry
from craftd.protocol.typescript import typescript


@frozen(kw_only=True)
class Part:
    """A part, with */ in its words."""

    at: int
    ratio: float | None = None


@frozen(kw_only=True)
class DoIt(contract.Mutation):
    """Do it.

    At length.
    """

    many: tuple[Part, ...]
    name_of: str | None = None
    """What it is called."""
    mode: Literal["fast", "slow"] = "fast"
    topics: tuple[str, ...] | Literal["*"] | None = None
    choices: tuple[str | int, ...] = ()
    counts: dict[str, int] | None = None
    value: Record | None = None
    anything: Any = None


@frozen(kw_only=True)
class Look(contract.Ref):
    """Look."""


def text() -> str:
    registry = Registry()
    registry.method("toys/do", result=Part, right="write")(DoIt)
    registry.method("toys/look", result=None, right="read")(Look)
    registry.method("toys/burn", result=Record, right="admin")(frozen(type("Burn", (), {"__doc__": "Burn."})))
    registry.notification("toys/didHappen")(Part)
    return typescript(generate.openrpc(registry))


def test_a_method_has_its_params_and_its_result() -> None:
    assert (
        '  "toys/do": {\n'
        "    params: {\n"
        "      many: Part[];\n"
        "      /** Registry id, own `ws_` id, slug or path; absent: the only workspace of the connection. */\n"
        "      workspace?: string;\n"
        "      /** Idempotency key, 16 to 128 characters, one per intended change. */\n"
        "      key?: string;\n"
        "      /** What it is called. */\n"
        "      nameOf?: string;\n"
        '      mode?: "fast" | "slow";\n'
        '      topics?: string[] | "*";\n'
        "      choices?: (string | number)[];\n"
        "      counts?: Record<string, number>;\n"
        "      value?: JsonObject;\n"
        "      anything?: unknown;\n"
        "    };\n"
        "    result: Part;\n"
        "  };\n"
    ) in text()


def test_methods_without_params_or_result_are_said_to_be_so() -> None:
    assert '  "toys/burn": {\n    params: {};\n    result: JsonObject;\n  };\n' in text()
    assert "    result: null;\n" in text()


def test_words_become_comments_that_end_where_they_should() -> None:
    assert (
        "/** A part, with * / in its words. */\nexport interface Part {\n  at: number;\n  ratio?: number;\n}\n"
        in text()
    )
    assert "  /**\n   * Do it.\n   *\n   * At length.\n   */\n" in text()


def test_notifications_and_errors_are_tables_of_their_own() -> None:
    assert '"toys/didHappen": {\n    at: number;\n    ratio?: number;\n  };\n' in text()
    assert "  VersionConflict: 1003,\n" in text()


def test_what_may_be_sent_again_is_known_by_name() -> None:
    _, _, tables = text().partition("export const KEYED")
    keyed, _, reads = tables.partition("export const READS")
    assert '"toys/do"' in keyed
    assert '"toys/look"' not in keyed
    assert '"toys/look"' in reads
    assert '"toys/do"' not in reads
    assert '"toys/burn"' not in tables
