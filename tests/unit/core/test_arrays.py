from __future__ import annotations

import string
import sys
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.core import arrays
from lakelog.core.arrays import array_of, empty_table, integers, scalar_of

if TYPE_CHECKING:
    from pathlib import Path

INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats()),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), INSTANTS),
    (
        pa.timestamp("us", "UTC"),
        INSTANTS.map(lambda at: at.replace(tzinfo=timezone(timedelta(hours=5.5)))),
    ),
]


def of_kind(
    kind: pa.DataType, values: st.SearchStrategy[Any]
) -> st.SearchStrategy[tuple[pa.DataType, list[Any]]]:
    return st.lists(st.none() | values, max_size=20).map(lambda drawn: (kind, drawn))


def struct_of(kinds: list[tuple[pa.DataType, st.SearchStrategy[Any]]]) -> Any:
    names = string.ascii_lowercase
    kind = pa.struct([(name, each) for name, (each, _) in zip(names, kinds, strict=False)])
    some = {n: st.none() | values for n, (_, values) in zip(names, kinds, strict=False)}
    return kind, st.fixed_dictionaries({}, optional=some)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda of: (pa.list_(of[0]), st.lists(st.none() | of[1], max_size=3))),
        inner.map(
            lambda of: (
                pa.map_(pa.string(), of[0]),
                st.dictionaries(TEXTS, st.none() | of[1], max_size=3).map(lambda d: [*d.items()]),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(struct_of),
    )


KINDS = st.recursive(st.sampled_from(PLAIN), nested, max_leaves=4)


@given(KINDS.flatmap(lambda of: of_kind(*of)))
@example((pa.float64(), [-0.0, None, float("nan")]))
@example((pa.list_(pa.struct([("a", pa.float64())])), [[{"a": -0.0}], None, [{}, None]]))
def test_an_array_of_buffers_is_the_one_that_pyarrow_makes(
    drawn: tuple[pa.DataType, list[Any]],
) -> None:
    kind, values = drawn
    built, made = arrays._built(values, kind), pa.array(values, kind)
    built.validate(full=True)
    assert built.type == kind
    assert built.null_count == made.null_count
    assert str(built.to_pylist()) == str(made.to_pylist())
    same = pa.concat_arrays([built, made]).slice(0, len(built)).equals(built)
    assert same or "nan" in str(made.to_pylist())  # which is equal to nothing


class NoOffset(tzinfo):
    """A zone that says nothing."""

    def __repr__(self) -> str:
        return "NoOffset()"  # in the names of tests, which all processes must agree on

    def utcoffset(self, _: datetime | None) -> None:
        return None

    @classmethod
    def of(cls, year: int) -> datetime:
        return datetime(year, 1, 1, tzinfo=cls())


NOT_PLAIN = [
    ([True], pa.int64()),
    ([1], pa.bool_()),
    ([1], pa.float64()),
    ([1.0], pa.int64()),
    ([2**63], pa.int64()),
    ([128], pa.int8()),
    (["a"], pa.binary()),
    ([b"a"], pa.string()),
    (["\ud800"], pa.string()),
    ([datetime(2020, 1, 1)], pa.date32()),  # noqa: DTZ001
    ([date(2020, 1, 1)], pa.timestamp("us")),
    ([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("us")),
    ([datetime(2020, 1, 1)], pa.timestamp("us", "UTC")),  # noqa: DTZ001
    ([datetime(2020, 1, 1)], pa.timestamp("ns")),  # noqa: DTZ001
    ([Decimal("1.5")], pa.decimal128(3, 1)),
    ([Decimal("1.55")], pa.decimal128(3, 1)),
    ([1.5], pa.float32()),
    ([7], pa.uint8()),
    ([[("a", 1)]], pa.map_(pa.string(), pa.float64())),
    ([[(None, 1)]], pa.map_(pa.string(), pa.int64())),
    ([{"a": 1}], pa.map_(pa.string(), pa.int64())),
    (["ab"], pa.list_(pa.string())),
    ([(1, 2)], pa.list_(pa.int64())),
    ([[1]], pa.struct([("a", pa.int64())])),
    ([pa.scalar(1)], pa.int64()),
    (["a"], pa.large_string()),
    ([{b"a": 1}], pa.struct([("a", pa.int64())])),
    ([NoOffset.of(2020)], pa.timestamp("us", "UTC")),
    ([NoOffset.of(2020)], pa.timestamp("us")),
]
REQUIRED = pa.struct([pa.field("a", pa.int32(), nullable=False)])


def outcome(make: Any, values: Any, kind: pa.DataType) -> Any:
    try:
        return make(values, kind)
    except Exception as exc:
        return type(exc), str(exc)


@pytest.mark.parametrize(("values", "kind"), NOT_PLAIN, ids=str)
def test_of_what_is_not_plain_pyarrow_makes_what_it_makes(
    values: list[Any], kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with pytest.raises((arrays._NotPlain, OverflowError, UnicodeEncodeError)):
        arrays._built(values, kind)
    assert outcome(array_of, values, kind) == outcome(pa.array, values, kind)
    assert outcome(scalar_of, values[0], kind) == outcome(pa.scalar, values[0], kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([{"a": 1}, None], REQUIRED),
        ([None], REQUIRED),
        ([None], pa.struct([("s", REQUIRED)])),
        ([[{"a": 1}, None]], pa.list_(REQUIRED)),
        ([[("k", {"a": 1}), ("l", None)]], pa.map_(pa.string(), REQUIRED)),
    ],
    ids=str,
)
def test_a_null_has_no_null_where_there_is_none(
    values: list[Any], kind: pa.DataType, tmp_path: Path
) -> None:
    """To Parquet's writer the values below a null count."""
    written, array = str(tmp_path / "rows.parquet"), array_of(values, kind)
    pq.write_table(pa.table({"c": array}), written)
    assert pq.ParquetFile(written).read()["c"].to_pylist() == array.to_pylist()


def test_integers_come_from_anything_that_gives_them() -> None:
    assert integers(range(3)).equals(pa.array([0, 1, 2], pa.int32()))
    assert integers((2**40, -1), pa.int64()).to_pylist() == [2**40, -1]
    assert len(integers([], pa.int64())) == 0
    with pytest.raises(OverflowError):
        integers([2**31])


def test_a_table_of_no_rows_has_the_columns() -> None:
    schema = pa.schema(
        [pa.field("a", pa.int64(), nullable=False), ("m", pa.map_("string", "int8"))]
    )
    assert empty_table(schema).equals(schema.empty_table())


@pytest.mark.parametrize("is_loaded", [True, False], ids=["pandas", "no pandas"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 101, 50_000, 50_001])
def test_any_number_of_values(count: int, is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    if is_loaded:
        monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    values = [None if n % 3 == 0 else n % 2 == 0 for n in range(count)]
    made = array_of(values, pa.bool_())
    made.validate(full=True)
    assert made.to_pylist() == values
