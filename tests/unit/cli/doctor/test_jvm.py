"""`lakelog doctor --jvm`: what delta-spark takes, and whether two drivers may use it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.service import LogStoreService
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

CLASS = "spark.delta.logStore.class"
S3A = "spark.delta.logStore.s3a.impl"
BRIDGE = "io.lakelog.BridgeLogStore"
SINGLE = "io.delta.storage.S3SingleDriverLogStore"


@pytest.mark.parametrize(
    ("uri", "conf", "name", "status"),
    [
        ("s3a://b/t", {}, SINGLE, "failed"),
        ("s3://b/t", {"delta.logStore.s3.impl": SINGLE}, SINGLE, "failed"),
        ("/t", {}, "io.delta.storage.HDFSLogStore", "failed"),
        ("gopher://b/t", {}, "io.delta.storage.HDFSLogStore", "failed"),
        ("hdfs://n/t", {}, "io.delta.storage.HDFSLogStore", "fine"),
        ("gs://b/t", {}, "io.delta.storage.GCSLogStore", "fine"),
        ("abfss://c@a/t", {S3A: BRIDGE}, "io.delta.storage.AzureLogStore", "fine"),
        ("gs://b/t", {CLASS: SINGLE}, SINGLE, "failed"),
        (
            "s3a://b/t",
            {S3A: "io.delta.storage.S3DynamoDBLogStore"},
            "io.delta.storage.S3DynamoDBLogStore",
            "fine",
        ),
        ("s3a://b/t", {CLASS: "com.acme.Store"}, "com.acme.Store", "note"),
        ("s3a://b/t", {CLASS: "io.delta.storage.DelegatingLogStore"}, SINGLE, "failed"),
    ],
)
def test_it_follows_delta_s_rules(uri: str, conf: dict[str, str], name: str, status: str) -> None:
    code = 1 if status == "failed" else 0
    found = lakelog_json("doctor", "--jvm", uri, "--json", conf=conf, code=code)
    assert (found["class"], found["status"]) == (name, status)
    assert (found["remedy"] is None) == (status != "failed")


def test_behind_the_bridge_it_says_which_store_and_whether_the_service_is_there(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bridge"
    conf = {CLASS: BRIDGE, "spark.hadoop.lakelog.bridge.endpoint": str(file)}
    found = lakelog_json("doctor", "--jvm", "s3a://b/t", "--json", conf=conf)
    assert found["behind"] == "lakelog.logstores.S3ConditionalLogStore"
    assert found["excludes"] == "every writer that can reach the storage"
    assert "no service runs now" in found["summary"]
    with LogStoreService(endpoint_file=file):
        found = lakelog_json("doctor", "--jvm", str(tmp_path), "--json", conf=conf)
        assert (found["status"], found["excludes"]) == ("fine", "the processes of one host")


def test_people_read_what_to_do(tmp_path: Path) -> None:
    found = lakelog("doctor", "--jvm", "s3a://b/t")
    assert found.code == 1
    assert "Delta's default for the scheme 's3a'" in found.out
    assert f"{S3A}={BRIDGE}" in found.out


def test_keys_that_contradict_each_other_are_reported() -> None:
    found = lakelog("doctor", "--jvm", "/t", conf={CLASS: BRIDGE, S3A: BRIDGE})
    assert found.code == 2
    assert "DELTA_INVALID_LOGSTORE_CONF" in found.err
