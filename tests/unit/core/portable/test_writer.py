from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lakelog.cli
import lakelog.core
import lakelog.spark
from lakelog.core.portable.hive_writer import (
    PICKLED_BY_VALUE,
    RESULT_SCHEMA,
    PartitionedWriter,
    WritePlan,
    results_batch,
    write_batches,
    write_in_arrow,
)
from support.examples import examples

pc: Any = pyarrow.compute
pq: Any = pyarrow.parquet


def rows_of(root: Path, results: list[tuple[Any, ...]]) -> pa.Table:
    return pa.concat_tables(pq.read_table(root / each[0], partitioning=None) for each in results)


def test_an_unpartitioned_write_makes_one_file_with_all_rows(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    results = write_batches(table.to_batches(), WritePlan(str(tmp_path), table.schema), part=7)
    ((path, size, rows, values, footer, nans, modified),) = results
    assert path.startswith("part-00007-")
    assert path.endswith(".c000.zstd.parquet")
    assert size == (tmp_path / path).stat().st_size
    assert (rows, values, nans) == (3, "{}", "[]")
    assert modified > 1_600_000_000_000
    assert pq.read_metadata(io.BytesIO(footer)).num_rows == 3
    assert rows_of(tmp_path, results).equals(table)


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    assert write_batches([empty], WritePlan(str(tmp_path), schema)) == []
    assert list(write_in_arrow([], WritePlan(str(tmp_path), schema))) == []
    assert list(tmp_path.iterdir()) == []


def test_partitions_go_to_hive_folders_without_their_columns(tmp_path: Path) -> None:
    table = pa.table({"v": [1, 2, 3, 4], "p": ["a b%", None, "", "a b%"], "q": [1, 1, 1, 1]})
    plan = WritePlan(str(tmp_path), table.schema, ("p", "q"))
    found = {}
    for path, _, rows, values, *_ in write_batches(table.to_batches(), plan):
        found[path.rpartition("/")[0]] = (rows, json.loads(values))
    assert found == {
        "p=a b%25/q=1": (2, {"p": "a b%", "q": "1"}),
        "p=__HIVE_DEFAULT_PARTITION__/q=1": (2, {"p": None, "q": "1"}),
    }


@given(
    keys=st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from(["", "a", "b/c", "d=1"])),
            st.one_of(st.none(), st.integers(-2, 2)),
        ),
        min_size=1,
        max_size=60,
    ),
    batch=st.integers(1, 20),
    limit=st.sampled_from([0, 1, 3, 7]),
    group=st.sampled_from([1, 5, 1000]),
    budget=st.sampled_from([1, 200, 1 << 20]),
    opened=st.sampled_from([1, 2, 64]),
)
@settings(max_examples=examples(24), deadline=None)
def test_every_row_lands_once_in_its_partition_whatever_the_limits(
    tmp_path_factory: pytest.TempPathFactory,
    keys: Any,
    batch: Any,
    limit: Any,
    group: Any,
    budget: Any,
    opened: Any,
) -> None:
    root = tmp_path_factory.mktemp("t")
    table = pa.table(
        {
            "id": pa.array(range(len(keys)), pa.int64()),
            "p": pa.array([k[0] for k in keys], pa.string()),
            "q": pa.array([k[1] for k in keys], pa.int32()),
        }
    )
    plan = WritePlan(
        str(root), table.schema, ("p", "q"), max_rows_per_file=limit,
        row_group_rows=group, buffer_bytes=budget, max_open_files=opened,
    )  # fmt: skip
    results = write_batches(table.to_batches(max_chunksize=batch), plan)
    seen: Counter[int] = Counter()
    for path, _, rows, values, *_ in results:
        file = pq.read_table(root / path, partitioning=None)
        assert file.num_rows == rows > 0
        assert limit == 0 or rows <= limit
        texts = json.loads(values)
        for i in file["id"].to_pylist():
            p, q = keys[i]
            assert texts == {"p": p or None, "q": None if q is None else str(q)}
            seen[i] += 1
    assert seen == Counter(range(len(keys)))
    on_disk = sum(len(names) for _, _, names in os.walk(root))
    assert on_disk == len(results)


def test_many_small_batches_become_one_row_group(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    batches = [pa.RecordBatch.from_pydict({"a": [i]}, schema=schema) for i in range(100)]
    ((_, _, _, _, footer, _, _),) = write_batches(batches, WritePlan(str(tmp_path), schema))
    assert pq.read_metadata(io.BytesIO(footer)).num_row_groups == 1


def test_a_full_budget_writes_the_largest_buffer_and_bounds_memory(tmp_path: Path) -> None:
    schema = pa.schema([("p", pa.int32()), ("v", pa.int64())])
    plan = WritePlan(str(tmp_path), schema, ("p",), buffer_bytes=1 << 20)
    writer = PartitionedWriter(plan)
    for _ in range(4):
        rows = 1 << 17
        batch = pa.RecordBatch.from_arrays(
            [pa.array([i % 3 for i in range(rows)], pa.int32()), pa.array(range(rows), pa.int64())],
            schema=schema,
        )
        writer.write(batch)
        assert writer._buffered <= 1 << 20
    assert sum(each[2] for each in writer.close()) == 4 << 17


def test_a_file_that_reached_its_size_is_ended(tmp_path: Path) -> None:
    schema = pa.schema([("v", pa.int64())])
    noise = random.Random(5)
    batches = [
        pa.RecordBatch.from_pydict({"v": [noise.getrandbits(60) for _ in range(5000)]}, schema)
        for _ in range(6)
    ]
    plan = WritePlan(str(tmp_path), schema, row_group_rows=5000, target_file_bytes=60_000)
    results = write_batches(batches, plan)
    assert [each[2] for each in results] == [10_000, 10_000, 10_000]


def test_a_column_with_nan_has_no_statistics_and_its_nulls_are_reported(tmp_path: Path) -> None:
    nan = float("nan")
    table = pa.table(
        {
            "x": [1.0, nan, None],
            "y": [1.0, 2.0, None],
            "s": pa.array([{"z": nan}, None, {"z": 1.0}]),
        }
    )
    ((path, _, _, _, footer, nans, _),) = write_batches(
        table.to_batches(), WritePlan(str(tmp_path), table.schema)
    )
    assert {tuple(p): n for p, n in json.loads(nans)} == {("x",): 1, ("s", "z"): 1}
    group = pq.read_metadata(io.BytesIO(footer)).row_group(0)
    by_name = {group.column(i).path_in_schema: group.column(i).statistics for i in range(3)}
    assert by_name["x"] is None
    assert by_name["s.z"] is None
    assert (by_name["y"].min, by_name["y"].max) == (1.0, 2.0)
    assert rows_of(tmp_path, [(path,)]).num_rows == 3


def test_a_late_nan_ends_the_file_whose_statistics_it_would_spoil(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.float64())])
    batches = [
        pa.RecordBatch.from_pydict({"x": values}, schema)
        for values in ([1.0, 2.0], [3.0, float("nan")], [4.0, 5.0])
    ]
    results = write_batches(batches, WritePlan(str(tmp_path), schema, row_group_rows=2))
    assert [(r[2], json.loads(r[5])) for r in results] == [(2, []), (4, [[["x"], 0]])]


def test_batches_are_cast_to_the_plans_types(tmp_path: Path) -> None:
    wanted = pa.schema(
        [
            ("t", pa.timestamp("us", "UTC")),
            ("s", pa.string()),
            ("n", pa.int64()),
            ("d", pa.decimal128(10, 2)),
            pa.field("r", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        ]
    )
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([1], pa.timestamp("us", "Europe/Berlin")),
            pa.array(["x"], pa.large_string()),
            pa.array([1], pa.int32()),
            pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
            pa.array([{"a": 1}]),
        ],
        names=["t", "s", "n", "d", "r"],
    )
    results = write_batches([batch], WritePlan(str(tmp_path), wanted))
    schema = pq.read_metadata(tmp_path / results[0][0]).schema
    assert "ARROW:schema" not in (pq.read_metadata(tmp_path / results[0][0]).metadata or {})
    back = schema.to_arrow_schema()
    assert back.field("t").type == pa.timestamp("us", "UTC")
    assert back.field("n").type == pa.int64()
    assert rows_of(tmp_path, results)["d"].to_pylist() == [Decimal("1.50")]


def test_a_failing_source_leaves_no_file(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])

    def source() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1, 2]}, schema)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_batches(source(), WritePlan(str(tmp_path), schema, row_group_rows=1))
    assert list(tmp_path.iterdir()) == []


def test_a_null_in_a_required_column_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([None], pa.int64())], names=["a"])
    with pytest.raises(pa.ArrowInvalid, match="null"):
        write_batches([batch], WritePlan(str(tmp_path), schema))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    with pytest.raises(KeyError, match="b"):
        write_batches([pa.RecordBatch.from_pydict({"a": [1]})], WritePlan(str(tmp_path), schema))


def test_unique_values_get_no_dictionary_and_repeated_ones_do(tmp_path: Path) -> None:
    table = pa.table({"key": [f"k{i}" for i in range(3000)], "few": ["a", "b", "c"] * 1000})
    ((_, _, _, _, footer, _, _),) = write_batches(
        table.to_batches(), WritePlan(str(tmp_path), table.schema)
    )
    group = pq.read_metadata(io.BytesIO(footer)).row_group(0)
    assert "RLE_DICTIONARY" not in group.column(0).encodings
    assert "RLE_DICTIONARY" in group.column(1).encodings


def test_nested_columns_of_every_kind_survive(tmp_path: Path) -> None:
    table = pa.table(
        {
            "p": ["x", "y", "x"],
            "l": pa.array([[1, None], [], None]),
            "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "s": pa.array([{"a": {"b": [1.5]}}, None, {"a": None}]),
        }
    )
    results = write_batches(table.to_batches(), WritePlan(str(tmp_path), table.schema, ("p",)))
    by_value = {json.loads(r[3])["p"]: rows_of(tmp_path, [r]) for r in results}
    wanted = table.filter(pc.equal(table["p"], "x")).drop_columns(["p"])
    assert by_value["x"].to_pylist() == wanted.to_pylist()


def test_a_filesystem_other_than_the_local_one_is_used(tmp_path: Path) -> None:
    rooted = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    schema = pa.schema([("a", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"a": [1]}, schema)
    ((path, *_),) = write_batches([batch], WritePlan("in/side", schema, filesystem=rooted))
    assert (tmp_path / "in/side" / path).exists()


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_the_codec_is_in_the_name_and_in_the_file(tmp_path: Path, codec: Any) -> None:
    schema = pa.schema([("a", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"a": [1] * 100}, schema)
    ((path, _, _, _, footer, _, _),) = write_batches(
        [batch], WritePlan(str(tmp_path), schema, compression=codec, fsync=True)
    )
    ending = {"none": ".c000.parquet", "gzip": ".c000.gz.parquet", "zstd": ".c000.zstd.parquet"}
    assert path.endswith(ending[codec])
    column = pq.read_metadata(io.BytesIO(footer)).row_group(0).column(0)
    assert column.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())


def test_results_travel_as_an_arrow_batch(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"a": [1]}, schema)
    (out,) = write_in_arrow([batch], WritePlan(str(tmp_path), schema), part=1)
    assert out.schema.equals(RESULT_SCHEMA)
    assert out.num_rows == 1
    assert results_batch([]).schema.equals(RESULT_SCHEMA)


def test_results_are_put_together_without_pandas() -> None:
    script = """
import sys
from lakelog.core.portable.hive_writer import RESULT_SCHEMA, results_batch
rows = [("ü/a", 5, 7, '{"p":null}', b"\\0x", "[]", 123), ("", 1 << 40, 0, "{}", b"", "[]", -1)]
batch = results_batch(rows)
assert "pandas" not in sys.modules
batch.validate(full=True)
assert [tuple(row.values()) for row in batch.to_pylist()] == rows
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


RECEIVER = """
import pickle, sys

class NoLakelog:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "lakelog":
            raise ModuleNotFoundError("no lakelog here")

sys.meta_path.insert(0, NoLakelog())
import pyarrow as pa
task = pickle.load(sys.stdin.buffer)
table = pa.table({"p": ["a", "b"], "v": [1.0, float("nan")]})
print(sum(batch.num_rows for batch in task(table.to_batches())))
assert "lakelog" not in sys.modules
"""


def test_it_runs_in_an_interpreter_without_lakelog(tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    import importlib

    modules = [importlib.import_module(name) for name in PICKLED_BY_VALUE]
    schema = pa.schema([("p", pa.string()), ("v", pa.float64())])
    plan = WritePlan(str(tmp_path), schema, ("p",))
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        payload = cloudpickle.dumps(lambda batches: write_in_arrow(batches, plan))
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)
    done = subprocess.run(
        [sys.executable, "-c", RECEIVER], input=payload, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.strip() == b"2"


partitionings = st.lists(st.integers(1, 60), min_size=1, max_size=14)


@settings(deadline=None, max_examples=examples(24))
@given(widths=partitionings, count=st.integers(1, 80), seed=st.integers(0, 2**32))
@example(widths=[60] * 14, count=80, seed=1)
def test_rows_are_told_apart_by_any_number_of_partition_columns(
    widths: list[int], count: int, seed: int
) -> None:
    rng = random.Random(seed)
    columns = [[rng.choice([None, *range(1, width)]) for _ in range(count)] for width in widths]
    check_split([*zip(*columns, strict=True)])


@pytest.mark.parametrize("width", [2, 4, 10])
@pytest.mark.parametrize("count", [20, 32, 33, 63, 64, 65, 80])
def test_rows_that_differ_in_one_of_many_partition_columns_are_told_apart(
    count: int, width: int
) -> None:
    plain = (0,) * count
    changed = [(*plain[:i], v, *plain[i + 1 :]) for i in range(count) for v in range(1, width)]
    check_split([plain, *changed])


def check_split(rows: list[tuple[int | None, ...]]) -> None:
    """Compare the writer's way to group rows with a dict's."""
    names = [f"p{i}" for i in range(len(rows[0]))]
    arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    table = pa.table([*arrays, pa.array(range(len(rows)))], [*names, "row"])
    (batch,) = table.to_batches()
    expected: dict[tuple[str | None, ...], list[int]] = {}
    for row, values in enumerate(rows):
        key = tuple(None if value is None else str(value) for value in values)
        expected.setdefault(key, []).append(row)
    writer = PartitionedWriter(WritePlan("/t", table.schema, tuple(names)))
    found = list(writer._split(batch))
    assert len(found) == len(expected)
    assert {key: rows["row"].to_pylist() for key, rows in found} == expected


def test_a_row_of_many_partition_columns_is_in_the_file_of_its_partition(tmp_path: Path) -> None:
    names = [f"p{i}" for i in range(16)]
    count = 40
    table = pa.table(
        {**{n: random.sample(range(count), count) for n in names}, "row": range(count)}
    )
    plan = WritePlan(str(tmp_path), table.schema, tuple(names), fsync=False)
    for path, _, rows, values, *_ in write_batches(table.to_batches(), plan):
        (row,) = pq.read_table(tmp_path / path, partitioning=None)["row"].to_pylist()
        assert rows == 1
        assert json.loads(values) == {name: str(table[name][row].as_py()) for name in names}


def test_whole_numbers_are_never_put_together_without_a_check() -> None:
    """An Arrow kernel without `_checked` wraps around; only SQL's arithmetic looks for itself."""
    roots = [Path(str(each.__file__)).parent for each in (lakelog.core, lakelog.spark, lakelog.cli)]
    kernel = re.compile(r"pc\.(?:add|multiply|subtract|shift_left|negate|power)\(")
    found = {
        module.relative_to(root.parent).as_posix()
        for root in roots
        for module in root.rglob("*.py")
        if kernel.search(module.read_text())
    }
    assert found == {
        # Less than they began with, sizes in bytes, or times of four-digit years: nothing here can
        # grow too large.
        *(
            "cli/files/live_numbers.py",
            "core/arrow/encodings.py",
            "core/arrow/partitions.py",
            "core/arrow/time_zones.py",
            "core/dml/merge/matching.py",
            "core/maintain/optimize/curves.py",
            "core/expressions/values/collections.py",
            "core/expressions/values/times.py",
        ),
        "core/stats/bounds.py",
        # The remainder, which Spark computes with Java's wrapping sums.
        "core/expressions/values/numbers.py",
        # Zero, to make one of -0 and 0.
        "core/expressions/values/simple.py",
    }
