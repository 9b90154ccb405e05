"""One Spark Connect server for all tests that run over it: each of their processes is a client."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from support.servers._service import free_port, running
from support.spark_python import WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def run_connect_server(conf: Mapping[str, str]) -> Iterator[str]:
    """A server until the block ends; the URL that `SparkSession.builder.remote` takes.

    Args:
        conf: Spark confs of the server; its port and its Python are set here.

    Raises:
        ServerUnavailableError: it did not start.
    """
    import pyspark

    port = free_port()
    confs = {
        **conf,
        "spark.master": "local[2]",
        # A tenth of its work is telling what it does; of a client it says nothing by itself.
        "spark.log.level": "WARN",
        "spark.pyspark.python": WORKERS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    submit = Path(pyspark.__path__[0]) / "bin" / "spark-submit"
    argv = [str(submit), "--class", _SERVER, "--name", "lakelog-tests"]
    for key, value in confs.items():
        argv += ["--conf", f"{key}={value}"]
    env = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": WORKERS}
    with running([*argv, "spark-internal"], ready=lambda: _listens(port), env=env):
        yield f"sc://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False
