from __future__ import annotations

from craftd.workspace.live import Live


def test_a_session_is_viewed_while_anybody_views_it() -> None:
    live = Live()
    assert live.view("a", ["s", "t"]) == {"s", "t"}
    assert live.view("b", ["s"]) == {"s"}
    assert live.view("a", ["t", "u"]) == {"u"}
    assert [live.is_viewed(session) for session in "stu"] == [True, True, True]
    assert live.release("b") == []
    assert [live.is_viewed(session) for session in "stu"] == [False, True, True]
    assert live.view("a", []) == frozenset()
    assert not live.is_viewed("t")


def test_the_activity_is_what_was_said_last_by_who_is_still_there() -> None:
    live = Live()
    assert live.activity("s") is None
    live.say("a", "s", "running")
    live.say("b", "s", "waiting")
    assert live.activity("s") == "waiting"
    live.say("a", "s", "error")
    assert live.activity("s") == "error"
    assert live.release("a") == ["s"]
    assert live.activity("s") == "waiting"
    live.say("c", "s", "waiting")
    assert live.release("b") == []  # nothing is different
    assert live.release("c") == ["s"]
    assert live.activity("s") is None
    assert live.release("c") == []
