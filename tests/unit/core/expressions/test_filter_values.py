"""Values of a condition in the forms that Python's data libraries have them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest

from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import Column, Comparison, In, Literal

if TYPE_CHECKING:
    from pathlib import Path

pc: Any = pyarrow.compute
MOMENT = datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
CLOCK = datetime(2020, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 # a wall clock
VALUES: dict[str, tuple[pa.DataType, Any, list[Any]]] = {
    "byte": (pa.int8(), 7, [np.int8(7), np.uint64(7), pa.scalar(7, pa.uint8())]),
    "long": (pa.int64(), 7, [np.int64(7), np.array(7), pa.scalar(7), pa.scalar(7, pa.int8())]),
    "double": (pa.float64(), 0.5, [np.float64(0.5), np.float32(0.5), pa.scalar(0.5, pa.float32())]),
    "float": (pa.float32(), 0.5, [np.float16(0.5), pa.scalar(0.5)]),
    "decimal": (pa.decimal128(5, 2), Decimal("1.50"), [pa.scalar(Decimal("1.5"))]),
    "text": (pa.string(), "é", [np.str_("é"), pa.scalar("é"), pa.scalar("é", pa.large_string())]),
    "dictionary": (pa.string(), "é", [pa.array(["é"]).dictionary_encode()[0]]),
    "bytes": (pa.binary(), b"a", [np.bytes_(b"a"), pa.scalar(b"a"), pa.scalar(b"a", pa.binary(1))]),
    "bool": (pa.bool_(), True, [np.bool_(True), pa.scalar(True)]),
    "date": (
        pa.date32(),
        date(2020, 1, 2),
        [np.datetime64("2020-01-02"), pa.scalar(MOMENT.date())],
    ),
    "time": (
        pa.timestamp("us", "UTC"),
        MOMENT,
        [
            np.datetime64("2020-01-02T03:04:05.000006"),
            np.datetime64("2020-01-02T03:04:05.000006", "ns"),
            pd.Timestamp(MOMENT),
            pa.scalar(MOMENT),
            pa.scalar(MOMENT, pa.timestamp("us", "America/New_York")),
        ],
    ),
    "clock": (
        pa.timestamp("us"),
        CLOCK,
        [
            np.datetime64(CLOCK),
            pd.Timestamp(CLOCK),
            pa.scalar(CLOCK),
            pa.scalar(CLOCK, pa.timestamp("ns")),
        ],
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_scalar_of_another_library_means_its_value(kind: str) -> None:
    arrow, plain, others = VALUES[kind]
    schema = from_arrow_schema(pa.schema({"c": arrow}))
    for each in others:
        for form in (
            lambda v: ("c", "=", v),
            lambda v: [[("c", "<", v)], [("c", ">=", v), ("c", "is", None)]],
            lambda v: ("c", "in", [v, v]),
            lambda v: ("c", "not in", (v,)),
            lambda v: Comparison("<=>", Column(("c",)), Literal(v)),
            lambda v: In(Column(("c",)), (Literal(v), Literal(None))),
        ):
            wanted = normalize_filter(form(plain), schema)
            assert normalize_filter(form(each), schema) == wanted, repr(each)


@pytest.mark.parametrize(
    "null", [pd.NaT, pd.NA, np.datetime64("NaT", "us"), pa.scalar(None, pa.int64())]
)
def test_a_null_of_another_library_is_null(null: Any) -> None:
    schema = from_arrow_schema(pa.schema({"c": pa.int64()}))
    for op in ("is", "is not", "<=>"):
        assert normalize_filter(("c", op, null), schema) == normalize_filter(
            ("c", op, None), schema
        )
    with pytest.raises(InvalidPredicateError, match="never true"):
        normalize_filter(("c", "=", null), schema)


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("20000-01-01", "s"),
        np.datetime64("20000-01-01"),
        np.datetime64("2020-01-01T00:00:00.000000001"),
        np.timedelta64(1, "s"),
        np.longdouble(1),
        np.array([1]),
        pa.scalar(2**62, pa.timestamp("us", "UTC")),
        pa.scalar([1]),
        pd.Timestamp("2020-01-01T00:00:00.000000001"),
    ],
)
def test_what_python_does_not_have_is_refused_in_words(value: Any) -> None:
    schema = from_arrow_schema(pa.schema({"c": pa.timestamp("us", "UTC")}))
    for given in (
        ("c", "=", value),
        ("c", "in", [value]),
        Comparison("=", Column(("c",)), Literal(value)),
    ):
        with pytest.raises(InvalidPredicateError, match=r"\bc\b"):
            normalize_filter(given, schema)


ROWS = pa.table({"p": ["a", "b", "c"], "n": [1, 2, 3]})
WAYS: list[tuple[Any, str]] = [
    ("p = 'a'", "p = 'a'"),
    (("p", "=", np.str_("a")), "p = 'a'"),
    ([[("p", "=", "a")], [("p", "in", ["a"])]], "p = 'a' OR p IN ('a')"),
    (pc.field("p") == "a", '(p == "a")'),
    (Comparison("=", Column(("p",)), Literal("a")), "p = 'a'"),
]


@pytest.mark.parametrize(("given", "text"), WAYS)
def test_replace_where_is_taken_in_every_form(tmp_path: Path, given: Any, text: str) -> None:
    table = tmp_path / "t"
    new = pa.table({"p": ["a"], "n": [9]})
    for version in range(2):
        if version:
            write_arrow(table, ROWS, mode="overwrite", partition_by=["p"])
        else:
            write_arrow(table, ROWS, partition_by=["p"], mode="append")
        write_arrow(table, new, mode="overwrite", replace_where=given)
        log = DeltaLog.for_table(table)
        assert sorted(log.update().to_arrow()["n"].to_pylist()) == [2, 3, 9]
        assert log.history(1)[0].parameters["predicate"] == text
    with pytest.raises(ConstraintViolationError, match="REPLACE_WHERE_MISMATCH"):
        write_arrow(table, ROWS, mode="overwrite", replace_where=given)


@pytest.mark.parametrize(
    "given", [5, [], "", object(), ("p",), [5], pc.field("q") == 1, pc.field("p")]
)
def test_what_is_no_condition_is_refused_before_anything_is_written(
    tmp_path: Path, given: Any
) -> None:
    for table in (tmp_path / "new", tmp_path / "t"):
        if table.name == "t":
            write_arrow(table, ROWS, partition_by=["p"], mode="append")
        with pytest.raises(DeltaAnalysisError):
            write_arrow(table, ROWS, mode="overwrite", partition_by=["p"], replace_where=given)
        assert len(list(table.glob("**/*.parquet"))) == (3 if table.name == "t" else 0)
    with pytest.raises(DeltaAnalysisError):
        delete_rows(tmp_path / "t", given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s = '\ud800'", "no text of Unicode.*position 5"),
        ("upper(s) = '\ud800' OR n = 1", "no text of Unicode.*position 12"),
        (("s", "=", "\ud800"), "column s is of type string: .*surrogates"),
        (("s", "in", ["a", "\ud800"]), "column s is of type string: .*surrogates"),
        (("n", "=", 10**5000), "a number of thousands of digits"),
        (("n", "in", [1, -(10**5000)]), "a number of thousands of digits"),
    ],
    ids=["sql", "computed", "text", "texts", "number", "numbers"],
)
def test_a_value_that_no_column_holds_is_refused_in_words(given: Any, message: str) -> None:
    schema = from_arrow_schema(pa.schema({"s": pa.string(), "n": pa.int64()}))
    with pytest.raises(InvalidPredicateError, match=message):
        normalize_filter(given, schema)


@pytest.mark.parametrize("value", ["x", 1, 1.5])
def test_a_value_is_no_condition(tmp_path: Path, value: Any) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"n": [1]}), mode="append")
    with pytest.raises(InvalidPredicateError, match="only Spark"):
        DeltaLog.for_table(uri).snapshot.to_arrow(where=Literal(value))
