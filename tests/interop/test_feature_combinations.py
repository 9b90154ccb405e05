"""Tables that use several features at once hold the same rows for us, a model and the peers."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, lit, table_changes, update_rows, write_arrow
from lakelog.core.alter import change_column, rename_column
from lakelog.core.schema import PrimitiveType
from support.examples import seeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.delta_spark_peer import DeltaSparkPeer

SWITCHES: dict[str, dict[str, str]] = {
    "name": {"delta.columnMapping.mode": "name"},
    "id": {"delta.columnMapping.mode": "id"},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "changes": {"delta.enableChangeDataFeed": "true"},
    "times": {"delta.enableInCommitTimestamps": "true"},
    "row-ids": {"delta.enableRowTracking": "true"},
    "wide": {"delta.enableTypeWidening": "true"},
    "v2": {"delta.checkpointPolicy": "v2"},
    "check": {"delta.constraints.positive": "id >= 0"},
}


@dataclass
class Story:
    """One table, and what its rows should be."""

    path: str
    switches: list[str]
    partitioned: bool
    chance: random.Random
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    text: str = "text"
    wide: bool = False

    @classmethod
    def drawn(cls, seed: int, path: str) -> Story:
        chance = random.Random(seed)
        names = [name for name in SWITCHES if chance.random() < 0.5]
        if "name" in names and "id" in names:
            names.remove(chance.choice(["name", "id"]))
        return cls(path, names, chance.random() < 0.5, chance)

    def fresh(self, start: int, count: int) -> pa.Table:
        ids = range(start, start + count)
        number = pa.int64() if self.wide else pa.int32()
        top = 2**40 if self.wide else 100
        columns = {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([self.chance.choice([0, 1, 2, None]) for _ in ids], pa.int32()),
            "n": pa.array([self.chance.choice([i, None, top]) for i in ids], number),
            self.text: pa.array([self.chance.choice([f"t{i}", "ü/=%", None]) for i in ids]),
            "s": pa.array(
                [{"a": i, "b": [f"{i}", None]} for i in ids],
                pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
            ),
        }
        return pa.table(columns)

    def create(self) -> None:
        rows = self.fresh(0, 40)
        properties = {k: v for name in self.switches for k, v in SWITCHES[name].items()}
        partition_by = ["p"] if self.partitioned else None
        write_arrow(
            self.path, rows, partition_by=partition_by, properties=properties, mode="append"
        )
        self.rows = {row["id"]: row for row in rows.to_pylist()}
        self.events = [f"{self.switches}, partitioned: {self.partitioned}", "create"]

    def steps(self) -> list[Callable[[], None]]:
        always = [self.append, self.delete, self.update, self.checkpoint]
        if self.partitioned:
            always.append(self.replace_partition)
        if {"name", "id"} & set(self.switches):
            always.append(self.rename)
        if "wide" in self.switches:
            always.append(self.widen)
        return always

    def append(self) -> None:
        rows = self.fresh(max(self.rows, default=0) + 1, 10)
        write_arrow(self.path, rows, mode="append")
        self.rows.update({row["id"]: row for row in rows.to_pylist()})

    def delete(self) -> None:
        low = self.chance.randrange(0, 60)
        delete_rows(self.path, f"id >= {low} AND id < {low + 7}")
        self.rows = {i: row for i, row in self.rows.items() if not low <= i < low + 7}

    def update(self) -> None:
        low = self.chance.randrange(0, 60)
        update_rows(self.path, {self.text: lit("new")}, f"id >= {low} AND id < {low + 7}")
        for i, row in self.rows.items():
            if low <= i < low + 7:
                row[self.text] = "new"

    def replace_partition(self) -> None:
        rows = self.fresh(max(self.rows, default=0) + 1, 5)
        p = pa.array([1] * 5, pa.int32())
        rows = rows.set_column(1, "p", p)
        write_arrow(self.path, rows, mode="overwrite", replace_where="p = 1")
        self.rows = {i: row for i, row in self.rows.items() if row["p"] != 1}
        self.rows.update({row["id"]: row for row in rows.to_pylist()})

    def rename(self) -> None:
        new = f"text {self.chance.randrange(1000)}"
        rename_column(self.path, self.text, new)
        for row in self.rows.values():
            row[new] = row.pop(self.text)
        self.text = new

    def widen(self) -> None:
        if not self.wide:
            change_column(self.path, "n", data_type=PrimitiveType("long"))
            self.wide = True

    def checkpoint(self) -> None:
        DeltaLog.for_table(self.path).checkpoint()

    def run(self) -> None:
        self.create()
        for _ in range(8):
            step = self.chance.choice(self.steps())
            self.events.append(step.__name__)
            step()
            self.check(DeltaLog.for_table(self.path).snapshot.to_arrow().to_pylist())

    def check_changes(self) -> None:
        """All changes, from the first version on, add up to the rows that are there."""
        sums: Counter[str] = Counter()
        for row in table_changes(self.path, 0).read_all().to_pylist():
            kind = row.pop("_change_type")
            del row["_commit_version"], row["_commit_timestamp"]
            sums[_text(row)] += 1 if kind in ("insert", "update_postimage") else -1
        wanted = Counter(_text(row) for row in self.rows.values())
        assert {row: count for row, count in sums.items() if count} == wanted, self.events

    def check(self, found: list[dict[str, Any]]) -> None:
        wanted = sorted(self.rows.values(), key=lambda row: row["id"])
        assert sorted(found, key=lambda row: row["id"]) == wanted, " → ".join(self.events)


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


@pytest.mark.one_day_in(3)
@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(24))
def test_many_features_at_once(seed: int, tmp_path, delta_spark: DeltaSparkPeer) -> None:
    story = Story.drawn(seed, str(tmp_path / "t"))
    story.run()
    theirs = delta_spark.read(story.path)
    story.check(theirs.to_pylist())
    delta_spark.sql(f"DELETE FROM delta.`{story.path}` WHERE id % 5 = 0")
    story.rows = {i: row for i, row in story.rows.items() if i % 5}
    story.events.append("their delete")
    story.check(DeltaLog.for_table(story.path).snapshot.to_arrow().to_pylist())
    story.append()
    story.events.append("append")
    story.check(delta_spark.read(story.path).to_pylist())
    if "changes" in story.switches and not {"rename", "widen"} & set(story.events):
        story.check_changes()
