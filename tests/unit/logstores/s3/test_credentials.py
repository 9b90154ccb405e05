"""Where S3 credentials come from, for the log and for data files."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import LogStoreConfError, S3ConditionalLogStore
from lakelog.logstores.s3.credentials import CredentialSource
from lakelog.logstores.s3.filesystem import arrow_filesystem
from lakelog.logstores.s3.prepared import prepared_put
from lakelog.logstores.s3.sdk import boto_session
from support.s3_settings import FS, KEYS, SECRET, parsed, settings

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.logstores.s3.conf import S3Settings

HADOOP = "org.apache.hadoop.fs.s3a."


@pytest.mark.parametrize(("there", "missing"), [("access", "secret"), ("secret", "access")])
def test_half_a_pair_of_keys_is_refused(there: str, missing: str) -> None:
    with pytest.raises(LogStoreConfError, match=rf"{there}\.key is set.*{missing}\.key is not"):
        parsed({f"{there}.key": SECRET})


def method(found: S3Settings) -> str | None:
    session, _ = boto_session(found)
    credentials = session.get_credentials()
    return None if credentials is None else str(credentials.method)


def frozen(found: S3Settings) -> tuple[str, str, str | None]:
    session, _ = boto_session(found)
    keys = session.get_credentials().get_frozen_credentials()
    return keys.access_key, keys.secret_key, keys.token


def test_keys_of_the_conf_go_before_those_of_the_environment(no_aws: pytest.MonkeyPatch) -> None:
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert frozen(parsed(KEYS)) == ("AKIAEXAMPLE", SECRET, None)
    assert frozen(parsed({**KEYS, "session.token": "t"})) == ("AKIAEXAMPLE", SECRET, "t")
    assert method(parsed({})) == "env"


@pytest.mark.parametrize(
    "package", ["com.amazonaws.auth.", "software.amazon.awssdk.auth.credentials."]
)
def test_the_environment_alone_may_be_asked(package: str, no_aws: pytest.MonkeyPatch) -> None:
    name = package + "EnvironmentVariableCredentialsProvider"
    values = {**KEYS, "aws.credentials.provider": name}
    assert method(parsed(values)) is None
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert method(parsed(values)) == "env"


def test_providers_are_asked_in_their_order(no_aws: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = f\n"
    )
    profile = "com.amazonaws.auth.profile.ProfileCredentialsProvider"
    simple = HADOOP + "SimpleAWSCredentialsProvider"
    assert (
        frozen(parsed({**KEYS, "aws.credentials.provider": f"{profile}, {simple}"}))[0]
        == "AKIAFILE"
    )
    assert (
        frozen(parsed({**KEYS, "aws.credentials.provider": f"{simple},{profile}"}))[0]
        == "AKIAEXAMPLE"
    )
    only = {"aws.credentials.provider": f"{simple},{profile}"}
    assert frozen(parsed(only))[0] == "AKIAFILE", "Simple without keys is passed over"


def test_simple_leaves_a_token_out_and_temporary_wants_one(no_aws: pytest.MonkeyPatch) -> None:
    values = {**KEYS, "session.token": "t"}
    simple = {**values, "aws.credentials.provider": HADOOP + "SimpleAWSCredentialsProvider"}
    assert frozen(parsed(simple)) == ("AKIAEXAMPLE", SECRET, None)
    temporary = {"aws.credentials.provider": HADOOP + "TemporaryAWSCredentialsProvider"}
    assert frozen(parsed({**values, **temporary})) == ("AKIAEXAMPLE", SECRET, "t")
    assert method(parsed({**KEYS, **temporary})) is None


def test_anonymous_requests_are_not_signed(no_aws: pytest.MonkeyPatch) -> None:
    anonymous = HADOOP + "AnonymousAWSCredentialsProvider"
    found = parsed({"aws.credentials.provider": anonymous})
    assert boto_session(found)[1] is False
    sent = prepared_put(found, {"Bucket": "lake"}, "k", b"", "tok")
    assert b"authorization" not in sent.data.lower()
    either = HADOOP + "SimpleAWSCredentialsProvider," + anonymous
    assert boto_session(parsed({**KEYS, "aws.credentials.provider": either}))[1] is True
    assert boto_session(parsed({"aws.credentials.provider": either}))[1] is False


def test_a_body_may_be_left_out_of_the_signature(no_aws: pytest.MonkeyPatch) -> None:
    header = b"X-Amz-Content-SHA256: UNSIGNED-PAYLOAD"
    for signs_body in (True, False):
        sent = prepared_put(
            parsed(KEYS), {"Bucket": "lake"}, "k", b"x", "tok", signs_body=signs_body
        )
        assert (header in sent.data) is not signs_body


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (HADOOP + "auth.IAMInstanceCredentialsProvider", CredentialSource.INSTANCE),
        ("com.amazonaws.auth.InstanceProfileCredentialsProvider", CredentialSource.INSTANCE),
        ("com.amazonaws.auth.DefaultAWSCredentialsProviderChain", CredentialSource.CHAIN),
        (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
            CredentialSource.CHAIN,
        ),
        (
            "com.amazonaws.auth.WebIdentityTokenCredentialsProvider",
            CredentialSource.WEB_IDENTITY,
        ),
        (
            "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider",
            CredentialSource.CONTAINER,
        ),
    ],
)
def test_well_known_classes_have_their_counterparts(
    name: str, source: CredentialSource, no_aws: pytest.MonkeyPatch
) -> None:
    found = parsed({"aws.credentials.provider": name})
    assert found.sources == (source,)
    core, _ = boto_session(found)
    assert core._session.get_component("credential_provider").providers


def test_an_unknown_class_is_refused_and_the_nearest_named() -> None:
    with pytest.raises(LogStoreConfError, match="did you mean SimpleAWSCredentialsProvider"):
        parsed({"aws.credentials.provider": HADOOP + "SimplAWSCredentialsProvider"})
    with pytest.raises(LogStoreConfError, match=r"com\.corp\.Vault, which has no counterpart"):
        parsed({"aws.credentials.provider": "com.corp.Vault"})


ASSUMED = HADOOP + "auth.AssumedRoleCredentialProvider"


def test_a_role_needs_a_name() -> None:
    with pytest.raises(LogStoreConfError, match=r"fs\.s3a\.assumed\.role\.arn is not set"):
        parsed({"aws.credentials.provider": ASSUMED})


def test_a_role_is_assumed_as_told() -> None:
    found = parsed(
        {
            **KEYS,
            "aws.credentials.provider": ASSUMED,
            "assumed.role.arn": "arn:aws:iam::1:role/lake",
            "assumed.role.session.name": "nightly",
            "assumed.role.session.duration": "1h",
            "assumed.role.external.id": "ours",
            "assumed.role.credentials.provider": HADOOP + "SimpleAWSCredentialsProvider",
        }
    )
    role = found.role
    assert role is not None
    assert (role.arn, role.session_name, role.seconds) == (
        "arn:aws:iam::1:role/lake",
        "nightly",
        3600,
    )
    assert role.external_id == "ours"
    assert role.sources == (CredentialSource.SIMPLE,)


# Arrow


def test_arrow_holds_no_keys_where_the_conf_has_none(no_aws: pytest.MonkeyPatch) -> None:
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert SECRET.encode() not in pickle.dumps(arrow_filesystem(settings()))
    assert SECRET.encode() in pickle.dumps(arrow_filesystem(parsed(KEYS)))


def test_arrow_takes_the_region_as_the_sdk_does(no_aws: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert arrow_filesystem(settings(endpoint__region="eu-west-3")).region == "eu-west-3"
    assert arrow_filesystem(settings(connection__maximum="1")).region == "us-east-1"
    (tmp_path / "config").write_text("[default]\nregion = sa-east-1\n")
    assert arrow_filesystem(settings(connection__maximum="2")).region == "sa-east-1"
    no_aws.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert arrow_filesystem(settings(connection__maximum="3")).region == "eu-north-1"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"encryption.algorithm": "SSE-KMS"}, "the bucket's default encryption"),
        ({"requester.pays.enabled": "true"}, "requester.pays"),
        (
            {
                "aws.credentials.provider": ASSUMED,
                "assumed.role.arn": "arn:x",
                "assumed.role.policy": "{}",
            },
            "Put the role into a profile",
        ),
        (
            {**KEYS, "aws.credentials.provider": ASSUMED, "assumed.role.arn": "arn:x"},
            "Put the role into a profile",
        ),
    ],
)
def test_what_arrow_cannot_do_is_refused_before_a_data_file_is_written(
    values: dict[str, str], why: str
) -> None:
    store = S3ConditionalLogStore({FS + key: value for key, value in values.items()})
    with pytest.raises(LogStoreConfError, match=why):
        _ = store.filesystem


def test_the_bucket_that_the_store_was_asked_about_decides_on_the_file_system() -> None:
    store = S3ConditionalLogStore({FS + "bucket.lake.endpoint.region": "eu-west-3"})
    assert store.filesystem_path("s3a://lake/t/x") == "lake/t/x"
    files: Any = store.filesystem
    assert files.region == "eu-west-3"
