"""A Hive metastore of its own, from the jars of delta-spark's PySpark, on an embedded Derby."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from support.servers._service import free_port, need_program, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.delta_spark import DeltaSpark

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
# Its own way of logging needs a jar that PySpark does not have.
_NO_ASYNC_LOG = "-Dhive.async.log.enabled=false"
_JAVA = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", _NO_ASYNC_LOG)


@contextlib.contextmanager
def running_metastore(peer: DeltaSpark, folder: Path) -> Iterator[dict[str, str]]:
    """Run a metastore, and give the confs of sessions that use it.

    Args:
        peer: whose PySpark has the jars.
        folder: for the database and for managed tables.

    Raises:
        ServerUnavailableError: it does not start.
    """
    port = free_port()
    (jars,) = peer.python.parents[1].glob("lib/python*/site-packages/pyspark/jars")
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/meta;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
    }
    command = [need_program("java", "a Hive metastore"), *_JAVA, "-cp", f"{jars}/*", _MAIN]
    command += ["-p", str(port)]
    for key, value in settings.items():
        command += ["--hiveconf", f"{key}={value}"]
    with running(command, ready=lambda: _listens(port), cwd=folder):
        yield {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": f"thrift://127.0.0.1:{port}",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
