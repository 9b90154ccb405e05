"""Commits read together say what each of them says alone; one that can't be read is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.engine.log import read_commits, read_file_changes
from support.examples import examples
from support.raw_log import PROTOCOL, RawLog, add, metadata

if TYPE_CHECKING:
    from pathlib import Path

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 2}

paths = st.sampled_from(["a", "b/c", "d%20e", "é", "/x", "file:/y"])
stats = st.sampled_from([None, '{"numRecords":3}', '{"numRecords":"x"}', "not json"])
vectors = st.sampled_from([None, {**VECTOR, "cardinality": 1}])
sizes = st.sampled_from([0, 7, 1 << 40, 7.0])


@st.composite
def actions(draw: st.DrawFn) -> dict[str, Any]:
    given = {"path": draw(paths), "stats": draw(stats), "deletionVector": draw(vectors)}
    given = {key: value for key, value in given.items() if value is not None}
    if draw(st.booleans()):
        tags: dict[str, Any] = draw(
            st.sampled_from([{}, {"tags": {"k": "v"}}, {"tags": {"other": None}}])
        )
        rest: dict[str, Any] = {"partitionValues": {}, "modificationTime": 1, "dataChange": True}
        return {"add": {**given, **rest, **tags, "size": draw(sizes)}}
    size = draw(st.sampled_from([{}, {"size": 5}]))
    return {"remove": {**given, **size, "deletionTimestamp": 1, "dataChange": True}}


lines = st.one_of(
    st.lists(actions(), min_size=1, max_size=2).map(
        lambda some: orjson.dumps({key: each for one in some for key, each in one.items()})
    ),
    st.sampled_from(
        [b"", b"  ", b'{"commitInfo":{"operation":"WRITE"}}', b'{"unknown":{"add":1}}']
    ),
    actions().map(lambda one: b" " + orjson.dumps(one)),
)
commits = st.lists(st.lists(lines, min_size=1, max_size=6), min_size=1, max_size=5)


def seen(files: Any, version: int) -> list[tuple[Any, ...]]:
    found = [
        (row["adds"], row["path"], row["size"], (row["deletion_vector"] or {}).get("cardinality"))
        for row in files.to_pylist()
        if row["version"] == version
    ]
    return sorted(found, key=repr)


@settings(max_examples=examples(24), deadline=None)
@given(commits, st.booleans())
def test_commits_together_say_what_each_says_alone(
    tmp_path_factory: Any, texts: list[list[bytes]], ended: bool
) -> None:
    log = RawLog(tmp_path_factory.mktemp("changes") / "t")
    log.commit(PROTOCOL, metadata(), add("first", size=1))
    opened = DeltaLog.for_table(log.table)
    folder = log.folder
    for version, some in enumerate(texts, 1):
        body = b"\n".join([b'{"commitInfo":{}}', *some]) + b"\n" * ended
        (folder / f"{version:020}.json").write_bytes(body)
    named = {version: str(folder / f"{version:020}.json") for version in range(len(texts) + 1)}
    changes = read_file_changes(opened.store, opened.table, named)
    assert not changes.unread
    assert [each.version for each in changes.commits] == [*named]
    for commit in read_commits(opened.store, opened.table, named):
        alone = [
            (adds, row["path"], row["size"], (row["deletion_vector"] or {}).get("cardinality"))
            for adds, rows in ((True, commit.added()), (False, commit.removed()))
            for row in rows.to_pylist()
        ]
        assert seen(changes.files, commit.version) == sorted(alone, key=repr)


@pytest.mark.parametrize(
    "text",
    [b"", b'{"add":{"path":"a"', b'{"add":{"path":"a"}}\n', b'{"add":{"path":"\xff"}}', b"x"],
)
def test_a_commit_that_is_broken_is_named_and_the_others_are_read(
    tmp_path: Path, text: bytes
) -> None:
    log = RawLog(tmp_path / "t")
    log.commit(PROTOCOL, metadata(), add("a", size=1))
    log.commit(add("b", size=2))
    opened = DeltaLog.for_table(str(tmp_path / "t"))
    folder = tmp_path / "t" / "_delta_log"
    (folder / f"{2:020}.json").write_bytes(text)
    named = {version: str(folder / f"{version:020}.json") for version in range(4)}
    changes = read_file_changes(opened.store, opened.table, named)
    assert [each.version for each in changes.commits] == [0, 1]
    assert sorted(changes.files["path"].to_pylist()) == ["a", "b"]
    missing, broken = map(str, changes.unread)
    assert f"{3:020}.json" in missing
    assert f"{2:020}.json" in broken


def test_statistics_of_removed_files_are_there(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    removed = {"path": "b", "dataChange": True, "deletionTimestamp": 1, "stats": '{"numRecords":2}'}
    log.commit(PROTOCOL, metadata(), {"remove": removed})
    opened = DeltaLog.for_table(str(tmp_path / "t"))
    path = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    changes = read_file_changes(opened.store, opened.table, {0: str(path)})
    assert changes.files["stats"].to_pylist() == ['{"numRecords":2}']
