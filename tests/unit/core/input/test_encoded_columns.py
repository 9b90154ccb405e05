"""Every way in which Arrow encodes a column gives the values of the plain one, at every door."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import merge, optimize, read_arrow, update_rows, write_arrow
from lakelog.core.arrow import encodings
from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.dml.merge.source import MergeSource
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.row_source import RowSource
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123)  # noqa: DTZ001  # of a type without a zone
VALUES: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", "b" * 20],
    pa.large_string(): ["a", ""],
    pa.string_view(): ["a", "b" * 20],
    pa.binary(): [b"a", b""],
    pa.binary(2): [b"ab", b"cd"],
    pa.large_binary(): [b"a", b""],
    pa.binary_view(): [b"a", b"b" * 20],
    pa.bool_(): [True, False],
    **{kind: [1, 2] for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{kind: [1, 2] for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{kind: [1.5, -2.0] for kind in (pa.float32(), pa.float64())},
    pa.float16(): [np.float16(1.5), np.float16(-2)],
    pa.decimal128(9, 2): [Decimal("1.50"), Decimal("-2.00")],
    pa.decimal256(9, 2): [Decimal("1.50"), Decimal("-2.00")],
    pa.date32(): [NOON.date(), dt.date(1, 1, 1)],
    pa.date64(): [NOON.date(), dt.date(1, 1, 1)],
    pa.timestamp("us", "UTC"): [NOON.replace(tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC)],
    pa.timestamp("ns"): [NOON, NOON],
    pa.timestamp("s"): [NOON.replace(microsecond=0), NOON.replace(microsecond=0)],
    pa.null(): [None, None],
    pa.list_(pa.int64()): [[1, 2], []],
    pa.struct([("x", pa.string_view())]): [{"x": "b" * 20}, {"x": None}],
    pa.map_(pa.string(), pa.int64()): [[("a", 1)], []],
}


def dictionary(index: pa.DataType, values: pa.Array[Any]) -> Any:
    """The first two values, the third one null, the first one again; and one that no row has."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], index), values)


def runs(ends: pa.DataType, values: pa.Array[Any]) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], ends), values)


def offsets(kind: pa.DataType | None = None) -> Any:
    return pa.array(range(5), kind or pa.int32())


FLAT: dict[str, Callable[[pa.Array[Any]], Any]] = {
    "plain": lambda values: values,
    "slice": lambda values: pa.concat_arrays([values, values]).slice(4),
    **{
        f"dictionary by {kind}": partial(dictionary, kind)
        for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
    },
    **{f"runs by {kind}": partial(runs, kind) for kind in (pa.int16(), pa.int32(), pa.int64())},
    "dictionary of dictionary": lambda values: pa.DictionaryArray.from_arrays(
        pa.array(range(4), pa.int8()), dictionary(pa.int8(), values)
    ),
    "dictionary of runs": lambda values: pa.DictionaryArray.from_arrays(
        pa.array(range(4), pa.int8()), runs(pa.int32(), values)
    ),
    "runs of dictionary": lambda values: runs(pa.int32(), dictionary(pa.int8(), values)),
    "slice of a dictionary": lambda values: pa.concat_arrays(
        [dictionary(pa.int16(), values)] * 2
    ).slice(4),
    "slice of runs": lambda values: runs(pa.int32(), pa.concat_arrays([values] * 2)).slice(0, 4),
}
NESTS: dict[str, Callable[[Any], Any]] = {
    "struct": lambda inner: pa.StructArray.from_arrays([inner], ["x"]),
    "list": lambda inner: pa.ListArray.from_arrays(offsets(), inner),
    "large list": lambda inner: pa.LargeListArray.from_arrays(offsets(pa.int64()), inner),
    "list of one": lambda inner: pa.FixedSizeListArray.from_arrays(inner, 1),
    "list view": lambda inner: pa.ListViewArray.from_arrays(
        offsets()[:4], pa.array([1] * 4, pa.int32()), inner
    ),
    "map": lambda inner: pa.MapArray.from_arrays(offsets(), pa.array(list("abcd")), inner),
    "slice of a list": lambda inner: pa.ListArray.from_arrays(
        pa.array(range(9), pa.int32()), pa.concat_arrays([inner] * 2)
    ).slice(4),
}
INSIDE = ("dictionary by int8", "runs by int32")
FORMS: dict[tuple[str, str], tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    ("", name): (lambda inner: inner, make) for name, make in FLAT.items()
} | {(nest, name): (NESTS[nest], FLAT[name]) for nest in NESTS for name in INSIDE}
NUMBER = pa.array([0, 1, 2, 3])


def columns(
    nest: Callable[[Any], Any], encode: Callable[[Any], Any], is_flat: bool
) -> dict[str, Any]:
    found = {}
    for at, (kind, (one, two)) in enumerate(VALUES.items()):
        if pa.types.is_null(kind) and not is_flat:
            continue  # no table has it within another
        try:
            found[f"c{at}"] = nest(encode(pa.array([one, two, None, one], kind)))
        except pa.ArrowNotImplementedError:
            continue  # there is no such array
    return found


def rows_of(uri: str) -> list[dict[str, Any]]:
    return sorted(read_arrow(uri).to_pylist(), key=lambda row: str(row.get("k")))


@pytest.mark.one_day_in(3, 2)
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_an_encoded_column_is_its_values(form: tuple[str, str], tmp_path: Path) -> None:
    nest, encode = FORMS[form]
    encoded = columns(nest, encode, not form[0])
    plain = columns(nest, FLAT["plain"], not form[0])
    plain = {name: each for name, each in plain.items() if name in encoded}
    assert len(encoded) > len(VALUES) // 2
    paths = map(str, (tmp_path / f"t{at}" for at in itertools.count()))

    def written(given: dict[str, Any]) -> Any:
        write_arrow(uri := next(paths), pa.table({"k": NUMBER, **given}))
        return rows_of(uri)

    def merged(given: dict[str, Any]) -> Any:
        write_arrow(uri := next(paths), pa.table({"k": NUMBER[:2], **plain_of(slice(0, 2))}))
        rows = iter([pa.record_batch({"k": NUMBER, **given})])
        merge(uri, rows, ["k"]).when_matched_update_all().when_not_matched_insert_all().execute()
        return rows_of(uri)

    def updated(given: dict[str, Any]) -> Any:
        write_arrow(uri := next(paths), pa.table({"k": NUMBER[:1], **plain_of(slice(2, 3))}))
        update_rows(uri, {name: each[1] for name, each in given.items()})
        return rows_of(uri)

    def plain_of(part: slice) -> dict[str, Any]:
        return {name: each[part] for name, each in plain.items()}

    for door in (written, merged, updated):
        assert door(encoded) == door(plain)


def test_what_no_row_has_of_a_dictionary_need_not_fit(tmp_path: Path) -> None:
    times = pa.array([1_000, 1_001], pa.timestamp("ns"))
    uri = str(tmp_path / "t")
    write_arrow(uri, {"t": pa.DictionaryArray.from_arrays(pa.array([0, None, 0]), times)})
    microsecond = dt.datetime(1970, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001  # of a type without a zone
    assert read_arrow(uri)["t"].to_pylist() == [microsecond, None, microsecond]
    with pytest.raises(DeltaAnalysisError, match="Column t"):
        write_arrow(uri, {"t": pa.DictionaryArray.from_arrays(pa.array([1]), times)}, mode="append")


# Frames of Polars -------------------------------------------------------------------------------

FRAME = pl.DataFrame(
    {
        "k": [1, 2, 3],
        "c": pl.Series(["a", None, "a"], dtype=pl.Categorical),
        "e": pl.Series(["x", "y", None], dtype=pl.Enum(["y", "x", "z"])),
        "l": pl.Series([["a"], [], None], dtype=pl.List(pl.Categorical)),
        "s": pl.Series([{"a": "x"}] * 3, dtype=pl.Struct({"a": pl.Enum(["x"])})),
    }
)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_frame_of_polars_or_its_query_is_written_and_merged(lazy: bool, tmp_path: Path) -> None:
    def given(frame: pl.DataFrame) -> Any:
        return frame.lazy().filter(pl.col("k") > 0) if lazy else frame

    uri = str(tmp_path / "t")
    write_arrow(uri, given(FRAME[:1]))
    merge(uri, given(FRAME), ["k"]).when_not_matched_insert_all().execute()
    write_arrow(uri, given(FRAME[:0]), mode="append")
    assert read_arrow(uri).sort_by("k").to_pylist() == FRAME.to_dicts()


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pl.Series([object()], dtype=pl.Object), "column odd holds Python's objects"),
        (pl.Series([b"12345678"], dtype=pl.Object), "column odd holds Python's objects"),
        (pl.Series([1 << 70], dtype=pl.Int128), "column odd is of Polars' type Int128"),
        (pl.Series([dt.time(1)]), "Column odd has type time64"),
    ],
    ids=["objects", "bytes as objects", "128 bits", "time"],
)
def test_a_column_that_holds_no_values_is_refused_by_name(
    column: pl.Series, why: str, lazy: bool, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"k": [1], "odd": column})
    data: Any = frame.lazy() if lazy else frame
    uri = str(tmp_path / "t")
    with pytest.raises(DeltaAnalysisError, match=why):
        write_arrow(uri, data)
    write_arrow(uri, {"k": [1]})
    with pytest.raises(DeltaAnalysisError, match=why):
        merge(uri, data, ["k"]).when_matched_update_all().execute()


# What takes more than it seems ------------------------------------------------------------------

WIDE: dict[str, Callable[[int], Any]] = {
    "dictionary": lambda n: pa.DictionaryArray.from_arrays(pa.array([0] * n), ["x" * 100]),
    "runs": lambda n: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), ["x" * 100]),
    "views": lambda n: pa.DictionaryArray.from_arrays(
        pa.array([0] * n), pa.array(["x" * 100], pa.string_view())
    ),
    "large": lambda n: pa.array(["x" * 100] * n, pa.large_string()),
    "list": lambda n: pa.ListArray.from_arrays(
        pa.array(range(n + 1), pa.int32()), WIDE["dictionary"](n)
    ),
    "map": lambda n: pa.MapArray.from_arrays(
        pa.array(range(n + 1), pa.int32()), pa.array(["k"] * n), WIDE["dictionary"](n)
    ),
    "struct": lambda n: pa.StructArray.from_arrays([WIDE["runs"](n)], ["x"]),
    "list view": lambda n: pa.ListViewArray.from_arrays(
        pa.array([0] * n, pa.int32()), pa.array([25] * n, pa.int32()), pa.nulls(25, pa.int32())
    ),
}


@settings(max_examples=examples(18), deadline=None)
@given(st.sampled_from(sorted(WIDE)), st.integers(1, 300), st.integers(0, 40), st.data())
def test_rows_are_judged_by_what_they_take_decoded(
    form: str, count: int, skipped: int, data: st.DataObject
) -> None:
    rows = pa.table({"c": WIDE[form](count + skipped)}).slice(skipped)
    size = encodings.table_bytes(rows)
    assert 100 * count <= size <= 130 * count + 200
    limit = data.draw(st.integers(150, 40_000))
    pieces = list(encodings.row_pieces(rows, limit))
    assert sum(each.num_rows for each in pieces) == count
    assert all(each.num_rows == 1 or encodings.table_bytes(each) <= limit for each in pieces)
    plain = cast_table(rows, schema := from_arrow_schema(rows.schema))
    assert pa.concat_tables(cast_table(each, schema) for each in pieces).equals(plain)


@pytest.mark.parametrize("form", WIDE)
def test_no_column_is_decoded_past_what_one_array_holds(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"c": WIDE[form](1000)})
    schema = from_arrow_schema(rows.schema)
    plain = cast_table(rows, schema)
    monkeypatch.setattr(encodings, "_MOST_BYTES", 20_000)
    found = cast_table(rows, schema)
    assert found.equals(plain)
    assert all(chunk.nbytes <= 40_000 for chunk in found["c"].chunks)
    assert found["c"].num_chunks > 4


def test_rows_in_memory_are_written_and_merged_in_pieces_of_what_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = pa.table({"c": WIDE["dictionary"](4000)})
    monkeypatch.setattr("lakelog.core.input.row_source._DECODED", 50_000)
    assert max(each.num_rows for each in RowSource(rows).tables()) <= 600
    monkeypatch.setattr("lakelog.core.input.row_source._BYTES", 50_000)
    assert max(each.num_rows for each in RowSource(rows.to_reader()).tables()) <= 1000
    held = MergeSource(rows).rows(50_000).table
    assert held.num_rows == 4000
    assert pa.total_allocated_bytes() < 100_000_000


@settings(max_examples=examples(16), deadline=None)
@given(st.lists(st.lists(st.integers(0, 150), max_size=6), min_size=1, max_size=6), st.data())
def test_rows_are_taken_from_columns_that_are_too_large_as_one(
    sizes: list[list[int]], data: st.DataObject
) -> None:
    texts = [["x" * size for size in part] for part in sizes]
    count = sum(map(len, texts))
    rows = pa.table({"c": pa.chunked_array(texts, pa.string()), "n": range(count)})
    wanted = data.draw(st.lists(st.integers(0, count - 1), max_size=30)) if count else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "_MOST_BYTES", 600)
        found = encodings.taken(rows, pa.array(wanted, pa.int64()))
    assert found.to_pylist() == [rows.slice(at, 1).to_pylist()[0] for at in wanted]


@pytest.mark.parametrize("by", ["c", "n"])
def test_a_file_that_decodes_to_much_is_ordered_in_pieces(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"c": WIDE["dictionary"](3000), "n": range(3000)})
    write_arrow(uri, rows)
    write_arrow(uri, rows, mode="append")
    monkeypatch.setattr("lakelog.core.data.row_reader._PIECE_BYTES", 20_000)
    monkeypatch.setattr("lakelog.core.maintain.optimize.ordering._MEMORY_BYTES", 50_000)
    optimize(uri, z_order_by=[by])
    assert sorted(read_arrow(uri)["n"].to_pylist()) == sorted([*range(3000)] * 2)
