"""VACUUM, as a method of `DeltaTable`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.sql.types import StringType, StructType

from lakelog.core import DeltaConf, vacuum
from lakelog.core.keys import DELTA_PREFIX
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.answers import answer
from lakelog.spark.session.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaLog
    from lakelog.core.engine.tables import GivenProgress

_COLUMNS = ("path", "length", "isDir", "modificationTime")


class Vacuum:
    """VACUUM, as a method of `DeltaTable`."""

    _spark: SparkSession
    _log: DeltaLog

    def vacuum(
        self,
        retentionHours: float | None = None,  # noqa: N803  # delta-spark's name
        *,
        dryRun: bool = False,  # noqa: N803  # as its neighbours
        mode: str = "FULL",
        inventory: DataFrame | None = None,
        progress: GivenProgress = None,
    ) -> DataFrame:
        """Delete the files in the table's folder that no version within the retention needs.

        `lakelog.core.vacuum` says which. The driver lists and deletes, on threads of its own.

        Args:
            retentionHours: how long files stay after they were taken out of the table; `None`
                for `delta.deletedFileRetentionDuration`, a week where it is not set. Less than
                that needs `spark.databricks.delta.retentionDurationCheck.enabled=false`.
            dryRun: only find what would go, as `VACUUM … DRY RUN`.
            mode: `FULL`, or `LITE`: by the log alone, as `VACUUM … LITE`.
            inventory: a list of the folder's files, instead of listing it, as
                `VACUUM … USING INVENTORY`: columns `path`, `length`, `isDir`, `modificationTime`.
            progress: called now and then with how far it is, or `auto` for a bar; see
                `lakelog.core.vacuum`.

        Returns:
            As in delta-spark: an empty DataFrame; as a dry run the paths that would go, in the
            column `path`.

        Raises:
            DeltaAnalysisError: the retention is too short, the inventory unusable, or the log no
                longer has what `LITE` needs.
            OSError: some files could not be deleted; lists them.
        """
        done = vacuum(
            self._log_of_now(),
            retentionHours,
            dry_run=dryRun,
            mode=mode,
            inventory=None if inventory is None else _collected(inventory),
            progress=progress,
        )
        if not dryRun:
            return answer(self._spark, StructType(), [], done._repr_html_)
        paths = [(unquote(path),) for path in done.files["path"].to_pylist()]
        return answer(self._spark, StructType().add("path", StringType()), paths, done._repr_html_)

    def _log_of_now(self) -> DeltaLog:
        """The log, with what the session's conf says of Delta by now.

        A script that vacuums often sets a conf between opening the table and this call.
        """
        now = session_conf(self._spark)
        own = {k: v for k, v in self._log.conf.items() if not k.startswith(DELTA_PREFIX)}
        conf = DeltaConf({**own, **{k: v for k, v in now.items() if k.startswith(DELTA_PREFIX)}})
        if dict(conf) == dict(self._log.conf):
            return self._log
        return session_log(self._spark, self._log.table, conf)


def _collected(inventory: DataFrame) -> Any:
    names = [each for each in inventory.columns if each in _COLUMNS]
    return inventory.select(*(f"`{name}`" for name in names)).toArrow()
