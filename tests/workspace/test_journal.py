from __future__ import annotations

import pytest

from craftd.model import json_text
from craftd.workspace.journal import JOURNAL_BYTES, JOURNAL_CHANGES, JOURNAL_MS, Change, Journal, Origin

ME = Origin(kind="client", client="c-1", key="k")


def told(journal: Journal, *names: str, at: int = 0) -> list[Change]:
    changes = [Change("toys/didChange", "toys", {"id": name}) for name in names]
    return list(journal.publish(changes, ME, at))


def since(journal: Journal, revision: int, epoch: str = "e") -> list[str] | None:
    found = journal.since(epoch, revision)
    return None if found is None else [change.members["id"] for change in found]


def test_revisions_count_up_by_one_and_parts_of_a_commit_say_so() -> None:
    journal = Journal("ws", "e")
    [one] = told(journal, "a", at=7)
    two, three = told(journal, "b", "c")
    assert json_text.loads(one.body) == {
        "jsonrpc": "2.0",
        "method": "toys/didChange",
        "params": {
            "workspace": "ws", "epoch": "e", "revision": 1, "at": 7,
            "origin": {"kind": "client", "client": "c-1", "key": "k"}, "id": "a",
        },
    }  # fmt: skip
    assert [json_text.loads(change.body)["params"]["batch"] for change in (two, three)] == [
        {"index": 0, "size": 2},
        {"index": 1, "size": 2},
    ]
    assert journal.revision == 3


def test_the_global_scope_names_no_workspace() -> None:
    [change] = told(Journal(None, "e"), "a")
    assert "workspace" not in json_text.loads(change.body)["params"]


def test_what_was_missed_is_known_from_any_position_of_this_run() -> None:
    journal = Journal("ws", "e")
    told(journal, "a", "b", "c")
    assert since(journal, 0) == ["a", "b", "c"]
    assert since(journal, 2) == ["c"]
    assert since(journal, 3) == []


@pytest.mark.parametrize(("epoch", "revision"), [("other", 0), ("e", 4), ("e", -1)])
def test_a_position_of_another_run_or_of_the_future_is_unknown(epoch: str, revision: int) -> None:
    journal = Journal("ws", "e")
    told(journal, "a", "b", "c")
    assert since(journal, revision, epoch) is None


def test_what_is_too_long_ago_is_unknown() -> None:
    by_number, by_time, by_size = Journal("ws", "e"), Journal("ws", "e"), Journal("ws", "e")
    told(by_number, *map(str, range(JOURNAL_CHANGES + 1)))
    assert since(by_number, 0) is None
    assert len(since(by_number, 1) or ()) == JOURNAL_CHANGES
    told(by_time, "old", at=0)
    told(by_time, "new", at=JOURNAL_MS + 1)
    assert since(by_time, 0) is None
    assert since(by_time, 1) == ["new"]
    told(by_size, "x" * (JOURNAL_BYTES // 2))
    told(by_size, "y" * (JOURNAL_BYTES // 2))
    assert since(by_size, 0) is None
    assert len(since(by_size, 1) or ()) == 1


def test_nothing_from_before_what_was_too_much_to_be_sent_can_be_had_again() -> None:
    journal = Journal("ws", "e")
    told(journal, "a")
    list(journal.publish([Change("toys/didChange", "toys", {"id": "b"}, unsent=True)], ME, 0))
    assert since(journal, 0) is None
    assert since(journal, 1) is None
    assert since(journal, 2) == []
    told(journal, "c")
    assert (since(journal, 1), since(journal, 2)) == (None, ["c"])
