from __future__ import annotations

from typing import Any

import pytest

from craftd.errors import InvalidParams
from craftd.protocol import lsp
from craftd.protocol.registry import METHODS


def wrong(method: str, params: Any) -> list[str]:
    with pytest.raises(InvalidParams) as refused:
        lsp.structure(method, params)
    return [issue.path for issue in refused.value.issues]


def test_an_editor_of_the_future_may_announce_what_we_do_not_know() -> None:
    capabilities = {
        "brandNew": {"x": 1},
        "general": {"positionEncodings": ["utf-8", "utf-99"]},
        "workspace": {"symbol": {"symbolKind": {"valueSet": [1, 2, 99]}}},
        "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "new"]}}}},
    }
    params = {"capabilities": capabilities, "processId": None, "rootUri": None, "trace": "loud", "more": [1]}
    assert lsp.structure("initialize", params).capabilities.general.position_encodings[1] == "utf-99"


def test_wrong_types_are_named_by_their_wire_path() -> None:
    params = {"capabilities": {"workspace": {"applyEdit": "yes"}}, "processId": "12", "rootUri": None}
    assert wrong("initialize", params) == ["capabilities.workspace.applyEdit", "processId"]
    assert wrong("initialize", {}) == ["capabilities"]
    assert wrong("textDocument/hover", {"bad": 1}) == ["textDocument", "position"]
    assert wrong("textDocument/hover", "oops") == [""]
    position = {"line": "5", "character": True}
    params = {"textDocument": {"uri": "file:///x"}, "position": position}
    assert wrong("textDocument/hover", params) == ["position.line", "position.character"]


def test_options_and_arguments_pass_as_they_are() -> None:
    nested = {"jsonrpc": "2.0", "class": None, "X-Api-Key": "k"}
    initialize = {"capabilities": {}, "processId": None, "rootUri": None, "initializationOptions": {"craft": nested}}
    assert lsp.structure("initialize", initialize).initialization_options == {"craft": nested}
    command = {"command": "x", "arguments": [nested]}
    assert list(lsp.structure("workspace/executeCommand", command).arguments) == [nested]


def test_what_a_client_may_send_is_known() -> None:
    assert lsp.knows("textDocument/hover")
    assert lsp.knows("$/cancelRequest")
    assert not lsp.knows("workspace/applyEdit")
    assert not lsp.knows("labels/list")


def test_no_method_of_ours_is_one_of_lsp() -> None:
    import craftd.protocol.methods  # noqa: F401

    assert METHODS
    assert not [name for name in METHODS if lsp.knows(name)]
