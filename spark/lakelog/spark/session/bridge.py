"""`bridge`: delta-spark's own commands, committing by lakelog's stores."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.service import BRIDGE_CLASS, LogStoreService, bridge_jar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_CHOICE: Final = re.compile(r"(?:spark\.)?delta\.logStore\.(?:class|([^.]+)\.impl)")

_lock = threading.Lock()
_services: dict[frozenset[tuple[str, str]], LogStoreService] = {}
_owner = os.getpid()


def bridge(
    builder: SparkSession.Builder,
    *,
    conf: Mapping[str, str] | None = None,
    schemes: Sequence[str] | None = None,
    jars: Sequence[str] = (),
) -> SparkSession.Builder:
    """Let a session with delta-spark commit by lakelog's stores; run their service in this process.

        builder = SparkSession.builder.config("spark.sql.extensions", "io.delta.sql…")
        spark = lakelog.spark.bridge(builder).getOrCreate()

    Sets `spark.jars`, Delta's keys for the log store, and where the service is. delta-spark itself,
    and Hadoop's connector for the storage, come from the caller. The session's own settings of
    storages (`spark.hadoop.fs.s3a.…`) hold for the stores too. The service ends with the process;
    sessions of one conf share one.

    Args:
        builder: of a classic session that has not begun; Spark reads these settings at the start.
        conf: more settings for the stores alone, which win over the session's. Delta's keys in it
            (`spark.delta.logStore.class`, `….<scheme>.impl`) say which store is behind the bridge.
        schemes: those whose logs go by the bridge; all, if not given.
        jars: other jars for `spark.jars`, which holds one value.

    Returns:
        The builder.

    Raises:
        FileNotFoundError: lakelog is installed in a way that a JVM can't read its jar.
        OSError: the service can't listen.
    """
    found = {key: value for key, value in (conf or {}).items() if not _CHOICE.fullmatch(key)}
    behind = _behind(conf or {})
    service = _service({**found, **behind})
    builder = builder.config("spark.jars", ",".join([*jars, str(bridge_jar())]))
    if schemes is None:
        builder = builder.config("spark.delta.logStore.class", BRIDGE_CLASS)
    for scheme in schemes or ():
        builder = builder.config(f"spark.delta.logStore.{scheme}.impl", BRIDGE_CLASS)
    # For lakelog's own commands in the session, so that they and delta-spark's exclude each other.
    for key, value in behind.items():
        builder = builder.config(key, value)
    return builder.config("spark.hadoop.lakelog.bridge.endpoint", str(service.endpoint_file))


def _behind(conf: Mapping[str, str]) -> dict[str, str]:
    """What a conf says of stores, as what is behind the bridge."""
    found = {}
    for key, value in conf.items():
        match = _CHOICE.fullmatch(key)
        if match and value.strip() != BRIDGE_CLASS:
            name = keys.BRIDGE_STORE.name
            found[f"{name}.{match[1]}" if match[1] else name] = value
    return found


def _service(conf: Mapping[str, str]) -> LogStoreService:
    global _owner
    key = frozenset(conf.items())
    with _lock:
        if (
            _owner != os.getpid()
        ):  # a fork has the memory of the services, and none of their threads
            _services.clear()
            _owner = os.getpid()
        if key not in _services:
            folder = Path(tempfile.mkdtemp(prefix="lakelog-bridge-"))
            service = LogStoreService(conf, endpoint_file=folder / "endpoint")
            atexit.register(_end, service, folder, os.getpid())
            _services[key] = service
        return _services[key]


def _end(service: LogStoreService, folder: Path, owner: int) -> None:
    if owner == os.getpid():
        service.stop()
        with contextlib.suppress(OSError):
            folder.rmdir()  # the service has removed its file
