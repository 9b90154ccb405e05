"""Facts about a Spark session, classic or Connect: its conf, its time zone, its kind."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from pyspark.errors import PySparkException

from lakelog.core import keys
from lakelog.core.engine.tables import ENGINE_FOLDER, EngineFolder, parse_properties
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.spark.session.zones import spark_zone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_SEPARATOR, _ARROW = "\x01", " -> "
_STORAGE = ("fs.", "dfs.")
_HADOOP = "spark.hadoop."
_TIMEZONE = keys.SESSION_TZ.name
_CONF_FILE = "LAKELOG_CONF_FILE"
_folders: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
_known_servers: WeakSet[SparkSession] = WeakSet()


def is_connect(session_or_frame: SparkSession | DataFrame) -> bool:
    """Whether the object belongs to a Spark Connect session."""
    return type(session_or_frame).__module__.startswith("pyspark.sql.connect")


def session_conf(spark: SparkSession) -> dict[str, str]:
    """Every conf of the session: `spark-defaults.conf`, the builder, `spark.conf.set`.

    Asked again each time, because a session's conf may change at any time.
    """
    found = set_confs(spark)
    if _TIMEZONE not in found:
        # Unless it was set, it is the JVM's, and the conf has no entry.
        found[_TIMEZONE] = session_timezone(spark)
    found[_TIMEZONE] = spark_zone(spark, found[_TIMEZONE])
    found[ENGINE_FOLDER] = EngineFolder(partial(_folder, spark))
    return found


def set_confs(spark: SparkSession) -> dict[str, str]:
    """What `session_conf` has but for what Spark's JVM knows by itself.

    Raises:
        DeltaAnalysisError: the file of a Connect client's own settings can't be read.
    """
    if is_connect(spark):
        return {**_of_this_client(), **_conf_by_public_method(spark)}
    with contextlib.suppress(Exception):
        return _conf_in_one_call(spark)
    return dict(_conf_by_public_method(spark))


def _of_this_client() -> dict[str, str]:
    """What the client's own file has: the server hides from its clients what looks secret."""
    path = os.environ.get(_CONF_FILE)
    if not path:
        return {}
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise DeltaAnalysisError(
            f"{_CONF_FILE} names {path}, which can't be read ({type(exc).__name__}): let it name a "
            "file as spark-defaults.conf, or unset it."
        ) from None


def _folder(spark: SparkSession) -> str:
    """The folder in which the JVM was started: Spark's relative paths start there."""
    found = _folders.get(spark)
    if found is None:
        asked = "SELECT java_method('java.lang.System', 'getProperty', 'user.dir') AS folder"
        try:
            found = str(spark.sql(asked).collect()[0]["folder"]).rstrip("/")
        except PySparkException:  # a session may forbid the function
            return os.getcwd()  # noqa: PTH109  # a text, as Spark's answer is
        _folders[spark] = found
    return found


def check_server(spark: SparkSession) -> None:
    """Refuse to read through a Connect server that is not Spark, asked once a session.

    Others take the same plans and understand them otherwise, without an error: Sail 0.7 finds no
    file by `file:/x`, and gives null for the partition columns of `basePath`. `version()` is
    Spark's release, which the protocol also tells, with the revision that it was built from.

    Raises:
        UnsupportedFeatureError: the server says that it is something else.
    """
    if not is_connect(spark) or spark in _known_servers:
        return
    said = str(spark.sql("SELECT version() AS version").collect()[0]["version"])
    release, _, revision = said.partition(" ")
    if not revision or release != str(spark.version):
        raise UnsupportedFeatureError(
            f"the Spark Connect server of this session is not Apache Spark (its version() is "
            f"{said!r}), and would read Delta tables wrongly without an error. Read without it, by "
            "lakelog.core.read_arrow or scan, and pass what comes to spark.createDataFrame; or "
            "connect to Spark's own server."
        )
    _known_servers.add(spark)


def with_storage(conf: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """A conf with the storage settings that one call's options have: `fs.…` and `dfs.…`.

    Delta accepts them there too. It is also the way for a Connect client, to which Spark does not
    show the secrets of the session's conf.
    """
    merged = dict(conf)
    for key, value in options.items():
        if key.lower().startswith(_STORAGE):
            merged.pop(key, None)
            merged[_HADOOP + key] = value
    return merged


def own_storage(spark: SparkSession, conf: Mapping[str, str]) -> bool:
    """Whether a table's conf has storage settings that its session does not have."""
    given = {k: v for k, v in conf.items() if k.startswith((_HADOOP, *_STORAGE))}
    return bool(given) and not given.items() <= session_conf(spark).items()


def session_timezone(spark: SparkSession) -> str:
    """The zone in which the session shows and parses timestamps."""
    return str(spark.conf.get(_TIMEZONE))


def spark_version(spark: SparkSession) -> tuple[int, int]:
    """Major and minor version of the Spark that runs the plans."""
    major, minor = str(spark.version).split(".")[:2]
    return int(major), int(minor)


def _conf_in_one_call(spark: SparkSession) -> dict[str, str]:
    """Fetch the conf as one text: `getAll` makes three round trips to the JVM for each key.

    That is 15 ms for twenty keys, a fifth of a one-row write. The method behind it is private
    to PySpark, so the caller falls back on `getAll`.
    """
    conf: Any = spark.conf
    text = conf._jconf.getAll().mkString(_SEPARATOR)
    pairs = dict(each.split(_ARROW, 1) for each in text.split(_SEPARATOR))
    if not all(key.startswith("spark.") for key in pairs):
        raise ValueError("a value holds the separator")
    return pairs


def _conf_by_public_method(spark: SparkSession) -> dict[str, str]:
    found = spark.conf.getAll  # a property in classic sessions and in Connect's
    return found() if callable(found) else found
