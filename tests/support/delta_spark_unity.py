"""delta-spark as a client of Unity Catalog: its jars hold all of one but the connector for Spark.

That connector is in no registry; `java/UCSingleCatalog.java` is as much of it as Delta asks for.
Loading, creating and committing are Delta's own code and that of Unity Catalog's client for Java.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.delta_spark import cache_folder, exclusively, installed
from support.delta_spark_s3 import compiled
from support.tools import tool

if TYPE_CHECKING:
    from support.delta_spark import DeltaSpark

CONNECTOR: Final = "UCSingleCatalog"
WRITERS: Final = Path(__file__).with_name("unity_writers.py")
"""Functions for `DeltaSparkPeer.script`."""


@tool("delta_spark_unity")
def unity_client() -> DeltaSpark:
    """`delta_spark.installed`, with what it takes to reach a server of Unity Catalog.

    Raises:
        PeerUnavailableError: delta-spark can't be installed, or a Java compiler is missing.
    """
    peer = installed()
    with exclusively(cache_folder() / "unity-client.lock"):
        jar = compiled(cache_folder() / "jars" / CONNECTOR, CONNECTOR, peer, ())
    return replace(peer, jars=(*peer.jars, jar))
