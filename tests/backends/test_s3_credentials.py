"""Credentials of every kind that MinIO can give, for the log and for data files."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import S3ConditionalLogStore
from support.servers._service import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.minio import S3Endpoint

FS = "spark.hadoop.fs.s3a."
HADOOP = "org.apache.hadoop.fs.s3a."


def conf_of(minio: S3Endpoint, **more: str) -> dict[str, str]:
    """The endpoint without its keys, and more settings; `__` is a dot."""
    bare = {key: value for key, value in minio.conf.items() if not key.endswith((".key", "token"))}
    bare["spark.lakelog.store.endpointProbe"] = "never"
    return bare | {FS + key.replace("__", "."): value for key, value in more.items()}


def use(conf: dict[str, str], bucket: str) -> None:
    """Commit, read, and write a data file."""
    store = S3ConditionalLogStore(conf)
    table = f"s3a://{bucket}/{uuid.uuid4().hex}"
    path = f"{table}/_delta_log/00000000000000000000.json"
    store.write(path, ["{}"])
    assert list(store.read(path)) == ["{}"]
    data = store.filesystem_path(f"{table}/part-0.parquet")
    with store.filesystem.open_output_stream(data) as out:
        out.write(b"rows")
    assert store.filesystem.get_file_info(data).size == 4


def test_keys_of_the_environment(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch
) -> None:
    no_aws.setenv("AWS_ACCESS_KEY_ID", minio.access_key)
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", minio.secret_key)
    use(conf_of(minio), s3_bucket)


def test_a_profile(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(
        f"[lake]\naws_access_key_id = {minio.access_key}\n"
        f"aws_secret_access_key = {minio.secret_key}\n"
    )
    no_aws.setenv("AWS_PROFILE", "lake")
    name = "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider"
    use(conf_of(minio, aws__credentials__provider=name), s3_bucket)


def test_temporary_keys_with_their_token(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch
) -> None:
    keys = minio.client("sts").assume_role(
        RoleArn="arn:minio:iam:::role/any", RoleSessionName="tests-of-lakelog"
    )
    given = keys["Credentials"]
    conf = conf_of(
        minio,
        access__key=given["AccessKeyId"],
        secret__key=given["SecretAccessKey"],
        session__token=given["SessionToken"],
    )
    use(conf, s3_bucket)
    provider = HADOOP + "TemporaryAWSCredentialsProvider"
    use({**conf, FS + "aws.credentials.provider": provider}, s3_bucket)


def test_a_role_is_assumed_for_the_log(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch
) -> None:
    conf = conf_of(
        minio,
        access__key=minio.access_key,
        secret__key=minio.secret_key,
        aws__credentials__provider=HADOOP + "auth.AssumedRoleCredentialProvider",
        assumed__role__arn="arn:minio:iam:::role/of-the-lake",
        assumed__role__sts__endpoint=minio.url,
        assumed__role__session__duration="15m",
    )
    store = S3ConditionalLogStore(conf)
    path = f"s3a://{s3_bucket}/{uuid.uuid4().hex}/_delta_log/00000000000000000000.json"
    store.write(path, ["{}"])
    assert list(store.read(path)) == ["{}"]
    client, _ = store._locate(path)
    found = client.sdk._request_signer._credentials
    assert found.method == "lakelog-assumed-role"
    assert found.get_frozen_credentials().token


def test_a_role_that_may_not_be_assumed(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch
) -> None:
    conf = conf_of(
        minio,
        access__key=minio.access_key,
        secret__key="of-somebody-else",
        aws__credentials__provider=HADOOP + "auth.AssumedRoleCredentialProvider",
        assumed__role__arn="arn:minio:iam:::role/of-the-lake",
        assumed__role__sts__endpoint=minio.url,
    )
    with pytest.raises(PermissionError, match=r"the role was not assumed: STS answered") as caught:
        S3ConditionalLogStore(conf).read(f"s3a://{s3_bucket}/t/x")
    assert "of-somebody-else" not in str(caught.value)


def test_an_sts_that_is_down_is_named(
    minio: S3Endpoint, s3_bucket: str, no_aws: pytest.MonkeyPatch
) -> None:
    sts = f"http://127.0.0.1:{free_port()}"
    conf = conf_of(
        minio,
        access__key=minio.access_key,
        secret__key=minio.secret_key,
        aws__credentials__provider=HADOOP + "auth.AssumedRoleCredentialProvider",
        assumed__role__arn="arn:minio:iam:::role/of-the-lake",
        assumed__role__sts__endpoint=sts,
    )
    conf["spark.lakelog.store.retry.timeBudget"] = "0.2"
    with pytest.raises(OSError, match=f"no connection to {sts} "):
        S3ConditionalLogStore(conf).read(f"s3a://{s3_bucket}/t/x")


def test_the_store_shows_whose_credentials_it_uses_and_none_of_them(
    minio: S3Endpoint, no_aws: pytest.MonkeyPatch
) -> None:
    given = dict(S3ConditionalLogStore(minio.conf).settings())
    assert given["s3 endpoint"] == minio.url
    assert given["s3 region"] == "us-east-1"
    assert given["s3 credentials"] == "from fs.s3a.access.key of the conf"
    assert minio.secret_key not in str(given)
    assert S3ConditionalLogStore(conf_of(minio)).settings()["s3 credentials"] == "none were found"
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "s")
    found = S3ConditionalLogStore(conf_of(minio)).settings()
    assert found["s3 credentials"] == "from the environment (AWS_ACCESS_KEY_ID)"
    anybody = conf_of(minio, aws__credentials__provider=HADOOP + "AnonymousAWSCredentialsProvider")
    assert S3ConditionalLogStore(anybody).settings()["s3 credentials"] == "requests are not signed"
