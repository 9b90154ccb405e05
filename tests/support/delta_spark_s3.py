"""delta-spark on S3 with a lock table in DynamoDB: the jars beside those of `delta_spark`.

Hadoop's S3A names an AWS SDK of 600 MB as its dependency; it gets the modules that it uses, 17 MB
in all. Delta's own `S3DynamoDBLogStore` comes in a jar that not every mirror of Maven Central has,
so `java/LockTableLogStore.java` follows the same protocol, compiled here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from support.delta_spark import (
    PeerUnavailableError,
    cache_folder,
    copied_jars,
    exclusively,
    installed,
    run,
)

if TYPE_CHECKING:
    from support.delta_spark import DeltaSpark

__all__ = ["LOCK_TABLE_STORE", "installed_with_s3", "s3a_jars"]

LOCK_TABLE_STORE = "lakelog.tests.LockTableLogStore"
HADOOP = "3.5.0"
"""What PySpark 4.2.0 comes with."""
SDK = "2.35.4"
"""What Hadoop 3.5.0 was built with."""
_MODULES = (
    "annotations",
    "arns",
    "auth",
    "aws-core",
    "aws-json-protocol",
    "aws-query-protocol",
    "aws-xml-protocol",
    "apache-client",
    "checksums",
    "checksums-spi",
    "crt-core",
    "dynamodb",
    "endpoints-spi",
    "http-auth",
    "http-auth-aws",
    "http-auth-aws-eventstream",
    "http-auth-spi",
    "http-client-spi",
    "identity-spi",
    "json-utils",
    "metrics-spi",
    "netty-nio-client",
    "profiles",
    "protocol-core",
    "regions",
    "retries",
    "retries-spi",
    "s3",
    "s3-transfer-manager",
    "sdk-core",
    "sts",
    "third-party-jackson-core",
    "utils",
    "utils-lite",
)
JARS = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{name}:{SDK}" for name in _MODULES),
    "software.amazon.eventstream:eventstream:1.0.1",
    # S3A's request audit names a class of it, whichever stream reads.
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)
_SOURCE = Path(__file__).with_name("java") / "LockTableLogStore.java"


def installed_with_s3() -> DeltaSpark:
    """`delta_spark.installed`, with what it takes to commit on S3.

    Raises:
        PeerUnavailableError: Java, a Java compiler or Maven is missing, or a download failed.
    """
    base, jars = installed(), s3a_jars()
    with exclusively(cache_folder() / "lock-table.lock"):
        store = _compiled(cache_folder() / "jars" / "lock-table", base, jars)
    return replace(base, jars=(*base.jars, *jars, store))


def s3a_jars() -> tuple[Path, ...]:
    """What a Spark with Hadoop 3.5 needs to open `s3a://`.

    Raises:
        PeerUnavailableError: Maven is missing, or a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "s3a.lock"):
        return copied_jars(cache / "jars" / f"s3a-{HADOOP}-{SDK}-{len(JARS)}", JARS)


def _compiled(folder: Path, base: DeltaSpark, jars: tuple[Path, ...]) -> Path:
    target = folder / "lock-table.jar"
    if target.exists() and target.stat().st_mtime >= _SOURCE.stat().st_mtime:
        return target
    for tool in ("javac", "jar"):
        if shutil.which(tool) is None:
            raise PeerUnavailableError(f"no `{tool}` on the PATH; the tests compile a Java class")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (hadoop,) = (base.python.parents[1] / "lib").glob(
        "python*/site-packages/pyspark/jars/hadoop-client-api-*.jar"
    )
    classpath = os.pathsep.join(map(str, (*base.jars, *jars, hadoop)))
    classes = folder / "classes"
    run(["javac", "-nowarn", "-cp", classpath, "-d", str(classes), str(_SOURCE)])
    run(["jar", "--create", "--file", str(target), "-C", str(classes), "."])
    return target
