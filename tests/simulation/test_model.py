"""The judge is judged by the tables of Delta's documentation."""

from __future__ import annotations

import pytest

from simulation.model import (
    SERIALIZABLE,
    WRITE_SERIALIZABLE,
    Deed,
    State,
    broken_promise,
    level_of,
    replay,
    verdict,
)

INSERT = Deed(operation="WRITE", read_version=0, adds={"new": "0"})
UPDATE = Deed(
    operation="UPDATE",
    read_version=0,
    parts=frozenset("0"),
    files=frozenset({"old"}),
    removes=frozenset({"old"}),
    adds={"rewritten": "0"},
)
COMPACTION = Deed(
    operation="OPTIMIZE",
    read_version=0,
    parts=frozenset("0"),
    files=frozenset({"old"}),
    removes=frozenset({"old"}),
    adds={"compacted": "0"},
    data_change=False,
)
BASE = Deed(operation="CREATE TABLE", read_version=-1, adds={"old": "0"}, settings={})


# "Conflict exceptions" of Delta's "Concurrency control": who commits second, behind whom.
@pytest.mark.parametrize(
    ("second", "first", "write_serializable", "serializable"),
    [
        (INSERT, INSERT, False, False),
        (INSERT, UPDATE, False, False),
        (INSERT, COMPACTION, False, False),
        (UPDATE, INSERT, False, True),
        (UPDATE, UPDATE, True, True),
        (UPDATE, COMPACTION, True, True),
        (COMPACTION, INSERT, False, False),
        (COMPACTION, UPDATE, True, True),
        (COMPACTION, COMPACTION, True, True),
    ],
)
def test_the_matrix_of_the_documentation(
    second: Deed, first: Deed, write_serializable: bool, serializable: bool
) -> None:
    for level, conflicts in (
        (WRITE_SERIALIZABLE, write_serializable),
        (SERIALIZABLE, serializable),
    ):
        judged_at = level_of(second, {"delta.isolationLevel": level})
        assert (verdict(second, judged_at, True, first) is not None) is conflicts


def test_a_promise_is_judged_by_states_and_not_by_rules() -> None:
    base, after = replay(True, [BASE, INSERT])
    stale = "it read ['old'], and at its place in the log that is ['new', 'old']"
    assert broken_promise(UPDATE, SERIALIZABLE, base, after, [INSERT]) == stale
    assert broken_promise(UPDATE, WRITE_SERIALIZABLE, base, after, [INSERT]) is None
    deleted = base.after(UPDATE)
    gone = "it read or removes ['old'], which was gone"
    assert broken_promise(UPDATE, WRITE_SERIALIZABLE, base, deleted, [UPDATE]) == gone


def test_a_state_is_what_its_deeds_made_of_it() -> None:
    assert replay(True, [BASE, UPDATE])[-1].files == {"rewritten": "0"}
    assert State(True, {"a": "0", "b": "1"}).matching("1") == {"b"}
    assert State(False, {"a": "0", "b": "1"}).matching("1") == {"a", "b"}
