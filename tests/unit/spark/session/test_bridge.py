"""`lakelog.spark.bridge`: what it sets, and the service that it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from lakelog import spark
from lakelog.logstores import resolve
from lakelog.logstores.service import BRIDGE_CLASS, bridge_jar
from support.bridge_client import ENDPOINT, ServedStore

WHERE = "spark.hadoop.lakelog.bridge.endpoint"


class Builder:
    """Keeps what it is told, as PySpark's does."""

    def __init__(self) -> None:
        self.conf: dict[str, str] = {}

    def config(self, key: str, value: str) -> Builder:
        self.conf[key] = value
        return self


def bridged(**kwargs: Any) -> dict[str, str]:
    builder = Builder()
    assert id(spark.bridge(cast("Any", builder), **kwargs)) == id(builder)
    return builder.conf


def test_it_sets_jar_class_and_endpoint_of_a_service_that_runs(tmp_path: Path) -> None:
    conf = bridged(jars=["/jars/other.jar"])
    file = conf.pop(WHERE)
    assert conf == {
        "spark.jars": f"/jars/other.jar,{bridge_jar()}",
        "spark.delta.logStore.class": BRIDGE_CLASS,
    }
    ServedStore({ENDPOINT: file}).write(str(tmp_path / "0.json"), ["x"])
    assert (tmp_path / "0.json").read_text() == "x\n"


def test_schemes_are_bridged_one_by_one() -> None:
    conf = bridged(schemes=["s3a", "file"])
    assert conf["spark.delta.logStore.s3a.impl"] == BRIDGE_CLASS
    assert conf["spark.delta.logStore.file.impl"] == BRIDGE_CLASS
    assert "spark.delta.logStore.class" not in conf


def test_sessions_of_one_conf_share_a_service_and_others_have_their_own() -> None:
    one, other = bridged(), bridged(conf={"spark.lakelog.store.retry.timeBudget": "7"})
    assert bridged()[WHERE] == one[WHERE] != other[WHERE]


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ({"spark.delta.logStore.class": "io.delta.storage.S3DynamoDBLogStore"}, "s3a://b/t"),
        ({"delta.logStore.s3a.impl": "lakelog.logstores.S3DynamoDBLogStore"}, "s3a://b/t"),
        ({"spark.delta.logStore.s3a.impl": "lakelog.logstores.S3DynamoDBLogStore"}, "/t"),
        ({"spark.delta.logStore.class": BRIDGE_CLASS}, "s3a://b/t"),
        ({}, "gs://b/t"),
    ],
)
def test_lakelog_in_the_session_takes_the_store_that_is_behind_the_bridge(
    given: dict[str, str], uri: str
) -> None:
    """Two ways to create a commit of one table would exclude nobody."""
    plain = {k: v for k, v in given.items() if v != BRIDGE_CLASS}
    assert resolve(uri, bridged(conf=given)).class_path == resolve(uri, plain).class_path


def test_the_service_and_its_files_end_with_the_process() -> None:
    script = (
        "import importlib, os, sys; module = importlib.import_module(sys.argv[1]); "
        "file = module.bridged()[module.WHERE]; assert os.path.exists(file); print(file)"
    )
    # Not all of sys.path: a Spark session in this process may have put lakelog as a zip file there.
    own, tests = Path(__file__).parent, Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": f"{own}{os.pathsep}{tests}"}
    command = [sys.executable, "-c", script, Path(__file__).stem]
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).parent.exists()
