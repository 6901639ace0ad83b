"""LSP's own methods, as rows made of lsprotocol's classes.

lsprotocol takes half a second to import, so nothing here does it before it is needed; `load` is for a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from craftd.errors import InvalidParams
from craftd.protocol.codec import be_strict, issues_of, json_name

if TYPE_CHECKING:
    from cattrs import Converter


@cache
def load() -> Converter:
    """lsprotocol and the one converter of all connections; callable from any thread, best once and early.

    Strict about types like our own, lenient about members and enumeration values of newer clients.
    """
    from cattrs import Converter
    from lsprotocol import converters, types

    converter = Converter(detailed_validation=True)
    be_strict(converter)
    converter.register_structure_hook_factory(lambda tp: isinstance(tp, type) and issubclass(tp, Enum), _enumeration)
    converters.get_converter(converter)
    converter.get_structure_hook(types.InitializeParams)  # generating its code takes 20 ms
    return converter


def knows(method: str) -> bool:
    """Is *method* one that a client may send according to LSP?"""
    from lsprotocol import types

    if method not in types.METHOD_TO_TYPES:
        return False
    return types.message_direction(method) in ("clientToServer", "both")


def is_notification(method: str) -> bool:
    """Is *method* one that a client sends without an id?"""
    from lsprotocol import types

    return knows(method) and types.METHOD_TO_TYPES[method][1] is None


def structure(method: str, params: Any) -> Any:
    """An instance of lsprotocol's params class of *method*, None if it has none.

    Raises: InvalidParams.
    """
    from lsprotocol import types

    params_type: Any = types.METHOD_TO_TYPES[method][2]
    if params_type is None:
        return None
    if params is None:
        params = {}
    if type(params) is not dict:
        raise InvalidParams.of("", f"params must be an object, not {json_name(params)}")
    try:
        return load().structure(params, params_type)
    except Exception as failure:  # cattrs and lsprotocol's hooks raise whatever the values provoke
        raise InvalidParams(tuple(issues_of(failure))) from None


def unstructure(value: Any) -> Any:
    """JSON of an instance of lsprotocol's classes."""
    return load().unstructure(value)


def _enumeration(cls: Any) -> Callable[[Any, Any], Any]:
    kinds = {type(member.value) for member in cls}

    def read(value: Any, _: Any) -> Any:
        try:
            return cls(value)
        except ValueError:
            if type(value) in kinds:
                return value
            raise

    return read
