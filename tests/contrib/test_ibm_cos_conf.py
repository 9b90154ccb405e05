"""Stocator's settings reach the S3 client, and what is missing is named."""

from __future__ import annotations

import pickle

import pytest

from lakelog.contrib.ibm_cos import IBMCOSLogStore, _as_s3
from lakelog.logstores import LogStoreConfError, log_store_for

KEYS = {
    "spark.hadoop.fs.cos.my.access.key": "id",
    "fs.cos.my.secret.key": "top-secret",
    "fs.cos.my.endpoint": "s3.eu-de.cloud-object-storage.appdomain.cloud",
}
S3A = "spark.hadoop.fs.s3a."


def test_the_scheme_and_the_java_name_lead_to_it() -> None:
    java = {"spark.delta.logStore.cos.impl": "io.delta.storage.IBMCOSLogStore"}
    for conf in ({}, java):
        assert type(log_store_for("cos://b.my/t", {**KEYS, **conf})) is IBMCOSLogStore


def test_the_settings_of_the_service_take_the_place_of_those_of_s3() -> None:
    mapped = _as_s3({**KEYS, "fs.s3a.session.token": "of another", "spark.app.name": "x"}, "my")
    assert mapped[S3A + "endpoint"] == "https://s3.eu-de.cloud-object-storage.appdomain.cloud"
    assert mapped[S3A + "endpoint.region"] == "eu-de", "IBM signs with the region of the host"
    assert (mapped[S3A + "access.key"], mapped[S3A + "secret.key"]) == ("id", "top-secret")
    assert "fs.s3a.session.token" not in mapped
    assert mapped["spark.app.name"] == "x"


@pytest.mark.parametrize("missing", sorted(KEYS))
def test_a_missing_setting_is_named(missing: str) -> None:
    conf = {key: value for key, value in KEYS.items() if key != missing}
    named = missing.removeprefix("spark.hadoop.")
    with pytest.raises(LogStoreConfError, match=f"{named} is missing") as caught:
        IBMCOSLogStore(conf).filesystem_path("cos://bucket.my/t")
    assert "top-secret" not in str(caught.value)


def test_an_api_key_is_refused_with_the_way_out() -> None:
    conf = {**KEYS, "fs.cos.my.iam.api.key": "top-secret"}
    with pytest.raises(LogStoreConfError, match="with HMAC") as caught:
        IBMCOSLogStore(conf).filesystem_path("cos://bucket.my/t")
    assert "top-secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["cos://bucket/t", "s3://bucket.my/t", "cos://.my/t", "/t"])
def test_a_path_without_a_service_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"cos://bucket\.service/key"):
        IBMCOSLogStore(KEYS).filesystem_path(path)


def test_a_bucket_may_have_dots_and_the_store_be_pickled() -> None:
    store = pickle.loads(pickle.dumps(IBMCOSLogStore(KEYS)))
    assert store.filesystem_path("cos://my.bucket.my/t/0.json") == "my.bucket/t/0.json"
