"""A key that is nearly one that is read gets told; what other programs read is left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lakelog.cli.doctor.misspelt import KNOWN, misspelt

REPOSITORY = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("spark.hadoop.fs.s3a.enpoint", "spark.hadoop.fs.s3a.endpoint"),
        ("fs.s3a.acess.key", "fs.s3a.access.key"),
        ("spark.hadoop.fs.s3a.bucket.lake.secretkey", "spark.hadoop.fs.s3a.bucket.lake.secret.key"),
        ("spark.hadoop.fs.s3a.path.style.acces", "spark.hadoop.fs.s3a.path.style.access"),
        ("spark.hadoop.fs.gs.projectid", "spark.hadoop.fs.gs.project.id"),
        ("spark.lakelog.store.endpointprobe", "spark.lakelog.store.endpointProbe"),
        ("spark.lakelog.unsafe.singlewriter", "spark.lakelog.unsafe.singleWriter"),
        ("spark.hadoop.fs.defaultFs", "spark.hadoop.fs.defaultFS"),
    ],
)
def test_a_near_miss_is_reported_with_what_was_meant(key: str, meant: str) -> None:
    (finding,) = misspelt({key: "value"})
    assert finding.summary == f"nothing reads the key {key}"
    assert finding.remedy == f"Did you mean {meant}?"


def test_a_comment_behind_a_value_is_told_of_and_the_value_is_not() -> None:
    (finding,) = misspelt({"spark.hadoop.fs.s3a.secret.key": "hunter2    # mine"})
    assert "spark.hadoop.fs.s3a.secret.key contains ' #'" in finding.summary
    assert "a line of its own" in finding.remedy
    assert "hunter2" not in finding.summary + finding.remedy


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.fs.s3a.endpoint",
        "fs.s3a.bucket.my-lake.v2.endpoint",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
        "spark.hadoop.dfs.namenode.http-address.ns1.nn1",
        "spark.hadoop.fs.s3a.fast.upload",
        "spark.hadoop.fs.s3a.threads.max",
        "spark.hadoop.fs.s3a.committer.name",
        "spark.sql.shuffle.partitions",
        "spark.executor.memory",
        "spark.databricks.delta.commitLock.enabled",
    ],
)
def test_what_is_right_or_somebody_elses_is_left_alone(key: str) -> None:
    assert list(misspelt({key: "value"})) == []


def test_every_key_of_our_own_in_the_sources_is_known() -> None:
    named = set()
    for root in ("logstores", "core", "spark", "cli"):
        for path in (REPOSITORY / root).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            named |= set(
                re.findall(r"[\"'`]spark\.(lakelog\.[A-Za-z0-9.]+[A-Za-z0-9])[\"'`]", text)
            )
    unknown = {name for name in named if name not in KNOWN and "conformance" not in name}
    assert unknown == set(), "add them to KNOWN in cli/lakelog/cli/doctor/misspelt.py"
