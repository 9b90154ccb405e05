"""Appends of simulated processes that let others commit them, and what was wrong in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core import Operation
from lakelog.core.errors import CommitOutcomeUnknownError
from support.tables import add_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core import DeltaLog, OptimisticTransaction
    from simulation.storage import Storage

APPEND = Operation.write("Append")


@dataclass
class Append:
    """One append of a file of this name."""

    name: str
    outcome: int | Exception | None = None
    """The version that its process heard of, or what was raised; `None` if it died before."""
    txn: OptimisticTransaction | None = None

    def commit(self, log: DeltaLog, storage: Storage) -> None:
        """Commit it; only the death of its process is raised."""
        try:
            self.txn = log.start_transaction()
            self.outcome = self.txn.commit([add_file(self.name)], APPEND)
        except Exception as exc:
            self.outcome = exc
        storage.story.append(f"{self.name} ends: {self.outcome!r}")


def complaints(storage: Storage, appends: Iterable[Append]) -> list[str]:
    """Which of them is lost, doubled, or not where its process was told."""
    said = list(storage.complaints)
    for each in appends:
        there = [
            version
            for version, lines in storage.landed.items()
            for line in lines
            if f'"path":"{each.name}"' in line
        ]
        may_be = each.txn is not None and each.txn.may_be_committed
        if len(there) > 1:
            said.append(f"{each.name} is in the versions {there}")
        elif isinstance(each.outcome, int):
            if there != [each.outcome]:
                said.append(f"{each.name} heard {each.outcome}, and is in {there}")
        elif each.outcome is None:
            pass  # it died
        elif there and not may_be:
            said.append(f"{each.name} heard {each.outcome!r}, and is in {there}")
        elif isinstance(each.outcome, CommitOutcomeUnknownError):
            if not may_be:
                said.append(f"{each.name} is in doubt, and says that it isn't")
        elif there:
            said.append(f"{each.name} failed by {each.outcome!r}, and is in {there}")
    return said
