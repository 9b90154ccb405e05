"""delta-spark on Azurite: Hadoop's ABFS connector, which since 3.5 speaks to the blob service too.

Azurite has no other: what ABFS asks of the hierarchical service it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from support.delta_spark import cache_folder, copied_jars, exclusively
from support.delta_spark_s3 import HADOOP
from support.tools import tool

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.azurite import AzureEndpoint

JARS = (
    f"org.apache.hadoop:hadoop-azure:{HADOOP}",
    "org.wildfly.openssl:wildfly-openssl:2.1.4.Final",
)
"""What else it needs, Spark has."""


@tool("abfs")
def abfs_jars() -> tuple[Path, ...]:
    """What a Spark with Hadoop 3.5 needs to open `abfs://`.

    Raises:
        PeerUnavailableError: Maven is missing, or a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "abfs.lock"):
        return copied_jars(cache / "jars" / f"abfs-{HADOOP}", JARS)


def abfs_root(azurite: AzureEndpoint, container: str) -> str:
    """A container as ABFS names it. By the other name, that of blobs, it misses the account."""
    return f"abfs://{container}@{azurite.account}.dfs.core.windows.net"


def abfs_conf(azurite: AzureEndpoint) -> dict[str, str]:
    """What leads ABFS to an Azurite."""
    account = f"{azurite.account}.dfs.core.windows.net"
    settings = {
        "abfs.endpoint": urlsplit(azurite.url).netloc,
        "account.hns.enabled": "false",
        "fns.account.service.type": "BLOB",
        "account.auth.type": "SharedKey",
        f"account.key.{account}": azurite.key,
        "always.use.https": "false",
        # The other one wants a library for TLS, TLS or not.
        "networking.library": "JDK_HTTP_URL_CONNECTION",
        # Sent as a JVM ends; it waits for minutes if the server has ended before.
        "metrics.collection.enabled": "false",
    }
    return {f"spark.hadoop.fs.azure.{key}": value for key, value in settings.items()}
