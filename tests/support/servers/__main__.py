"""Install every program that the tests need, and say how long each took."""

from __future__ import annotations

import importlib
import sys
import time

from support.tools import TOOLS

_MODULES = (
    "servers.minio",
    "servers.prometheus",
    "servers.fake_gcs",
    "servers.azurite",
    "servers.dynamodb",
    "servers.hdfs",
    "servers.bad_s3",
    "servers.redis_server",
    "servers.kafka",
    "servers.bridge_jvm",
    "delta_spark",
    "sail",
    "browser",
    "notebook",
    "spark_java",
    "delta_spark_s3",
    "delta_spark_azure",
    "delta_spark_unity",
    "unity_judges",
)


def main() -> int:
    """Install all; go on after a failure, so that one run tells of each."""
    for name in _MODULES:
        importlib.import_module(f"support.{name}")
    missing = 0
    for name, install in TOOLS.items():
        print(f"{name}: ", end="", flush=True)
        started = time.monotonic()
        try:
            install()
        except RuntimeError as error:
            missing += 1
            print(f"not available: {error}")
        else:
            print(f"ready ({time.monotonic() - started:.0f} s)")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
