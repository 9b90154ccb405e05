"""Every public argument that is a number, a truth or a time is read in one way."""

from __future__ import annotations

import datetime as dt
import inspect
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lakelog.core
from lakelog.core import DeltaConf, DeltaLog, Scan, create_table, read_arrow, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.arguments import read_arguments
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TIMES = "int | str | datetime"
KINDS = ("int", "float", "bool", TIMES)
CLASSES = (DeltaLog, Scan)
"""Whose methods users call with arguments of these kinds."""
WHOLE = [np.int64(3), np.int8(3), np.uint64(3), pa.scalar(3), pa.scalar(3, pa.uint8())]
NOON = dt.datetime(2024, 5, 6, 12, tzinfo=dt.UTC)
TAKEN: dict[str, tuple[Any, list[Any]]] = {
    "int": (3, WHOLE),
    "float": (3.5, [np.float32(3.5), np.float64(3.5), pa.scalar(3.5), Decimal("3.5")]),
    "bool": (True, [np.bool_(True), np.True_, pa.scalar(True)]),
    TIMES: (NOON, [pa.scalar(NOON), pd.Timestamp(NOON)]),
}
NUMBERS_OF_NONE: list[Any] = [True, np.True_, "3", float("nan"), float("inf"), [3], 1 << 1100]
REFUSED: dict[str, list[Any]] = {
    "int": [*NUMBERS_OF_NONE, 3.0, np.float64(3), Decimal(3), pa.scalar(3.0), 1 << 63, pd.NA],
    "float": [*NUMBERS_OF_NONE, np.nan, pd.NaT, 1 + 2j],
    "bool": [1, 0, "true", "", np.int64(1), pa.scalar(1), [True], pd.NA],
    TIMES: [True, 2.5, np.float64(3), b"2024", pd.NaT, np.datetime64("NaT", "us"), [NOON], 1 << 63],
}


def doors() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in lakelog.core.__all__:
        found = getattr(lakelog.core, name)
        if inspect.isfunction(found):
            yield name, found
    for each in CLASSES:
        for name, found in inspect.getmembers(each, inspect.isfunction):
            if not name.startswith("_") and name != "after_commit":
                yield f"{each.__name__}.{name}", found


ARGUMENTS = [
    pytest.param(door, argument.name, str(argument.annotation), id=f"{name}({argument.name})")
    for name, door in doors()
    for argument in inspect.signature(door).parameters.values()
    if str(argument.annotation).removesuffix(" | None") in KINDS
]


def test_the_walk_finds_them() -> None:
    assert len(ARGUMENTS) > 40


class _Reached(Exception):  # noqa: N818  # nothing is wrong
    pass


def reached(door: Callable[..., Any], argument: str, value: Any) -> Any:
    """What a door would work with, without what it does."""
    inner = inspect.unwrap(door)
    assert inner is not door, f"{door.__qualname__} takes {argument} as it comes"
    seen: dict[str, Any] = {}

    def instead(*args: Any, **given: Any) -> Any:
        seen.update(inspect.signature(inner).bind_partial(*args, **given).arguments)

    cells = dict(zip(door.__code__.co_freevars, door.__closure__ or (), strict=True))
    cell = cells["function"]
    kept = cell.cell_contents
    cell.cell_contents = instead
    try:
        door(**{argument: value})
    finally:
        cell.cell_contents = kept
    return seen[argument]


@pytest.mark.parametrize(("door", "argument", "kind"), ARGUMENTS)
def test_a_value_is_read_alike_at_every_door(
    door: Callable[..., Any], argument: str, kind: str
) -> None:
    bare = kind.removesuffix(" | None")
    plain, others = TAKEN[bare]
    for each in (plain, *others):
        found = reached(door, argument, each)
        assert found == plain
        assert type(found).__module__ in ("builtins", "datetime", "pandas._libs.tslibs.timestamps")
    for each in REFUSED[bare]:
        with pytest.raises(DeltaAnalysisError, match=argument):
            reached(door, argument, each)
    if kind != bare:
        assert reached(door, argument, None) is None
    else:
        with pytest.raises(DeltaAnalysisError, match=argument):
            reached(door, argument, None)


def test_arguments_by_position_are_read_too() -> None:
    @read_arguments
    def door(uri: str, count: int, size: int | None = None, *, first: bool = False) -> object:
        return uri, count, size, first

    assert door("t", np.int64(1), None, first=np.True_) == ("t", 1, None, True)  # type: ignore[arg-type]
    with pytest.raises(DeltaAnalysisError, match="size must be a whole number"):
        door("t", 1, True)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_arrow(path, {"id": [1]})
    write_arrow(path, {"id": [2]}, mode="append")
    return path


def test_true_is_no_version_and_a_number_of_numpy_is_one(uri: str) -> None:
    log = DeltaLog.for_table(uri)
    assert read_arrow(uri, version=np.int64(0)).num_rows == 1  # type: ignore[arg-type]
    assert log.snapshot_at(pa.scalar(0)).version == 0
    assert len(log.history(np.int32(1))) == 1  # type: ignore[arg-type]
    for odd in (True, np.True_, 1.0, "1"):
        with pytest.raises(DeltaAnalysisError, match="version must be a whole number"):
            log.snapshot_at(odd)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_of_numpy_or_arrow_is_one(unit: Any, uri: str) -> None:
    log = DeltaLog.for_table(uri)
    at = log.snapshot_at(1).timestamp + 1000
    moment = dt.datetime.fromtimestamp(at // 1000 - 1, dt.UTC).replace(tzinfo=None)
    forms = [np.datetime64(moment, unit), pa.scalar(moment, pa.timestamp(unit)), moment]
    found: set[int | str] = set()
    for each in forms:
        try:
            found.add(log.snapshot_at(timestamp=each).version)
        except DeltaAnalysisError as exc:
            found.add(str(exc))
    assert len(found) == 1


def test_settings_are_read_likewise(uri: str) -> None:
    given: Any = {"delta.appendOnly": np.True_, "mine": np.int64(7), "its": pa.scalar(8)}
    set_properties(uri, given)
    held = DeltaLog.for_table(uri).snapshot.metadata.configuration
    assert held == {"delta.appendOnly": "true", "mine": "7", "its": "8"}
    confs: Any = {"a": np.False_, "b": np.float32(0.5), "c": pa.scalar(True), "d": np.uint8(3)}
    assert dict(DeltaConf(confs)) == {"a": "false", "b": "0.5", "c": "true", "d": "3"}
    for odd in (np.array([1]), [True], object(), None):
        with pytest.raises(DeltaAnalysisError):
            DeltaConf({"a": odd})  # type: ignore[dict-item]
        with pytest.raises(DeltaAnalysisError):
            create_table(f"{uri}-new", "id int", properties={"a": odd})  # type: ignore[dict-item]
