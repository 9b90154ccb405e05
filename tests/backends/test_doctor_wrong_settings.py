"""The doctor as a new user meets it: each wrong setting leads to its cause and to its mend."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores.doctor import clock_skew as _probing_clock
from support.doctoring import Diagnosis, doctor
from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.servers.azurite import AzureEndpoint
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.fake_gcs import GCSEndpoint
    from support.servers.hdfs import HdfsCluster
    from support.servers.minio import S3Endpoint

S3A = "spark.hadoop.fs.s3a."
DYNAMO = "spark.io.delta.storage.S3DynamoDBLogStore."
FEW = ("--rounds", "2", "--writers", "3")


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "HADOOP_")) or name.lower().endswith(
            "_proxy"
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _leads_to(diagnosis: Diagnosis, cause: list[str], mend: list[str]) -> None:
    """The first finding that failed tells the cause and the mend, and there is no other."""
    assert diagnosis.exit_code == 1
    assert len(diagnosis.failed) == 1, f"one cause, told once:\n{diagnosis.failures}"
    (finding,) = [each for each in diagnosis.report["findings"] if each["status"] == "failed"]
    for part in cause:
        assert part in finding["summary"], finding
    for part in mend:
        assert part in finding["remedy"], finding
    assert diagnosis.report["left_behind"] == []


def _hides(diagnosis: Diagnosis, *secrets: str) -> None:
    text = json.dumps(diagnosis.report, ensure_ascii=False)
    assert [secret for secret in secrets if secret in text] == []


# S3

WRONG_ON_S3: list[tuple[str, dict[str, str | None], list[str], list[str]]] = [
    (
        "access key",
        {S3A + "access.key": "AKIAWRONGWRONG"},
        ["InvalidAccessKeyId", "does not know this access key"],
        ["spark.hadoop.fs.s3a.access.key"],
    ),
    (
        "secret key",
        {S3A + "secret.key": "wrong-secret-wrong"},
        ["SignatureDoesNotMatch", "the secret key does not belong"],
        ["spark.hadoop.fs.s3a.secret.key"],
    ),
    (
        "no credentials",
        {S3A + "access.key": None, S3A + "secret.key": None},
        ["no usable S3 credentials"],
        ["spark.hadoop.fs.s3a.access.key", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"],
    ),
    (
        "half a pair of keys",
        {S3A + "secret.key": None},
        ["fs.s3a.access.key is set, fs.s3a.secret.key is not"],
        ["Set both"],
    ),
    (
        "a path style that is neither true nor false",
        {S3A + "path.style.access": "yes"},
        ["path.style.access must be true or false", "'yes'"],
        ["Correct the setting"],
    ),
    (
        "two spellings with two values",
        {"fs.s3a.endpoint": "http://elsewhere:9000"},
        ["spark.hadoop.fs.s3a.endpoint and fs.s3a.endpoint have two values"],
        ["Keep one"],
    ),
    (
        "a class with a typo",
        {"spark.delta.logStore.s3a.impl": "lakelog.logstores.S3ConditonalLogStore"},
        ["spark.delta.logStore.s3a.impl", "has no S3ConditonalLogStore"],
        ["Did you mean S3ConditionalLogStore?"],
    ),
    (
        "a key with a typo",
        {"spark.delta.logStores.s3a.impl": "lakelog.logstores.S3ConditionalLogStore"},
        ["nothing reads the key spark.delta.logStores.s3a.impl"],
        ["Did you mean spark.delta.logStore.s3a.impl?"],
    ),
    (
        "a global class beside one for a scheme",
        {
            "spark.delta.logStore.class": "lakelog.logstores.S3ConditionalLogStore",
            "spark.delta.logStore.s3a.impl": "lakelog.logstores.S3ConditionalLogStore",
        },
        ["can't both be set"],
        ["Unset one"],
    ),
    (
        "an endpoint that does not resolve",
        {S3A + "endpoint": "http://minio.storage.invalid:9000"},
        ["minio.storage.invalid can't be resolved"],
        ["spark.hadoop.fs.s3a.endpoint"],
    ),
]


@pytest.mark.parametrize(
    ("changes", "cause", "mend"),
    [case[1:] for case in WRONG_ON_S3],
    ids=[case[0] for case in WRONG_ON_S3],
)
def test_wrong_on_s3(
    changes: dict[str, str | None],
    cause: list[str],
    mend: list[str],
    minio: S3Endpoint,
    s3_bucket: str,
) -> None:
    merged = {**minio.conf, **changes}
    conf = {key: value for key, value in merged.items() if value is not None}
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    _leads_to(diagnosis, cause, mend)
    _hides(diagnosis, minio.secret_key, minio.access_key, "wrong-secret-wrong", "AKIAWRONGWRONG")


def test_a_bucket_that_does_not_exist(minio: S3Endpoint) -> None:
    diagnosis = doctor("s3a://no-such-bucket/t", minio.conf, *FEW)
    _leads_to(
        diagnosis, ["the bucket no-such-bucket does not exist"], ["Create it, or check its name"]
    )


def test_a_port_where_nothing_listens(minio: S3Endpoint, s3_bucket: str) -> None:
    port = _closed_port()
    conf = {**minio.conf, S3A + "endpoint": f"http://127.0.0.1:{port}"}
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    _leads_to(
        diagnosis,
        [f"nothing listens at 127.0.0.1:{port}"],
        ["Start the service", "the port", "spark.hadoop.fs.s3a.endpoint"],
    )


def test_https_to_a_server_that_speaks_http(minio: S3Endpoint, s3_bucket: str) -> None:
    conf = {**minio.conf, S3A + "endpoint": minio.url.replace("http://", "https://")}
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    _leads_to(diagnosis, ["does not speak TLS"], ["http://", "spark.hadoop.fs.s3a.endpoint"])


def test_a_bucket_in_the_host_name_of_a_server_that_wants_it_in_the_path(
    minio: S3Endpoint, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = socket.getaddrinfo

    def resolve(host: str, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if host == "minio.lake.test" else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    conf = {
        **minio.conf,
        S3A + "endpoint": minio.url.replace("127.0.0.1", "minio.lake.test"),
        S3A + "path.style.access": "false",
    }
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    _leads_to(
        diagnosis,
        [f"{s3_bucket}.minio.lake.test", "can't be resolved"],
        ["spark.hadoop.fs.s3a.path.style.access=true"],
    )


@pytest.mark.parametrize(
    ("fault", "cause", "mend"),
    [
        (
            "refuse:400:AuthorizationHeaderMalformed",
            ["signed for us-east-1"],
            ["spark.hadoop.fs.s3a.endpoint.region"],
        ),
        ("refuse:403:RequestTimeTooSkewed", ["clock"], ["Correct the clock"]),
        ("refuse:403:ExpiredToken", ["expired"], ["spark.hadoop.fs.s3a.session.token"]),
        (
            "html:200",
            ["HTML page", "a proxy in between"],
            ["spark.hadoop.fs.s3a.endpoint", "NO_PROXY"],
        ),
    ],
    ids=["wrong region", "clock off", "expired token", "a proxy that answers with a page"],
)
def test_what_a_service_answers_to_a_wrong_setting(
    fault: str, cause: list[str], mend: list[str], minio: S3Endpoint, s3_bucket: str
) -> None:
    with FaultProxy(minio.url) as proxy:
        proxy.arm(fault, f"/{s3_bucket}".encode(), times=1000)
        conf = {**minio.conf, S3A + "endpoint": proxy.url}
        _leads_to(doctor(f"s3a://{s3_bucket}/t", conf, *FEW), cause, mend)


def test_a_clock_that_is_off(
    minio: S3Endpoint, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _probing_clock.now
    monkeypatch.setattr(_probing_clock, "now", lambda: right() + 400)
    diagnosis = doctor(f"s3a://{s3_bucket}/t", minio.conf, *FEW)
    _leads_to(diagnosis, ["ahead of the storage's"], ["NTP"])
    assert diagnosis["clock"]["measured"]["skew_seconds"] == pytest.approx(400, abs=5)


@pytest.mark.parametrize(
    ("actions", "cause", "mend"),
    [
        (["s3:GetObject", "s3:ListBucket"], "may not put", "s3:PutObject"),
        (["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "may not list", "s3:ListBucket"),
    ],
    ids=["read only", "put without list"],
)
def test_credentials_that_lack_a_right(
    actions: list[str], cause: str, mend: str, minio: S3Endpoint, s3_bucket: str
) -> None:
    from support.s3_sessions import restricted

    diagnosis = doctor(f"s3a://{s3_bucket}/t", restricted(minio, actions), *FEW)
    assert diagnosis.exit_code == 1
    assert cause in diagnosis.failures
    assert mend in diagnosis.failures


def test_the_extra_that_is_not_installed(minio: S3Endpoint, s3_bucket: str) -> None:
    argv = ["lakelog", "doctor", f"s3a://{s3_bucket}/t", "--json"]
    for key, value in minio.conf.items():
        argv += ["--conf", f"{key}={value}"]
    code = (
        "import sys\nsys.modules['boto3'] = sys.modules['botocore'] = None\n"
        f"sys.argv = {argv!r}\nfrom lakelog.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    diagnosis = Diagnosis(done.returncode, json.loads(done.stdout))
    _leads_to(diagnosis, ["S3 needs an extra"], ["pip install '.[s3]'"])


def test_a_store_for_one_process_without_the_users_word(minio: S3Endpoint, s3_bucket: str) -> None:
    conf = {
        **minio.conf,
        "spark.delta.logStore.s3a.impl": "lakelog.logstores.S3SingleDriverLogStore",
    }
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    assert diagnosis.exit_code == 1
    assert diagnosis.failed[0] == "commit-lock"
    assert "can't create a file exclusively" in diagnosis["commit-lock"]["summary"]
    assert "spark.lakelog.unsafe.singleWriter=true" in diagnosis["commit-lock"]["remedy"]


@pytest.mark.parametrize(("server", "cause"), [("s3rver", "IGNORES"), ("s3proxy", "NOT ATOMIC")])
def test_an_endpoint_that_is_not_fit(
    server: str, cause: str, request: pytest.FixtureRequest
) -> None:
    from support.servers.bad_s3 import BUCKET

    endpoint: S3Endpoint = request.getfixturevalue(server)
    diagnosis = doctor(f"s3a://{BUCKET}/t-{uuid.uuid4().hex[:8]}", endpoint.conf)
    _leads_to(diagnosis, [cause], ["S3DynamoDBLogStore", "singleWriter"])


def test_a_misspelt_setting_is_reported_beside_what_comes_of_it(
    minio: S3Endpoint, s3_bucket: str
) -> None:
    conf = {k: v for k, v in minio.conf.items() if not k.endswith("endpoint")}
    conf["spark.hadoop.fs.s3a.enpoint"] = minio.url
    # Wherever this runs: AWS is not asked.
    conf[S3A + "proxy.host"] = "127.0.0.1"
    conf[S3A + "proxy.port"] = str(_closed_port())
    conf["spark.lakelog.store.retry.timeBudget"] = "0.1"
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, "--read-only")
    assert diagnosis.exit_code == 1
    assert diagnosis["settings"]["summary"] == "nothing reads the key spark.hadoop.fs.s3a.enpoint"
    assert diagnosis["settings"]["remedy"] == "Did you mean spark.hadoop.fs.s3a.endpoint?"


# DynamoDB


def _locked(minio: S3Endpoint, dynamodb: DynamoDBEndpoint, table: str) -> dict[str, str]:
    return {
        **minio.conf,
        **dynamodb.conf(table),
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
    }


def test_a_lock_table_that_does_not_exist(
    minio: S3Endpoint, s3_bucket: str, dynamodb: DynamoDBEndpoint
) -> None:
    diagnosis = doctor(f"s3a://{s3_bucket}/t", _locked(minio, dynamodb, "no-such-table"), *FEW)
    _leads_to(
        diagnosis,
        ["there is no DynamoDB table no-such-table"],
        [DYNAMO + "ddb.tableName", "spark.lakelog.s3dynamodb.createTable=true"],
    )


def test_a_lock_table_out_of_reach(
    minio: S3Endpoint, s3_bucket: str, dynamodb: DynamoDBEndpoint
) -> None:
    conf = _locked(minio, dynamodb, "any")
    conf["spark.lakelog.s3dynamodb.endpoint"] = f"http://127.0.0.1:{_closed_port()}"
    diagnosis = doctor(f"s3a://{s3_bucket}/t", conf, *FEW)
    _leads_to(diagnosis, ["nothing listens"], ["spark.lakelog.s3dynamodb.endpoint"])


# Azure, Google, HDFS, and what is no storage of ours


def _azure(azurite: AzureEndpoint, container: str) -> str:
    return f"abfss://{container}@{azurite.account}.dfs.core.windows.net/t"


def test_a_container_that_does_not_exist(azurite: AzureEndpoint) -> None:
    diagnosis = doctor(_azure(azurite, "no-such-container"), azurite.conf, *FEW)
    _leads_to(diagnosis, ["there is no such container"], ["Create it"])
    _hides(diagnosis, azurite.key)


def test_a_key_of_another_account(azurite: AzureEndpoint) -> None:
    wrong = base64.b64encode(b"x" * 64).decode()
    conf = {**azurite.conf, "spark.hadoop.fs.azure.account.key": wrong}
    diagnosis = doctor(_azure(azurite, "lake"), conf, *FEW)
    _leads_to(diagnosis, ["403"], ["key", "account"])
    _hides(diagnosis, wrong, azurite.key)


def test_an_account_that_the_endpoint_is_not_for(azurite: AzureEndpoint) -> None:
    uri = "abfss://lake@another.dfs.core.windows.net/t"
    diagnosis = doctor(uri, azurite.conf, *FEW)
    _leads_to(diagnosis, ["'another'"], ["spark.lakelog.azure.endpoint.<account>"])


def test_a_google_bucket_that_does_not_exist(fake_gcs: GCSEndpoint) -> None:
    diagnosis = doctor("gs://no-such-bucket/t", fake_gcs.conf, *FEW)
    _leads_to(diagnosis, ["no-such-bucket"], ["bucket"])


def test_a_namenode_that_is_down() -> None:
    port = _closed_port()
    diagnosis = doctor(f"hdfs://127.0.0.1:{port}/t", {}, *FEW)
    _leads_to(diagnosis, [f"nothing listens at 127.0.0.1:{port}"], ["Start the service", "port"])


def test_a_cluster_that_no_one_named() -> None:
    diagnosis = doctor("hdfs:///t", {}, *FEW)
    _leads_to(diagnosis, ["names no NameNode"], ["HADOOP_CONF_DIR", "spark.hadoop.fs.defaultFS"])


def test_a_folder_of_hdfs_that_the_user_may_not_write(
    hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "a-stranger")
    diagnosis = doctor(f"{hdfs.uri}/of-the-owner/t", hdfs.conf, *FEW)
    assert diagnosis.exit_code == 1
    assert "a-stranger" in diagnosis.failures
    assert "credentials" in diagnosis.failures or "right" in diagnosis.failures


def test_a_scheme_that_no_one_knows() -> None:
    diagnosis = doctor("ftp://host/t", {}, *FEW)
    _leads_to(diagnosis, ["no built-in store for the scheme 'ftp'"], ["delta.logStore.ftp.impl"])


def test_a_local_folder_that_can_not_be_made() -> None:
    diagnosis = doctor("/proc/lakelog/t", {}, *FEW)
    _leads_to(diagnosis, ["/proc/lakelog"], ["folder"])
