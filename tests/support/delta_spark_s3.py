"""delta-spark on S3 with a lock table in DynamoDB: the jars beside those of `delta_spark`.

Hadoop's S3A names an AWS SDK of 600 MB as its dependency; it gets the modules that it uses, 17 MB
in all. Delta's own `S3DynamoDBLogStore` comes in a jar that not every mirror of Maven Central has.
Where it is to be had, it runs; else `java/LockTableLogStore.java`, which follows the same protocol.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from support.delta_spark import (
    DELTA,
    PeerUnavailableError,
    cache_folder,
    copied_jars,
    exclusively,
    installed,
    run,
)
from support.tools import tool

if TYPE_CHECKING:
    from support.delta_spark import DeltaSpark

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
SDK_1 = "1.12.721"
"""The older SDK, which Delta's store is built with; this one comes with DynamoDB Local too."""
DELTA_STORE_JARS = (
    f"io.delta:delta-storage-s3-dynamodb:{DELTA}",
    f"com.amazonaws:aws-java-sdk-core:{SDK_1}",
    f"com.amazonaws:aws-java-sdk-dynamodb:{SDK_1}",
    f"com.amazonaws:jmespath-java:{SDK_1}",
)
"""What else the SDK needs, Spark has."""
_SOURCES = Path(__file__).with_name("java")


@dataclass(frozen=True, slots=True)
class LockTablePeer:
    """A delta-spark that commits on S3 with a lock table.

    Attributes:
        peer: Where it stands.
        store: The class for `spark.delta.logStore.s3a.impl`.
        by_delta: Whether that is Delta's own, or the one that follows it.
    """

    peer: DeltaSpark
    store: str
    by_delta: bool


@tool("delta_spark_s3")
def installed_with_s3() -> LockTablePeer:
    """`delta_spark.installed`, with what it takes to commit on S3.

    Which store it has is printed.

    Raises:
        PeerUnavailableError: Java, a Java compiler or Maven is missing, or a download failed.
    """
    base, jars = installed(), s3a_jars()
    cache = cache_folder() / "jars"
    with exclusively(cache_folder() / "lock-table.lock"):
        try:
            own = copied_jars(
                cache / f"lock-table-{DELTA}-{len(DELTA_STORE_JARS)}", DELTA_STORE_JARS
            )
        except PeerUnavailableError as exc:
            own = ()
            print(f"without Delta's S3DynamoDBLogStore, LockTableLogStore takes its place: {exc}")
        name = "DeltaLockTableStore" if own else "LockTableLogStore"
        jars += own
        store = compiled(cache / name, name, base, jars)
    if own:
        print(f"Delta's own S3DynamoDBLogStore {DELTA} runs")
    return LockTablePeer(
        replace(base, jars=(*base.jars, *jars, store)), f"lakelog.tests.{name}", bool(own)
    )


@tool("s3a")
def s3a_jars() -> tuple[Path, ...]:
    """What a Spark with Hadoop 3.5 needs to open `s3a://`.

    Raises:
        PeerUnavailableError: Maven is missing, or a download failed.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with exclusively(cache / "s3a.lock"):
        return copied_jars(cache / "jars" / f"s3a-{HADOOP}-{SDK}-{len(JARS)}", JARS)


def compiled(folder: Path, name: str, base: DeltaSpark, jars: tuple[Path, ...]) -> Path:
    """A jar of one of the tests' own classes, for that delta-spark and some more jars.

    Raises:
        PeerUnavailableError: a Java compiler is missing, or it failed.
    """
    source, target = _SOURCES / f"{name}.java", folder / "store.jar"
    if target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
        return target
    for program in ("javac", "jar"):
        if shutil.which(program) is None:
            raise PeerUnavailableError(
                f"no `{program}` on the PATH; the tests compile a Java class"
            )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (spark,) = (base.python.parents[1] / "lib").glob("python*/site-packages/pyspark/jars")
    classpath = os.pathsep.join(map(str, (*base.jars, *jars, spark / "*")))
    classes = folder / "classes"
    run(["javac", "-nowarn", "-cp", classpath, "-d", str(classes), str(source)])
    run(["jar", "--create", "--file", str(target), "-C", str(classes), "."])
    return target
