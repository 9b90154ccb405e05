from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.errors import CorruptCommitError
from lakelog.core.log.commit_file import Commit
from lakelog.core.state import reconcile as commit_rows
from lakelog.core.state.reconcile import reconciled
from support.examples import examples

VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "x",
    "offset": 1,
    "sizeInBytes": 4,
    "cardinality": 1,
}
maps = st.dictionaries(st.sampled_from("pq"), st.none() | st.sampled_from(["1", ""]), max_size=2)
adds = st.fixed_dictionaries(
    {"path": st.sampled_from("abc"), "size": st.integers(0, 9), "partitionValues": maps},
    optional={
        "tags": st.none() | maps,
        "stats": st.none() | st.just("{}"),
        "deletionVector": st.none() | st.just(VECTOR),
        "dataChange": st.booleans(),
        "baseRowId": st.integers(0, 9),
    },
)
removes = st.fixed_dictionaries(
    {"path": st.sampled_from("abc")},
    optional={
        "partitionValues": st.none() | maps,
        "deletionTimestamp": st.integers(0, 9),
        "dataChange": st.booleans(),
        "deletionVector": st.none() | st.just(VECTOR),
    },
)
commits = st.lists(
    st.tuples(st.lists(adds, max_size=3), st.lists(removes, max_size=3), st.booleans()), max_size=8
)


def made(actions):
    found = []
    for version, (added, removed, as_table) in enumerate(actions):
        commit = Commit(version, f"{version}.json", adds=added, removes=removed)
        if as_table:
            commit.added()
            commit.removed()
        found.append(commit)
    return found


@pytest.mark.parametrize("many", [0, 10**6])
@given(actions=commits)
@settings(max_examples=examples(60))
def test_together_they_are_what_they_are_one_by_one(many, actions):
    last: dict[tuple[str, bool], tuple[str, dict[str, object]]] = {}
    for version, (added, removed, _) in enumerate(copy.deepcopy(actions)):
        for kind, rows in (("remove", removed), ("add", added)):
            for row in rows:
                one = Commit(version, "p", adds=[row], removes=[row])
                table = one.added() if kind == "add" else one.removed()
                key = row["path"], bool(row.get("deletionVector"))
                last.pop(key, None)
                last[key] = kind, table.to_pylist()[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_rows, "_MANY_KEYS", many)
        tail = reconciled("/t", made(actions))
    if tail is None:
        assert not last
        return
    assert len(set(tail.keys.to_pylist())) == len(last)
    for kind, table in (("add", tail.added), ("remove", tail.removed)):
        assert table.to_pylist() == [row for k, row in last.values() if k == kind]


@pytest.mark.parametrize("count", [1, 3, 200])
def test_of_many_commits_the_malformed_one_is_named(count):
    good = [{"path": f"f{i}", "size": 1, "partitionValues": {}} for i in range(count)]
    rows = [*good, {"path": "bad", "size": 1, "partitionValues": {}, "baseRowId": "seven"}]
    with pytest.raises(CorruptCommitError, match="malformed") as caught:
        reconciled("/t", [Commit(i, f"{i}.json", adds=[row]) for i, row in enumerate(rows)])
    assert caught.value.path == f"{count}.json"
    assert caught.value.version == count


def test_commits_without_file_actions_come_to_nothing():
    assert reconciled("/t", [Commit(1, "1.json"), Commit(2, "2.json")]) is None
