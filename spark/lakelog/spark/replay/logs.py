"""The logs that sessions opened, kept for the next call: one for each table and conf.

A log that is known is brought up to date by a look for new commits, where one that is opened is
listed and replayed. What it gives is as fresh: `update` comes before anything is read, and looks
whether the table is still the one that is known.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from lakelog.core import DeltaLog
from lakelog.core.engine.tables import governed, log_to_make
from lakelog.core.errors import TableNotFoundError
from lakelog.spark.replay.bins import rewritten_by_spark
from lakelog.spark.replay.spark_replayer import replayer_for

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from lakelog.core import DeltaConf

MOST_LOGS: Final = 32
MOST_FILES: Final = 200_000
"""So many files may be in the memory of the logs that are kept; that used last stays anyway."""

_Key: TypeAlias = "tuple[str, tuple[str, str] | None, frozenset[tuple[str, str]]]"
"""The table's URI; what its catalog calls it and its id there, where one governs it; the conf."""

_logs: OrderedDict[tuple[int, _Key], tuple[SparkSession, DeltaLog]] = OrderedDict()
"""The session is held, so that no other one gets its `id`."""
_lock = threading.Lock()


def opened_log(
    spark: SparkSession, path: str | os.PathLike[str], conf: DeltaConf, *, makes: bool = False
) -> DeltaLog:
    """A log that is not shared, and whose large work runs on a session's executors.

    Args:
        spark: a session, classic or Connect.
        path: where the table is, or will be; or its name in a catalog.
        conf: chooses the store.
        makes: whether the table may be made, where its catalog has none of the name.

    Raises:
        LogStoreConfError: the conf does not lead to a store.
        DeltaAnalysisError: `spark.lakelog.replay` has an unknown mode, or not a number of bytes.
    """
    try:
        log = DeltaLog.for_table(path, conf, replayer=replayer_for(spark, conf))
    except TableNotFoundError:
        if not makes:
            raise
        log = log_to_make(path, conf)
    if (store := governed(log.store)) is not None:
        # Nobody else has this log yet: asking where the table is was a look at it.
        store.trust_load()
    log.run_bins = partial(rewritten_by_spark, spark)
    return log


def session_log(
    spark: SparkSession, path: str | os.PathLike[str], conf: DeltaConf, *, makes: bool = False
) -> DeltaLog:
    """The log of the table at a path, which a session may have opened before.

    Call `update`, or start a transaction, before reading anything from it.

    Args:
        spark: a session, classic or Connect.
        path: where the table is, or will be; or its name in a catalog.
        conf: the session's as it is now, with the settings of the call; another conf is another
            log.
        makes: see `opened_log`.

    Raises:
        LogStoreConfError: the conf does not lead to a store.
        DeltaAnalysisError: `spark.lakelog.replay` has an unknown mode, or not a number of bytes.
    """
    opened = opened_log(spark, path, conf, makes=makes)
    store = governed(opened.store)
    # A path to such a table is no way to its log, and a name may be given to another table.
    known = None if store is None else (str(store.table.name), store.table.table_id)
    key = id(spark), (opened.table, known, frozenset(conf.items()))
    with _lock:
        _, log = _logs.setdefault(key, (spark, opened))
        kept = governed(log.store)
        # The catalog has just said what the table is: the look that follows need not ask again.
        if store is not None and kept is not None and not kept.take_load(store):
            _, log = _logs[key] = (spark, opened)
        _logs.move_to_end(key)
        _let_go(key)
    if log is not opened:
        log.doubt()
    return log


def forget_logs(spark: SparkSession) -> None:
    """Let go of the logs of a session."""
    with _lock:
        for key in [key for key in _logs if key[0] == id(spark)]:
            del _logs[key]


def _let_go(newest: tuple[int, _Key]) -> None:
    """Drop the logs that were used longest ago until the rest are within bounds."""
    files = sum(log.held_files for _, log in _logs.values())
    for key, (_, log) in list(_logs.items()):
        if key == newest or (len(_logs) <= MOST_LOGS and files <= MOST_FILES):
            return
        files -= log.held_files
        del _logs[key]
