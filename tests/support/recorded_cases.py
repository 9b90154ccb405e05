"""What delta-spark made of cases, written down: one line a case, and how missing lines are made.

It depends on the case and on delta-spark's version alone, and a JVM takes a second for each. So
lakelog is compared with what is written down, and delta-spark plays a sample again in each run.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from support.delta_spark import DELTA, installed
from support.delta_spark_peer import DeltaSparkPeer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

QUICK: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.writeChecksum.enabled": "false",
    # VACUUM makes so many tasks of its listing: 10,000 if nobody says.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}
"""They change how long a command on a few rows takes, and one or two of the metrics compared."""


@contextlib.contextmanager
def played_as_recorded(peer: DeltaSparkPeer) -> Iterator[DeltaSparkPeer]:
    """The session under the confs of the records."""
    for key, value in QUICK.items():
        peer.sql(f"SET {key}={value}")
    try:
        yield peer
    finally:
        for key in QUICK:
            peer.sql(f"RESET {key}")


class _Case(Protocol):
    @property
    def name(self) -> str: ...

    def digest(self) -> str: ...


_C = TypeVar("_C", bound=_Case)
_F = TypeVar("_F")


class RecordedCases(ABC, Generic[_C, _F]):
    """What delta-spark made of each case, by the case's name."""

    file: ClassVar[Path]
    module: ClassVar[str]
    """Run as a program, it makes the missing records."""
    field: ClassVar[str]
    """Where a line has what was found."""

    def __init__(self) -> None:
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        records = map(json.loads, lines)
        self._of: dict[str, dict[str, Any]] = {each["case"]: each for each in records}

    @abstractmethod
    def to_json(self, found: _F) -> Any:
        """What was found, as a line has it."""

    @abstractmethod
    def from_json(self, value: Any) -> _F:
        """What was found, from a line."""

    def names(self) -> set[str]:
        """Of all cases that have a record."""
        return set(self._of)

    def found(self, case: _C) -> _F:
        """What delta-spark made of the case.

        Raises:
            LookupError: it has not played the case as it is now.
        """
        record = self._of.get(case.name)
        if record is None or record["told"] != f"{DELTA} {case.digest()}":
            raise LookupError(
                f"delta-spark {DELTA} was not seen to play {case.name!r} as it is now: "
                f"cd tests && python -m {self.module}"
            )
        return self.from_json(record[self.field])

    def record(self, seen: Iterable[tuple[_C, _F]]) -> None:
        """Write these down, and forget all others."""
        lines = [
            {
                "case": case.name,
                "told": f"{DELTA} {case.digest()}",
                self.field: self.to_json(found),
            }
            for case, found in seen
        ]
        lines.sort(key=lambda line: str(line["case"]))
        text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        self.file.write_text(text, encoding="utf-8")


def record_missing(
    recorded: RecordedCases[_C, _F],
    cases: Sequence[_C],
    play: Callable[[Sequence[_C], DeltaSparkPeer, Path], Iterable[_F]],
    *,
    batch_size: int = 9,
) -> int:
    """Let delta-spark play the cases that have no record; the exit status of a program.

    Args:
        recorded: the records so far; written after each batch.
        cases: all that are to have a record.
        play: plays a batch on tables below a folder.
        batch_size: how many cases are played at once.
    """
    found: dict[str, _F] = {}
    missing = []
    for case in cases:
        try:
            found[case.name] = recorded.found(case)
        except LookupError:
            missing.append(case)
    with (
        tempfile.TemporaryDirectory() as folder,
        DeltaSparkPeer(installed(), QUICK, timeout=900) as delta_spark,
    ):
        for start in range(0, len(missing), batch_size):
            batch = missing[start : start + batch_size]
            for case, each in zip(batch, play(batch, delta_spark, Path(folder)), strict=True):
                found[case.name] = each
            recorded.record((c, found[c.name]) for c in cases if c.name in found)
            print(f"{start + len(batch)} of {len(missing)}", flush=True)
    recorded.record((case, found[case.name]) for case in cases)
    print(f"{len(cases)} cases, {len(missing)} of them played by delta-spark {DELTA} just now")
    return 0
