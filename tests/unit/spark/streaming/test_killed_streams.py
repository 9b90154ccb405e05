"""Whether the test that kills streams would see a row that is lost, or comes twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core import write_arrow
from support.killed_streams.lives import Report, _judge
from support.killed_streams.queries import SHAPES

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [(0, 0, 5), (1, 1, 7), (2, 0, 1), (1, 1, 7)]
RIGHT = {
    "copy": {"id": [0, 1, 2, 1], "k": [0, 1, 0, 1], "n": [10, 14, 2, 14]},
    "distinct": {"id": [0, 1, 2], "k": [0, 1, 0]},
    "totals": {"k": [0, 1], "n": [6, 14]},
    "upserts": {"k": [0, 1], "n": [6, 14]},
}


def _wrong(path: Path, shape: str, rows: pa.Table) -> list[str]:
    write_arrow(path, rows, mode="overwrite")
    report = Report(0)
    _judge(report, shape, str(path), ROWS, {})
    return report.wrong


def test_what_is_lost_or_comes_twice_is_seen(tmp_path: Path) -> None:
    assert set(RIGHT) == set(SHAPES)
    for shape, columns in RIGHT.items():
        rows = pa.table(columns)
        assert _wrong(tmp_path / shape, shape, rows) == []
        (lost,) = _wrong(tmp_path / shape, shape, rows.slice(1))
        assert lost.startswith(f"{shape}: 1 lost")
        (twice,) = _wrong(tmp_path / shape, shape, pa.concat_tables([rows, rows.slice(0, 1)]))
        assert twice.startswith(f"{shape}: 1 too many")
