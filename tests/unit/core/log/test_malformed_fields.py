"""Whatever a field of the log holds, reading it works or ends in an error that says where.

Each field of each action, in each kind of file of the log, with each kind of wrong value, through
every way of reading. What may come out is a result or an error of ours that names a file; what may
not is Python's, or Arrow's, about a value that nobody can place.
"""

from __future__ import annotations

import copy
import json
import zlib
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from lakelog.cli.doctor.examination import Depth, examine
from lakelog.core import DeltaLog, table_changes
from lakelog.core.actions.file_table import FILE_SCHEMA
from lakelog.core.errors import (
    CorruptCommitError,
    DataFileError,
    DeltaError,
    UnsupportedFeatureError,
)
from lakelog.core.log import commit_file
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.log.commit_history import HistoryEntry
from lakelog.core.log.json_lines import numbered_lines
from lakelog.core.log.segment import find_segment
from lakelog.core.state.replayer import ReplayJob
from lakelog.core.streaming.stream_options import StreamOptions
from lakelog.core.streaming.table_source import StreamSource
from lakelog.logstores import LocalLogStore
from lakelog.spark.replay.tasks import CommitRows
from support.examples import examples
from support.raw_log import RawLog, add, metadata, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lakelog.core.state.snapshot import Snapshot

T = TypeVar("T")
VALUES: list[Any] = [
    *(None, True, -1, 1 << 31, (1 << 63) - 1, 1 << 63, 1 << 70, 1.5),
    *("", "x", "\0", "../../x", "%00"),
    *([], [None], [1], {}, {"p": None}, {"p": 1}, [[[[]]]]),
]
VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes": 44,
    "cardinality": 6,
    "offset": 1,
}
META = metadata(partition_columns=("p",), configuration={"delta.enableChangeDataFeed": "true"})
WHOLE: dict[str, dict[str, Any]] = {
    "add": add(
        "b.parquet",
        partitionValues={"p": "1"},
        stats='{"numRecords":2}',
        tags={"t": "x"},
        deletionVector=VECTOR,
        baseRowId=1,
        defaultRowCommitVersion=1,
        clusteringProvider="c",
    ),
    "remove": remove(
        "a.parquet",
        partitionValues={"p": "1"},
        size=1,
        stats="{}",
        tags={},
        extendedFileMetadata=True,
        deletionVector=VECTOR,
        baseRowId=1,
        defaultRowCommitVersion=1,
    ),
    "cdc": {"cdc": {"path": "c", "partitionValues": {"p": "1"}, "size": 1, "dataChange": False}},
    "metaData": META,
    "protocol": {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "inCommitTimestamp"],
        }
    },
    "txn": {"txn": {"appId": "a", "version": 1, "lastUpdated": 1}},
    "domainMetadata": {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    "commitInfo": {
        "commitInfo": {
            "inCommitTimestamp": 1,
            "timestamp": 1,
            "operation": "MERGE",
            "operationParameters": {"a": "b"},
            "operationMetrics": {"numTargetRowsInserted": "1"},
            "readVersion": 0,
            "isolationLevel": "Serializable",
            "isBlindAppend": True,
            "userMetadata": "x",
            "engineInfo": "x",
            "txnId": "x",
            "tags": {},
        }
    },
    "sidecar": {"sidecar": {"path": "x", "sizeInBytes": 1, "modificationTime": 1, "tags": {}}},
    "checkpointMetadata": {"checkpointMetadata": {"version": 0, "tags": {"numOfAddFiles": "1"}}},
}


@cache
def fields(kind: str) -> list[tuple[str, ...]]:
    """Every path to a value within an action; the action itself is `()`."""

    def below(value: Any, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        found = [path]
        if isinstance(value, dict):
            for key, each in value.items():
                found += below(each, (*path, key))
        return found

    return below(WHOLE[kind][kind], ())


def with_value(kind: str, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    line = copy.deepcopy(WHOLE[kind])
    place: Any = line
    for key in (kind, *path)[:-1]:
        place = place[key]
    place[(kind, *path)[-1]] = value
    return line


def without(kind: str, path: tuple[str, ...]) -> dict[str, Any]:
    line = with_value(kind, path, None)
    place: Any = line
    for key in (kind, *path)[:-1]:
        place = place[key]
    del place[(kind, *path)[-1]]
    return line


def table_of(root: Path) -> RawLog:
    pq.write_table(pa.table({"a": [1, 2]}), root / "a.parquet")
    size = (root / "a.parquet").stat().st_size
    stats = '{"numRecords":2}'
    good = add("a.parquet", partitionValues={"p": "1"}, size=size, stats=stats)
    return RawLog(root).commit(WHOLE["protocol"], META, good)


def settled(read: Callable[[], Any], about: str) -> None:
    """Read; an error must be ours, and must say where."""
    met: DeltaError | None = None
    try:
        read()
    except DeltaError as exc:
        met = exc
    if met is not None:
        assert met.fields.keys() & {"path", "table", "column", "property"}, (about, met)
        assert ".json" in str(met) or not isinstance(met, CorruptCommitError), (about, met)


def ways(table: str) -> dict[str, Callable[[], Any]]:
    """Every way of reading a table; each opens it anew."""

    def times() -> None:
        for entry in DeltaLog.for_table(table).history():
            assert isinstance(entry, HistoryEntry)
            _ = (entry.operation, entry.time)

    def stream() -> None:
        source = StreamSource(DeltaLog.for_table(table), StreamOptions(starting_version=0))
        start = source.initial_offset()
        source.files_between(start, source.latest_offset(start))

    def replayed() -> None:
        store = LocalLogStore()
        segment = find_segment(store, table)
        rows = CommitRows.from_job(ReplayJob(store, segment, None), "add", FILE_SCHEMA, None)
        if rows is not None:
            for number in range(rows.count):
                list(rows.batches(number))

    def rows() -> None:
        snapshot = DeltaLog.for_table(table).snapshot
        _ = (snapshot.schema, snapshot.transactions, snapshot.timestamp, snapshot.properties)
        snapshot.files()
        _ = snapshot.tombstones
        snapshot.files("p = '1' AND a > 0")
        snapshot.to_arrow()

    return {
        "rows": rows,
        "history": times,
        "changes": lambda: table_changes(table, 0).read_all(),
        "stream": stream,
        "replay": replayed,
        "doctor": lambda: examine(table, {}, Depth(read_only=True), lambda _: None),
    }


CASES = [(kind, path) for kind in WHOLE for path in fields(kind)]
IDS = [".".join((kind, *path)) for kind, path in CASES]


def malformed(kind: str, path: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Lines with wrong values of a field, and without it.

    A third of the values, others for each field; every one where time plays no part.
    """
    for value in thirds(VALUES, f"{kind}.{path}"):
        yield f"{kind}.{path} = {value!r}", with_value(kind, path, value)
    if path:
        yield f"no {kind}.{path}", without(kind, path)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "path"), CASES, ids=IDS)
def test_a_commit(tmp_path: Path, kind: str, path: tuple[str, ...]) -> None:
    log = table_of(tmp_path)
    known = DeltaLog.for_table(log.table).snapshot
    for about, line in malformed(kind, path):
        log.commit({"commitInfo": {}}, line, version=1)
        others = ways(log.table) | {"update": lambda: advanced(known)}
        settled(others.pop("rows"), about)
        for name in some(sorted(others), about):
            settled(others[name], f"{name} of {about}")


def some(names: list[str], about: str) -> list[str]:
    """One of them, each time the same and for others another; all where time plays no part."""
    return names if examples(1) > 1 else [names[zlib.crc32(about.encode()) % len(names)]]


def thirds(values: Sequence[T], about: str) -> Sequence[T]:
    """Each third of them, from another one on for each of what they are values of."""
    return values if examples(1) > 1 else values[zlib.crc32(about.encode()) % 3 :: 3]


def advanced(known: Snapshot) -> None:
    log = DeltaLog.for_table(known.table)
    log._snapshot = known
    _ = log.update().file_table


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("kind", "path"),
    [each for each in CASES if each[0] in ("add", "remove")],
    ids=[name for name in IDS if name.startswith(("add", "remove"))],
)
def test_a_large_commit_says_what_a_small_one_says(
    monkeypatch: pytest.MonkeyPatch, kind: str, path: tuple[str, ...], first: bool
) -> None:
    def parsed(lines: list[dict[str, Any]]) -> Any:
        data = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines).encode()
        try:
            commit = parse_commit(data, 1, "p/1.json")
            return [
                {key: as_dict(each) if key in _MAPS else each for key, each in row.items()}
                for table in (commit.added(), commit.removed())
                for row in table.to_pylist()
            ]
        except CorruptCommitError as exc:
            return exc.line, str(exc)

    for about, line in malformed(kind, path):
        if path == ("path",) and str(line[kind].get("path")) in ("", "\0"):
            continue  # of columns, found where a file is looked for
        lines = [line, WHOLE[kind]] if first else [WHOLE[kind], line]
        small = parsed(lines)
        with monkeypatch.context() as patched:
            patched.setattr(commit_file, "_MANY_LINES", 1)
            assert parsed(lines) == small, about
        assert isinstance(small, list) or small[0] == (1 if first else 2), about


def as_dict(entries: list[tuple[str, Any]] | None) -> dict[str, Any] | None:
    """Read in columns, an absent value is a null one."""
    return None if entries is None else {k: each for k, each in entries if each is not None}


_MAPS = ("partition_values", "tags")
AS_IS = [{"a": 1, "p": "1"}, {"a": 2, "p": "1"}]
TOP = [
    WHOLE["checkpointMetadata"],
    WHOLE["protocol"],
    META,
    add("a.parquet", partitionValues={"p": "1"}, stats='{"numRecords":2}'),
]
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def text(lines: list[Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in lines)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "path"), CASES, ids=IDS)
def test_a_checkpoint_of_lines(tmp_path: Path, kind: str, path: tuple[str, ...]) -> None:
    about = ""
    log = table_of(tmp_path)
    place = log.folder / f"{0:020d}.checkpoint.{UUID}.json"
    log.path(0).rename(tmp_path / "0")
    for about, line in malformed(kind, path):
        place.write_text(text([*(each for each in TOP if kind not in each), line]))
        settled(ways(log.table)["rows"], about)
    (tmp_path / "0").rename(log.path(0))
    settled(ways(log.table)["rows"], f"{about}, with its commit")


def leaves(kind: pa.DataType, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path] if path else []
    if pa.types.is_struct(kind):
        for each in kind:
            found += leaves(each.type, (*path, each.name))
    return found


OTHER_COLUMNS: list[tuple[Any, pa.DataType]] = [
    (None, pa.string()),
    ("x", pa.string()),
    (b"\xff", pa.binary()),
    (1 << 62, pa.int64()),
    (-1.5, pa.float64()),
    ([None], pa.list_(pa.int64())),
    ([("p", None)], pa.map_(pa.string(), pa.string())),
    ({"p": 1}, pa.struct([("p", pa.int64())])),
]


def replaced(array: pa.Array, path: tuple[str, ...], value: Any, kind: pa.DataType) -> pa.Array:
    """The column with a value, and a type, in place of one of its fields."""
    if not path:
        return pa.array([None if each is None else value for each in array.to_pylist()], kind)
    fields, children = [], []
    for each in array.type:
        child = array.field(each.name)
        if each.name == path[0]:
            child = replaced(child, path[1:], value, kind)
        fields.append(pa.field(each.name, child.type))
        children.append(child)
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


@pytest.mark.soak
@pytest.mark.parametrize("column", ["add", "remove", "metaData", "protocol", "txn"])
def test_a_checkpoint_of_columns(tmp_path: Path, column: str) -> None:
    log = table_of(tmp_path)
    log.commit(WHOLE["txn"], WHOLE["domainMetadata"], WHOLE["remove"])
    log.commit(TOP[-1])
    DeltaLog.for_table(log.table).checkpoint()
    place = log.folder / f"{2:020d}.checkpoint.parquet"
    good = pq.read_table(place)
    at = good.schema.get_field_index(column)
    every = list(product([(), *leaves(good.schema.field(at).type)], OTHER_COLUMNS))
    for path, (value, kind) in thirds(every, column):
        other = replaced(good.column(at).combine_chunks(), path, value, kind)
        pq.write_table(good.set_column(at, pa.field(column, other.type), other), place)
        about = f"{column}.{path}: {kind} = {value!r}"
        if "beside" in some(["alone", "beside"], about):
            settled(ways(log.table)["rows"], about)
        hidden = [log.path(version) for version in (0, 1, 2)]
        for each in hidden:
            each.rename(each.with_suffix(".gone"))
        settled(ways(log.table)["rows"], f"{about}, alone")
        for each in hidden:
            each.with_suffix(".gone").rename(each)


@pytest.mark.parametrize(
    "name", ["_last_checkpoint", f"{0:020d}.crc", f"{0:020d}.{1:020d}.compacted.json"]
)
def test_what_only_helps_does_no_harm(tmp_path: Path, name: str) -> None:
    log = table_of(tmp_path).commit({"commitInfo": {"timestamp": 1}})
    log.commit({"commitInfo": {"timestamp": 2}})
    expected = DeltaLog.for_table(log.table).snapshot.to_arrow().to_pylist()
    assert expected == AS_IS
    whole: dict[str, Any] = {
        "_last_checkpoint": {"version": 0, "size": 1, "parts": 1, "v2Checkpoint": {"path": "x"}},
        f"{0:020d}.crc": {
            "tableSizeBytes": 1, "numFiles": 1, "metadata": META["metaData"],
            "protocol": WHOLE["protocol"]["protocol"], "setTransactions": [WHOLE["txn"]["txn"]],
            "domainMetadata": [WHOLE["domainMetadata"]["domainMetadata"]],
            "inCommitTimestampOpt": 1, "numDeletedRecordsOpt": 0, "numDeletionVectorsOpt": 0,
        },
    }.get(name, TOP[-1])  # fmt: skip
    texts = ["", "\n\n", "<html>", "[]", "5", "null", '"x"', "\udcff", "[" * 5000, "{" * 5000]
    texts += [json.dumps({**whole, key: value}) for key in whole for value in VALUES]
    if "compacted" in name:
        texts = [each for each in texts if each != json.dumps(whole)]
    for each in texts:
        (log.folder / name).write_bytes(each.encode(errors="surrogateescape"))
        assert DeltaLog.for_table(log.table).snapshot.to_arrow().to_pylist() == expected, each


INSTEAD = {
    b"": "it is empty",
    b"<html><body>503 Slow down</body></html>": "begins like HTML",
    b'{"error": "no such key", "more": "text"}': "begins like JSON",
    b"a,b\n1,2\n": "no Parquet file",
    b"\0" * 100: "it is no Parquet file",
    b"PAR1" + b"x" * 100: "cut off",
    b"PAR1" + b"x" * 100 + b"\xff\xff\0\0PAR1": "damaged",
}


@pytest.mark.parametrize("content", INSTEAD, ids=INSTEAD.values())
def test_what_is_no_data_file_is_named(tmp_path: Path, content: bytes) -> None:
    log = table_of(tmp_path)
    (tmp_path / "a.parquet").write_bytes(content)
    snapshot = DeltaLog.for_table(log.table).snapshot
    for read in (snapshot.to_arrow, lambda: list(snapshot.to_batches())):
        with pytest.raises(DataFileError, match=rf"a\.parquet.*{INSTEAD[content]}") as caught:
            read()
        assert caught.value.path == str(tmp_path / "a.parquet")


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
def test_blank_lines_cost_no_object_each(tmp_path: Path, blank: bytes) -> None:
    many = blank * (1 << 20)
    whole = numbered_lines(many + b'{"a":1}\n' + many + b"  [2] \n")
    assert list(whole) == [((1 << 20) + 1, b'{"a":1}'), (2 * (1 << 20) + 2, b"[2] ")]
    log = table_of(tmp_path).write(many + json.dumps(TOP[-1]).encode() + many, version=1)
    assert DeltaLog.for_table(log.table).snapshot.num_files == 1
    table_changes(log.table, 0).read_all()
    log.write(many, version=2)
    with pytest.raises(CorruptCommitError, match="it is empty"):
        _ = DeltaLog.for_table(log.table).snapshot


LATER = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["later"]}


@pytest.mark.parametrize("kind", ["add", "remove", "metaData", "txn", "domainMetadata"])
@pytest.mark.parametrize("where", ["before", "in it", "in a checkpoint", "in one of lines"])
def test_a_later_protocol_is_named_and_not_what_it_brought(
    tmp_path: Path, kind: str, where: str
) -> None:
    log = table_of(tmp_path)
    strange = {kind: {"of": "another shape"}}
    if where == "in it":
        log.commit({"commitInfo": {}}, strange, {"protocol": LATER})
    elif where == "before":
        log.commit({"protocol": LATER}).commit(strange)
    elif where == "in one of lines":
        (log.folder / f"{1:020d}.checkpoint.{UUID}.json").write_text(
            text([{"checkpointMetadata": {"version": 1}}, {"protocol": LATER}, META])
        )
        log.commit(strange, version=2)
    else:
        rows = {"protocol": [LATER | {"writerFeatures": ["later"]}, None]}
        rows["metaData"] = [None, {**META["metaData"], "format": None, "configuration": None}]
        pq.write_table(pa.table(rows), log.folder / f"{1:020d}.checkpoint.parquet")
        log.commit(strange, version=2)
    with pytest.raises(UnsupportedFeatureError, match="later"):
        _ = DeltaLog.for_table(log.table).snapshot


@pytest.mark.parametrize("given", [None, ..., "p", {"p": 1}, [1]])
def test_partition_columns_are_never_guessed(tmp_path: Path, given: Any) -> None:
    log = table_of(tmp_path)
    path = ("partitionColumns",)
    line = without("metaData", path) if given is ... else with_value("metaData", path, given)
    log.commit(line)
    with pytest.raises(CorruptCommitError, match="partitionColumns") as caught:
        _ = DeltaLog.for_table(log.table).snapshot
    assert (caught.value.path, caught.value.line) == (str(log.path(1)), 1)


def test_many_blank_lines_end_the_search_for_the_info(tmp_path: Path) -> None:
    log = table_of(tmp_path).write(b"\n" * (1 << 17) + b'{"commitInfo":{}}\n', version=1)
    with pytest.raises(CorruptCommitError, match="blank lines") as caught:
        DeltaLog.for_table(log.table).history()
    assert caught.value.path == str(log.path(1))
