"""`lakelog conformance` on a real object store: it passes, and leaves the bucket as it was."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from click.testing import CliRunner

from lakelog.core.cli._app import app
from lakelog.logstores import log_store_for

if TYPE_CHECKING:
    from support.servers.minio import S3Endpoint


def test_it_runs_on_s3_by_conf_alone_and_takes_its_files_away(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    uri = f"s3a://{s3_bucket}/{uuid.uuid4().hex}"
    store = log_store_for(uri, minio.conf)
    store.write(f"{uri}/table.json", ["stays"])
    args = [part for pair in minio.conf.items() for part in ("--conf", "=".join(pair))]
    result = CliRunner().invoke(app, ["conformance", uri, *args, "--quick", "--json"])
    told = json.loads(result.stdout)
    assert [each for each in told["results"] if not each["ok"]] == []
    assert result.exit_code == 0
    assert told["left"] is None
    assert told["store"] == "lakelog.logstores.s3.S3ConditionalLogStore"
    assert [status.name for status in store.list_from(uri + "/")] == ["table.json"]
    assert minio.secret_key not in result.output


def test_an_endpoint_that_is_down_is_one_error(s3_bucket: str) -> None:
    conf = {
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9",
        "spark.hadoop.fs.s3a.access.key": "somebody",
        "spark.hadoop.fs.s3a.secret.key": "hidden-from-all",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.lakelog.store.retry.timeBudget": "1",
        "spark.lakelog.store.request.timeout": "1",
    }
    args = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
    result = CliRunner().invoke(app, ["conformance", f"s3a://{s3_bucket}/x", *args, "--quick"])
    assert result.exit_code == 2
    assert "FAIL" not in result.output
    assert "127.0.0.1:9" in result.stderr
    assert "hidden-from-all" not in result.output
