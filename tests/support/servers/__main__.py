"""Install every server that the tests need, and say how long each took."""

from __future__ import annotations

import importlib
import sys
import time

from support.servers._service import ServerUnavailableError

SERVERS = ("minio", "fake_gcs", "azurite", "dynamodb", "hdfs", "bad_s3", "redis_server")


def main() -> int:
    """Install all; go on after a failure, so that one run tells of each."""
    missing = 0
    for name in SERVERS:
        install = getattr(importlib.import_module(f"support.servers.{name}"), "install", None)
        if install is None:
            continue
        print(f"{name}: ", end="", flush=True)
        started = time.monotonic()
        try:
            install()
        except ServerUnavailableError as error:
            missing += 1
            print(f"not available: {error}")
        else:
            print(f"ready ({time.monotonic() - started:.0f} s)")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
