"""The doctor and the first use tell storage that keeps its promise from storage that does not."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog
from lakelog.logstores import S3ConditionalLogStore, UnsafeLogStoreError
from lakelog.logstores.object_store.trust import PROBE_KEY, forget_trust
from support.doctoring import Diagnosis, doctor, doctor_text
from support.fault_proxy import FaultProxy
from support.raw_log import PROTOCOL, metadata
from support.s3_sessions import restricted
from support.servers.bad_s3 import BUCKET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.azurite import AzureEndpoint
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint

GOOD = ["put", "conditional-put", "get", "list", "latency", "exclusive-create", "clock", "delete"]


@pytest.fixture(autouse=True)
def _strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test meets its endpoints for the first time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget_trust()
    yield
    forget_trust()


def _table(bucket: str) -> str:
    return f"s3a://{bucket}/doctor-{uuid.uuid4().hex[:8]}"


def _is_healthy(diagnosis: Diagnosis) -> None:
    assert diagnosis.failed == [], diagnosis.failures
    assert diagnosis.exit_code == 0
    assert diagnosis.report["verdict"] == "no-failure-seen"
    for check in GOOD:
        assert diagnosis[check]["status"] == "fine", diagnosis[check]
    assert diagnosis.report["left_behind"] == []


def _no_secret(text: str, endpoint: S3Endpoint) -> None:
    assert endpoint.secret_key not in text
    assert endpoint.access_key not in text


# The doctor on S3


def test_on_minio_no_failure_is_seen(minio: S3Endpoint, s3_bucket: str) -> None:
    uri = _table(s3_bucket)
    diagnosis = doctor(uri, minio.conf)
    _is_healthy(diagnosis)
    race = diagnosis["exclusive-create"]["measured"]
    assert race["winners"] == {"1": 20}
    assert race["writers"] == 8
    assert race["pre_sent"] is True
    listed = minio.client().list_objects_v2(Bucket=s3_bucket, Prefix=uri.rpartition("/")[2])
    assert listed["KeyCount"] == 0, "every probe was removed"
    assert diagnosis.report["store"]["class"] == "lakelog.logstores.S3ConditionalLogStore"
    assert diagnosis.report["store"]["key"] is None
    assert diagnosis.report["commit_lock"]["kind"] == "none"
    assert diagnosis.report["capabilities"]["exclusive_create"] == "cluster"
    assert diagnosis.report["endpoint"] == f"{minio.url}/{s3_bucket}"
    settings = diagnosis.report["settings"]
    assert settings["spark.hadoop.fs.s3a.endpoint"] == minio.url
    assert settings["spark.hadoop.fs.s3a.secret.key"] == "******"
    _no_secret(json.dumps(diagnosis.report), minio)


def test_its_text_claims_what_was_seen_and_no_more(minio: S3Endpoint, s3_bucket: str) -> None:
    code, text = doctor_text(_table(s3_bucket), minio.conf, "--rounds", "3", "--writers", "4")
    assert code == 0
    assert "no failure seen in 3 races of 4 writers" in text
    assert not re.search(r"\b(un)?safe\b", text)
    for part in ("Settings in force", "What the store declares", "Findings", "Latency"):
        assert part in text
    _no_secret(text, minio)


def test_s3rver_is_found_to_ignore_the_condition(s3rver: S3Endpoint) -> None:
    diagnosis = doctor(_table(BUCKET), s3rver.conf)
    assert diagnosis.exit_code == 1
    assert diagnosis.report["verdict"] == "failed"
    assert diagnosis.failed == ["exclusive-create"]
    finding = diagnosis["exclusive-create"]
    assert "IGNORES" in finding["summary"]
    assert finding["measured"]["verdict"] == "ignored"
    assert "S3DynamoDBLogStore" in finding["remedy"]


def test_s3proxy_is_found_not_to_be_atomic(s3proxy: S3Endpoint) -> None:
    # Half of the races send what a server may look at before the last byte: they all go wrong.
    diagnosis = doctor(_table(BUCKET), s3proxy.conf)
    assert diagnosis.exit_code == 1
    assert diagnosis.failed == ["exclusive-create"]
    finding = diagnosis["exclusive-create"]
    assert "NOT ATOMIC" in finding["summary"]
    assert finding["measured"]["verdict"] == "not-atomic"
    assert finding["measured"]["failures"] >= 10
    assert "S3DynamoDBLogStore" in finding["remedy"]


def test_an_endpoint_that_answers_501_is_distinguished_from_one_that_ignores(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    with FaultProxy(minio.url) as proxy:
        proxy.arm("refuse:501:NotImplemented", b"If-None-Match", times=1000)
        diagnosis = doctor(_table(s3_bucket), {**minio.conf, **_at(proxy)})
    assert diagnosis.exit_code == 1
    assert "conditional-put" in diagnosis.failed
    assert "If-None-Match" in diagnosis["conditional-put"]["summary"]
    assert "S3DynamoDBLogStore" in diagnosis.failures


def _at(proxy: FaultProxy) -> dict[str, str]:
    return {"spark.hadoop.fs.s3a.endpoint": proxy.url}


def test_read_only_sends_no_write(minio: S3Endpoint, s3_bucket: str) -> None:
    with FaultProxy(minio.url) as proxy:
        diagnosis = doctor(_table(s3_bucket), {**minio.conf, **_at(proxy)}, "--read-only")
        methods = {line.split()[0] for line in proxy.requests}
    assert diagnosis.exit_code == 0
    assert diagnosis.report["verdict"] == "not-probed"
    assert methods <= {"GET", "HEAD"}
    assert diagnosis["clock"]["status"] == "fine"


def test_a_table_is_reported_with_its_version(minio: S3Endpoint, s3_bucket: str) -> None:
    uri = _table(s3_bucket)
    store = S3ConditionalLogStore({**minio.conf, PROBE_KEY: "never"})
    store.write(f"{uri}/_delta_log/{0:020d}.json", [json.dumps(PROTOCOL), json.dumps(metadata())])
    diagnosis = doctor(uri, minio.conf, "--rounds", "2")
    assert diagnosis.report["table_version"] == 0
    assert diagnosis["table"]["status"] == "fine"
    assert [each.name for each in store.list_from(f"{uri}/_delta_log/")] == [f"{0:020d}.json"]
    assert DeltaLog.for_table(uri, minio.conf).update().version == 0


def test_a_log_with_a_gap_is_reported(minio: S3Endpoint, s3_bucket: str) -> None:
    uri = _table(s3_bucket)
    store = S3ConditionalLogStore({**minio.conf, PROBE_KEY: "never"})
    for version in (0, 2):
        store.write(f"{uri}/_delta_log/{version:020d}.json", [json.dumps(PROTOCOL)])
    diagnosis = doctor(uri, minio.conf, "--read-only")
    assert diagnosis.exit_code == 1
    assert diagnosis.failed == ["table"]
    assert "gap" in diagnosis["table"]["summary"]


def test_credentials_that_may_not_delete_leave_probes_and_the_doctor_says_so(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    conf = restricted(minio, ["s3:PutObject", "s3:GetObject", "s3:ListBucket"])
    diagnosis = doctor(_table(s3_bucket), conf, "--rounds", "2")
    assert diagnosis["delete"]["status"] == "note"
    assert diagnosis.report["left_behind"]
    assert all(".lakelog-probe-" in key for key in diagnosis.report["left_behind"])
    assert diagnosis.failed == []


# The first commit


@pytest.mark.parametrize("server", ["s3rver", "s3proxy"])
def test_the_first_commit_on_a_bad_endpoint_is_refused_and_leaves_nothing(
    server: str, request: pytest.FixtureRequest
) -> None:
    endpoint: S3Endpoint = request.getfixturevalue(server)
    uri = _table(BUCKET)
    store = S3ConditionalLogStore(endpoint.conf)
    with pytest.raises(UnsafeLogStoreError, match=r"IGNORES|NOT ATOMIC") as refusal:
        store.write(f"{uri}/_delta_log/00000000000000000000.json", ["{}"])
    for way in ("S3DynamoDBLogStore", "spark.lakelog.unsafe.singleWriter", "endpointProbe=never"):
        assert way in str(refusal.value)
    _no_secret(str(refusal.value), endpoint)
    listed = endpoint.client().list_objects_v2(Bucket=BUCKET, Prefix=uri.rpartition("/")[2])
    assert listed.get("KeyCount", 0) == 0


def test_the_first_commit_on_minio_is_probed_and_the_next_is_one_request(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    uri = _table(s3_bucket)
    with FaultProxy(minio.url) as proxy:
        conf = {**minio.conf, **_at(proxy)}
        S3ConditionalLogStore(conf).write(f"{uri}/_delta_log/{0:020d}.json", ["{}"])
        probes = [line for line in proxy.requests if ".lakelog-probe-" in line]
        assert len([line for line in probes if line.startswith("PUT")]) == 2 + 10 * 8
        assert all(line in probes for line in proxy.requests[:-1])
        before = len(proxy.requests)
        S3ConditionalLogStore(conf).write(f"{uri}/_delta_log/{1:020d}.json", ["{}"])
        assert [line.split()[0] for line in proxy.requests[before:]] == ["PUT"]
        forget_trust()  # as another process of the same user
        S3ConditionalLogStore(conf).write(f"{uri}/_delta_log/{2:020d}.json", ["{}"])
        assert [line.split()[0] for line in proxy.requests[before:]] == ["PUT", "PUT"]


# The doctor on the other storages


def test_on_azurite_no_failure_is_seen(azurite: AzureEndpoint) -> None:
    container = f"doctor-{uuid.uuid4().hex[:8]}"
    azurite.client().create_container(container)
    uri = f"abfss://{container}@{azurite.account}.dfs.core.windows.net/t"
    _is_healthy(doctor(uri, azurite.conf, "--rounds", "5"))
    leased = {"spark.delta.logStore.abfss.impl": "lakelog.logstores.AzureLeaseLogStore"}
    diagnosis = doctor(uri, {**azurite.conf, **leased}, "--rounds", "5")
    _is_healthy(diagnosis)
    assert diagnosis["conditional-create"]["measured"]["verdict"] == "no-failure-seen"


def test_on_gcs_no_failure_is_seen(fake_gcs: GCSEndpoint, gcs_bucket: str) -> None:
    _is_healthy(doctor(f"gs://{gcs_bucket}/doctor-{uuid.uuid4().hex[:8]}", fake_gcs.conf))


def test_on_hdfs_no_failure_is_seen(hdfs: HdfsCluster) -> None:
    uri = f"{hdfs.uri}/lakelog-test/doctor-{uuid.uuid4().hex[:8]}"
    diagnosis = doctor(uri, hdfs.conf, "--rounds", "5")
    _is_healthy(diagnosis)
    assert diagnosis["connection"]["status"] == "fine"
    assert diagnosis.report["endpoint"] == hdfs.uri


@pytest.mark.one_day_in(3, 1)
def test_on_dynamodb_the_lock_table_is_looked_at_and_left_without_rows(
    minio: S3Endpoint, s3_bucket: str, dynamodb: DynamoDBEndpoint
) -> None:
    for _ in range(2):
        looked = doctor(_table(s3_bucket), _locked(minio, dynamodb), "--read-only")
        assert looked["lock-table"]["status"] == "note", "reading only makes no table"
    _is_healthy(doctor(_table(s3_bucket), _locked(minio, dynamodb), "--rounds", "2"))
    diagnosis = doctor(_table(s3_bucket), _locked(minio, dynamodb), "--rounds", "5")
    _is_healthy(diagnosis)
    assert diagnosis["lock-table"]["status"] == "fine"
    assert diagnosis["lock-table-ttl"]["measured"] == {"attribute": "expireTime"}
    assert diagnosis["conditional-create"]["status"] == "fine"
    assert _rows(dynamodb) == []


def test_with_dynamodb_a_bad_endpoint_is_fit_and_its_missing_fence_is_noted(
    s3rver: S3Endpoint, dynamodb: DynamoDBEndpoint
) -> None:
    diagnosis = doctor(_table(BUCKET), _locked(s3rver, dynamodb), "--rounds", "5")
    assert diagnosis.exit_code == 0, diagnosis.failures
    assert diagnosis["exclusive-create"]["status"] == "fine"
    assert diagnosis["conditional-create"]["status"] == "note"
    assert "IGNORES" in diagnosis["conditional-create"]["summary"]


TABLE = f"doctor-{uuid.uuid4().hex[:8]}"


def _locked(endpoint: S3Endpoint, dynamodb: DynamoDBEndpoint) -> dict[str, str]:
    return {
        **endpoint.conf,
        **dynamodb.conf(TABLE),
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        "spark.lakelog.s3dynamodb.createTable": "true",
    }


def _rows(dynamodb: DynamoDBEndpoint) -> list[Any]:
    from boto3.session import Session

    client = Session().client(
        "dynamodb",
        endpoint_url=dynamodb.url,
        region_name=dynamodb.region,
        aws_access_key_id=dynamodb.access_key,
        aws_secret_access_key=dynamodb.secret_key,
    )
    return list(client.scan(TableName=TABLE)["Items"])
