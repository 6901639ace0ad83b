from __future__ import annotations


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes may have been made by chance, like the masks of frames, but all workers must call a test the same."""
    return argname if isinstance(val, bytes) else None
