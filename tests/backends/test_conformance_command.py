"""`lakelog conformance` on a real object store: it passes, and leaves the bucket as it was."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from click.testing import CliRunner

from lakelog.cli.app import app
from lakelog.logstores import log_store_for

if TYPE_CHECKING:
    from support.servers.azurite import AzureEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint


def _options(conf: dict[str, str]) -> list[str]:
    return [part for pair in conf.items() for part in ("--conf", "=".join(pair))]


def _leaves_nothing(uri: str, conf: dict[str, str]) -> None:
    """One check by the command, beside a file that was there."""
    store = log_store_for(uri, conf)
    store.create_folder(uri)
    store.write(f"{uri}/table.json", ["stays"])
    only = ("--only", "a_staged_file_is_published_whole_at_the_end")
    result = CliRunner().invoke(app, ["conformance", uri, *_options(conf), *only])
    assert result.exit_code == 0, result.output
    assert "1 kept, 0 not declared, 0 broken" in result.stdout
    assert "left in" not in result.output
    assert [status.name for status in store.list_from(uri + "/")] == ["table.json"]


ONLY = (
    "a_taken_name_is_refused_and_kept",
    "of_racing_processes_exactly_one_wins",
    "a_writer_that_is_killed_leaves_all_or_nothing",
    "no_error_shows_a_secret",
)
"""Of those that `conformance/test_s3.py` makes all: with other processes, and with secrets."""


def test_it_runs_on_s3_by_conf_alone_and_takes_its_files_away(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    uri = f"s3a://{s3_bucket}/{uuid.uuid4().hex}"
    store = log_store_for(uri, minio.conf)
    store.write(f"{uri}/table.json", ["stays"])
    args = ["conformance", uri, *_options(minio.conf), "--quick", "--json"]
    args += [part for name in ONLY for part in ("--only", name)]
    result = CliRunner().invoke(app, args)
    report = json.loads(result.stdout)
    assert {each["check"]: each["ok"] for each in report["results"]} == dict.fromkeys(ONLY, True)
    assert result.exit_code == 0
    assert report["left"] is None
    assert report["store"] == "lakelog.logstores.S3ConditionalLogStore"
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
    args = ["conformance", f"s3a://{s3_bucket}/x", *_options(conf), "--quick"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 2
    assert "FAIL" not in result.output
    assert "127.0.0.1:9" in result.stderr
    assert "hidden-from-all" not in result.output


def test_it_takes_its_files_away_from_google_cloud_storage(
    fake_gcs: GCSEndpoint, gcs_bucket: str
) -> None:
    _leaves_nothing(f"gs://{gcs_bucket}/{uuid.uuid4().hex}", fake_gcs.conf)


def test_it_takes_its_files_away_from_azure(azurite: AzureEndpoint) -> None:
    name = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as service:
        service.create_container(name)
        _leaves_nothing(f"az://{name}/tables", azurite.conf)
        service.delete_container(name)


def test_it_takes_its_files_away_from_hdfs(hdfs: HdfsCluster) -> None:
    _leaves_nothing(f"{hdfs.uri}/lakelog-test/{uuid.uuid4()}", dict(hdfs.conf))
