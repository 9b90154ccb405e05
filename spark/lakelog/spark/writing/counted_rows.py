"""How many rows Spark wrote, to compare with those in the files that the storage has."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakelog.core.actions import AddFile

logger: logging.Logger = logging.getLogger(__name__)

_PATIENCE: Final = 60.0
"""Seconds for Spark to tell a count after the job's end; it comes with the next of its events."""


class CountedRows:
    """A DataFrame whose next job counts its rows on the way, as `DataFrame.observe` does.

    Attributes:
        frame: has the same rows; write this one.
    """

    def __init__(self, frame: DataFrame) -> None:
        """Run nothing yet.

        Args:
            frame: is not a stream.
        """
        from pyspark.sql import Observation, functions

        from lakelog.spark.session.session import is_connect

        self._count: Any
        if is_connect(frame.sparkSession):
            from pyspark.sql.connect.observation import Observation as OverConnect

            self._count = OverConnect()
        else:
            self._count = Observation()
        self.frame: DataFrame = frame.observe(
            self._count, functions.count(functions.lit(1)).alias("rows")
        )

    def check(self, adds: Sequence[AddFile], table: str) -> None:
        """Compare with the files that were found after the job.

        A file that did not arrive is in no listing; one that a task left behind which Spark then
        ran again is in it twice.

        Args:
            adds: of all files that have rows.
            table: its URI, for messages.

        Raises:
            OSError: the files have more or fewer rows than Spark wrote.
        """
        written = self._written()
        counts = [each.num_records for each in adds]
        if written is None or None in counts:
            logger.warning(
                "%s: Spark did not say how many rows it wrote, so whether all of its files have "
                "arrived was not checked.",
                table,
            )
            return
        found = sum(each or 0 for each in counts)
        if found != written:
            raise OSError(
                f"{table}: Spark wrote {written} rows, and the {len(counts)} files that the "
                f"storage has of this write hold {found}. Nothing was committed. A proxy or a "
                "gateway on the way may have answered in the storage's place: look at its log, or "
                "set spark.lakelog.write.path to arrow, which asks for each file."
            )

    def _written(self) -> int | None:
        found: list[Any] = []

        def ask() -> None:
            try:
                found.append(self._count.get["rows"])
            except Exception as exc:
                logger.debug("no count of rows", exc_info=exc)

        asking = threading.Thread(target=ask, name="lakelog-rows", daemon=True)
        asking.start()
        asking.join(_PATIENCE)
        return int(found[0]) if found else None
