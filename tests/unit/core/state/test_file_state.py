from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.actions.file_keys import file_keys, rows_without
from lakelog.core.actions.file_table import files_from_json
from lakelog.core.actions.z85 import z85_encoded
from lakelog.core.log.commit_file import Commit
from lakelog.core.state import file_state
from lakelog.core.state import reconcile as commit_rows
from lakelog.core.state.file_state import FileState

# Spellings of few files, so that they meet: escaped or not, absolute in three ways.
PATHS = {
    "a": "a",
    "%61": "a",
    "b c": "b c",
    "b%20c": "b c",
    "p=1/d%20e": "p=1/d e",
    "p=1/d e": "p=1/d e",
    "p%3D1/d%20e": "p=1/d e",
    "p=1/f": "p=1/f",
    "p%3D1/f": "p=1/f",
    "/x/y": "/x/y",
    "file:/x/y": "/x/y",
    "file:///x/%79": "/x/y",
    "x/y": "x/y",
    "./x/y": "x/y",
    "x//z/%2e./y": "x/y",
    "/x/./y": "/x/y",
}
_ID = "01234567-89ab-cdef-0123-456789abcdef"
_Z85 = z85_encoded(UUID(_ID).bytes)
VECTORS: dict[str | None, dict[str, Any] | None] = {
    None: None,
    "u1": {"storageType": "u", "pathOrInlineDv": "1", "sizeInBytes": 1, "cardinality": 1},
    "u1@0": {
        "storageType": "u",
        "pathOrInlineDv": "1",
        "offset": 0,
        "sizeInBytes": 1,
        "cardinality": 1,
    },
    # Inline vectors, and the ids of others, are Z85 text: it has slashes.
    "ix/y": {"storageType": "i", "pathOrInlineDv": "x/y", "sizeInBytes": 1, "cardinality": 1},
    **{
        f"{kind}{text}@1": {
            "storageType": kind,
            "pathOrInlineDv": text,
            "offset": 1,
            "sizeInBytes": 1,
            "cardinality": 1,
        }
        for kind, text in [
            ("p", "file:///v/a%20b.bin"),
            ("p", "/v/a b.bin"),
            ("u", f"ab{_Z85}"),
            ("p", f"file:/t/ab/deletion_vector_{_ID}.bin"),
            ("u", _Z85),
            ("p", f"/t//deletion_vector_{_ID}.bin"),
        ]
    },
}
# Several names of one file of vectors are one.
SAME_VECTORS = {
    "p/v/a b.bin@1": "pfile:///v/a%20b.bin@1",
    f"pfile:/t/ab/deletion_vector_{_ID}.bin@1": f"uab{_Z85}@1",
    f"p/t//deletion_vector_{_ID}.bin@1": f"u{_Z85}@1",
}


def row(path, vector, size):
    return {"path": path, "partitionValues": {}, "size": size, "deletionVector": VECTORS[vector]}


keys = st.tuples(st.sampled_from(sorted(PATHS)), st.sampled_from(list(VECTORS)))
commits = st.lists(st.tuples(st.lists(keys, max_size=3), st.lists(keys, max_size=3)), max_size=8)


def build(actions):
    """Commits, and the model: what a dict says is live and what is a tombstone."""
    live: dict[tuple[str, str | None], int] = {}
    dead: dict[tuple[str, str | None], int] = {}
    made, size = [], 0
    for version, (adds, removes) in enumerate(actions):
        commit = Commit(version, f"{version}.json")
        for path, vector in removes:
            commit.removes.append({**row(path, vector, 0), "deletionTimestamp": version})
            key = PATHS[path], SAME_VECTORS.get(vector, vector)
            live.pop(key, None)
            dead[key] = version
        for path, vector in adds:
            size += 1
            commit.adds.append(row(path, vector, size))
            key = PATHS[path], SAME_VECTORS.get(vector, vector)
            dead.pop(key, None)
            live[key] = size
        made.append(commit)
    return made, live, dead


def found(state):
    live = dict(zip(names(state.live), state.live["size"].to_pylist(), strict=True))
    dead = dict(
        zip(
            names(state.tombstones), state.tombstones["deletion_timestamp"].to_pylist(), strict=True
        )
    )
    return live, dead


def names(table):
    for path, vector in zip(
        table["path"].to_pylist(), table["deletion_vector"].to_pylist(), strict=True
    ):
        at: str | None = None
        if vector is not None:
            found = vector["storageType"] + vector["pathOrInlineDv"]
            found += "" if vector["offset"] is None else f"@{vector['offset']}"
            at = SAME_VECTORS.get(found, found)
        yield PATHS[path], at


@pytest.mark.parametrize("many", [0, 10**6])
@given(actions=commits, cuts=st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.booleans())))
def test_replay_agrees_with_a_dict_wherever_it_pauses(many, actions, cuts):
    made, live, dead = build(actions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit_rows, "_MANY_KEYS", many)
        state, done = FileState("/t"), 0
        for cut, ask_live, ask_dead in sorted(cuts):
            state = state.after(made[done : max(cut, done)])
            done = max(cut, done)
            _ = ask_live and state.live
            _ = ask_dead and state.tombstones
        state = state.after(made[done:])
        assert found(state) == (live, dead)


@pytest.mark.parametrize("most", [1000, 5])
@given(actions=commits)
def test_few_files_are_known_without_columns(most, actions):
    made, live, _ = build(actions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_state, "_FEW_ACTIONS", most)
        few = FileState("/t").after(made).few_live()
    count = sum(len(adds) + len(removes) for adds, removes in actions)
    if not made or count > most:
        assert few is None
    else:
        assert few is not None
        assert sorted(each["size"] for each in few) == sorted(live.values())


def test_what_may_not_be_all_in_memory_is_not_few():
    commit = Commit(1, "1.json", adds=[row("z", None, 2)])
    of_checkpoint = FileState("/t", live=lambda: files_from_json([row("a", None, 1)]))
    computed = FileState("/t").after([commit])
    as_columns = Commit(2, "2.json", adds=files_from_json([row("a", None, 1)]))
    assert of_checkpoint.after([commit]).few_live() is None
    assert computed.after([as_columns]).few_live() is None
    assert len(computed.few_live() or ()) == 1
    _ = computed.live
    assert computed.few_live() is None
    assert computed.after([commit]).few_live() is None


@given(actions=commits)
def test_a_state_is_not_changed_by_what_follows(actions):
    made, live, dead = build(actions)
    state = FileState("/t").after(made)
    later = state.after([Commit(99, "99.json", removes=[row(p, None, 0) for p in PATHS])])
    assert all(vector is not None for _, vector in found(later)[0])
    assert found(state) == (live, dead)


def test_a_file_of_an_escaped_folder_is_found_though_its_vector_has_slashes():
    base = FileState("/t", live=lambda: files_from_json([row("p%3D1/f", "ix/y", 1)]))
    commit = Commit(1, "1.json", removes=[row("p%3D1/f", "ix/y", 0)])
    assert base.after([commit]).live.num_rows == 0


def test_files_are_read_once_and_only_when_asked_for():
    asked = []

    def read():
        asked.append(1)
        return files_from_json([row("a", None, 1)])

    base = FileState("/t", live=read)
    later = base.after([Commit(1, "1.json", adds=[row("z", None, 2)])])
    assert asked == []
    assert later.live["path"].to_pylist() == ["a", "z"]
    assert later.live.num_rows == base.live.num_rows + 1
    assert asked == [1]


def test_a_failed_read_can_be_repeated():
    answers = [OSError("away"), files_from_json([row("a", None, 1)])]

    def read():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    state = FileState("/t", live=read)
    with pytest.raises(OSError, match="away"):
        _ = state.live
    assert state.live.num_rows == 1


def test_threads_that_ask_at_once_get_the_same():
    state = FileState("/t")
    states = []
    for version in range(50):
        state = state.after([Commit(version, "x", adds=[row(f"f{version}", None, version)])])
        states.append(state)
    counts = {}
    barrier = threading.Barrier(8)

    def ask(offset):
        barrier.wait()
        for index in range(offset, 50, 8):
            counts[index] = states[index].live.num_rows

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {index: index + 1 for index in range(50)}


def test_a_computed_state_forgets_what_came_before():
    base = FileState("/t")
    state = base.after([Commit(1, "x", adds=[row("a", None, 1)])])
    _ = state.live
    assert state._live._parent is None
    assert state._live._commits == ()


def test_many_updates_do_not_make_many_chunks(monkeypatch):
    monkeypatch.setattr(file_state, "_MANY_CHUNKS", 4)
    state = FileState("/t")
    for version in range(20):
        state = state.after([Commit(version, "x", adds=[row(f"f{version}", None, version)])])
        assert state.live["path"].num_chunks <= 5
    assert state.live["path"].to_pylist() == [f"f{version}" for version in range(20)]


@given(st.lists(keys, max_size=6), st.lists(keys, max_size=6))
def test_the_quick_way_to_leave_rows_out_agrees_with_comparing_all_keys(some, others):
    base = files_from_json([row(path, vector, 1) for path, vector in some])
    gone = file_keys("/t", files_from_json([row(path, vector, 1) for path, vector in others]))
    wanted = set(gone.to_pylist())
    kept = [key not in wanted for key in file_keys("/t", base).to_pylist()]
    assert rows_without("/t", base, gone).equals(base.filter(pa.array(kept, pa.bool_())))


@given(st.lists(keys, max_size=6))
def test_keys_are_equal_exactly_for_equal_files(some):
    table = files_from_json([row(path, vector, 1) for path, vector in some])
    made = file_keys("/t", table).to_pylist()
    for (path, vector), key in zip(some, made, strict=True):
        for (other_path, other_vector), other in zip(some, made, strict=True):
            mine, theirs = (SAME_VECTORS.get(each, each) for each in (vector, other_vector))
            same = (PATHS[path], mine) == (PATHS[other_path], theirs)
            assert (key == other) == same
