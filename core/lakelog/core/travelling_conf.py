"""What of a session's conf goes to other processes and hosts with a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.conf import DELTA_PREFIX, LAKELOG_PREFIX
from lakelog.logstores._travelling import settings_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["travelling_conf"]

_OF_TABLES: Final = (
    DELTA_PREFIX,
    LAKELOG_PREFIX + "commit",
    "spark.databricks.io.skipping.",
    "spark.sql.session.timeZone",
    "spark.sql.sources.",
    "spark.sql.parquet.",
    "spark.sql.files.",
    "spark.app.id",
    "spark.app.name",
)
"""What the keys begin with that reading and writing a table look at, whatever its storage."""


def travelling_conf(
    conf: Mapping[str, str], uri: str | None = None, also: Iterable[str] = ()
) -> dict[str, str]:
    """The keys that a reader or a writer of tables needs: its own, and those of its store.

    Credentials for databases, catalogs and whatever else a session is set up for stay behind. With
    a URI, so do those for other storages.

    Args:
        conf: the session's.
        uri: the table; `None` where it is not known yet.
        also: keys that are wanted beside those, or what they begin with: those of a LogStore of
            the user's own.

    Raises:
        LogStoreConfError: the keys that choose a store contradict each other.
    """
    return settings_for(conf, uri, (*_OF_TABLES, *also))
