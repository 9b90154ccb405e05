"""A LogStore service on the loopback: lakelog's stores for programs on the JVM.

    with LogStoreService():
        ...  # delta-spark commits here by spark.delta.logStore.class=io.lakelog.BridgeLogStore

The other end is `io.lakelog.BridgeLogStore`, a Java class in the jar that `bridge_jar` names. The
two find each other by the endpoint file, which only its owner can read: it holds where the service
listens, and a token that each connection has to present. `frames` has the protocol.
"""

from lakelog.logstores.resolution import BRIDGE_CLASS
from lakelog.logstores.service.endpoint import default_endpoint_file
from lakelog.logstores.service.jar import bridge_jar
from lakelog.logstores.service.server import LogStoreService

__all__ = ["BRIDGE_CLASS", "LogStoreService", "bridge_jar", "default_endpoint_file"]
