"""What one run of the demo is about: folders, table, conf, and who does what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
MONTHS = "January February March April May June July August September October November December"
MONTH_NAMES = ("", *MONTHS.split())
PARTS = {1: "days 1–15", 2: "days 16–31"}
"""A month comes in two deliveries, and each is one commit."""
READER, CORRECTOR = "reader", "corrector"
DELTA_SPARK, LAKELOG_SPARK, LAKELOG_ALONE = "delta-spark", "lakelog on Spark", "lakelog alone"
"""The processes of the variant with delta-spark."""


@dataclass(frozen=True)
class Settings:
    """Handed to every process as JSON."""

    folder: str
    """Everything that the demo makes lies in here, but for a table that the user named."""
    table: str
    conf: dict[str, str] = field(default_factory=dict)
    """Of the sessions: which LogStore, and whatever was passed by `--conf`."""
    months: tuple[int, ...] = tuple(range(1, 13))
    rows_per_month: int | None = None
    correct: bool = True
    """Whether the fifth process runs."""
    deliveries: dict[str, list[int]] = field(default_factory=dict)
    """With delta-spark: process -> the numbers of what it appends, a commit each."""
    bridge_conf: dict[str, str] = field(default_factory=dict)
    """What makes delta-spark commit by lakelog's store."""
    delta_spark_conf: dict[str, str] = field(default_factory=dict)
    """The whole conf of delta-spark's session."""

    @property
    def source(self) -> Path:
        return Path(self.folder, "source")

    @property
    def events(self) -> Path:
        return Path(self.folder, "events")

    @property
    def logs(self) -> Path:
        return Path(self.folder, "logs")

    @property
    def shares(self) -> dict[str, tuple[int, ...]]:
        """Writer -> its months: twelve months are four writers with three months each."""
        writers = min(4, len(self.months))
        size, more = divmod(len(self.months), writers)
        shares, start = {}, 0
        for each in range(writers):
            end = start + size + (each < more)
            shares[f"writer {each + 1}"] = self.months[start:end]
            start = end
        return shares

    @property
    def faulty_month(self) -> int:
        """The month whose delivery is wrong: a middle one of the last writer."""
        last = list(self.shares.values())[-1]
        return last[len(last) // 2]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        values = json.loads(text)
        return cls(**values | {"months": tuple(values["months"])})


def with_delta_spark(settings: Settings, commits: int, jars: list[str], endpoint: Path) -> Settings:
    """The variant: delta-spark has half of the commits, lakelog with and without Spark the rest."""
    from lakelog.logstores.service import BRIDGE_CLASS, bridge_jar

    bridge = {
        "spark.jars": ",".join([*jars, str(bridge_jar())]),
        "spark.delta.logStore.class": BRIDGE_CLASS,
        "spark.hadoop.lakelog.bridge.endpoint": str(endpoint),
    }
    numbers = list(range(commits))
    return replace(
        settings,
        deliveries={
            DELTA_SPARK: numbers[::2],
            LAKELOG_SPARK: numbers[1::4],
            LAKELOG_ALONE: numbers[3::4],
        },
        bridge_conf={**bridge, "spark.jars": f"…,{bridge_jar()}"},
        delta_spark_conf={
            **bridge,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.snapshotPartitions": "1",
        },
    )
