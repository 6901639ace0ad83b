"""Automations: what is wrong with a file of them that is not stored."""

from __future__ import annotations

from attrs import frozen

from craftd.protocol.contract import Ref
from craftd.protocol.methods.issues import Validated
from craftd.protocol.registry import method


@method("automations/validate", result=Validated, right="read")
@frozen(kw_only=True)
class ValidateAutomations(Ref):
    """What is wrong with the text of an `automations.json`, beside the labels of the workspace; nothing is stored."""

    text: str
