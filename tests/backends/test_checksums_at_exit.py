"""A process that ends right after its commit has written the checksum, on each storage."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lakelog.core import DeltaLog
from lakelog.core.state.checksums import read_checksum
from support.backends import backend_of

SCRIPT = """
import json, sys
from lakelog.core import write_arrow
conf = json.loads(sys.argv[2])
for number in range(2):
    write_arrow(sys.argv[1], {"a": [number]}, conf=conf, mode="append")
"""


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("name", ["minio", "azurite", "fake GCS", "HDFS"])
def test_the_end_of_a_process_waits_for_its_checksums(
    name: str, request: pytest.FixtureRequest
) -> None:
    backend = backend_of(name, request)
    table = backend.uri("ended")
    conf = {**backend.conf, "spark.databricks.delta.writeChecksumFile.enabled": "true"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, table, json.dumps(conf)],
        check=True,
        timeout=100,
        capture_output=True,
        text=True,
    )
    assert "failed" not in done.stderr, done.stderr
    store = DeltaLog.for_table(table, conf).store
    found = [read_checksum(store, table, version) for version in range(2)]
    assert [each and each.num_files for each in found] == [1, 2], done.stderr
