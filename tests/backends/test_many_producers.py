"""Many producers for minutes: memory stays as it is, files are few, nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelog.core import DeltaLog, create_table, read_arrow

SCRIPT = Path(__file__).parents[1] / "support" / "many_producers.py"
MINUTES = float(os.environ.get("LAKELOG_MINUTES", "10"))
PROCESSES, PRODUCERS = 4, 16
_MEGABYTE = 1 << 20
_COMPACTION = 192 * _MEGABYTE
"""What the largest one may take: of sixteen files of two megabytes, in ten minutes."""
_SMALL = 70
"""Files of each process that may wait to be put together: fifteen of each size, and new ones."""


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_64_producers_for_minutes(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    create_table(table, "producer int, id bigint, text string")
    running = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), table, str(each), str(PRODUCERS), str(MINUTES)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in range(PROCESSES)
    ]
    counts: dict[int, int] = {}
    for process in running:
        text, _ = process.communicate()
        assert process.returncode == 0
        *samples, last = [json.loads(line) for line in text.splitlines()]
        counts |= {int(producer): count for producer, count in last["counts"].items()}
        memory = [each["resident"] for each in samples]
        # Between compactions it is flat; they take more, the larger the files are by then.
        half = len(memory) // 2
        early, late, peak = min(memory[1:half]), min(memory[half:]), max(memory)
        print(f"memory {early >> 20} -> {late >> 20} MB, {peak >> 20} at most,", end=" ")
        print(f"{last['compacted']} files compacted")
        assert late < 1.2 * early + 16 * _MEGABYTE, memory
        assert peak < early + _COMPACTION, memory
    snapshot = DeltaLog.for_table(table).snapshot
    sizes = snapshot.file_table["size"].to_pylist()
    print(f"{sum(counts.values())} rows, {sum(sizes) >> 20} MB in {len(sizes)} files,", end=" ")
    print(f"{snapshot.version} versions")
    assert len(counts) == PROCESSES * PRODUCERS
    assert len(sizes) <= sum(sizes) / _MEGABYTE + PROCESSES * _SMALL
    rows = read_arrow(table, columns=["producer", "id"])
    assert rows.num_rows == sum(counts.values())
    found = rows.group_by("producer").aggregate([("id", "count_distinct"), ("id", "max")])
    for row in found.to_pylist():
        count = counts[row["producer"]]
        assert (row["id_count_distinct"], row["id_max"]) == (count, count - 1)
    assert sum(rows["producer"].to_pylist()) == sum(p * count for p, count in counts.items())
