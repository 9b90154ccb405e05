from __future__ import annotations

import copy
import pickle

import pytest

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError


def test_a_short_name_is_delta_s_own_key() -> None:
    conf = DeltaConf.from_mapping({"spark.databricks.delta.maxCommitAttempts": " 7 "})
    assert conf.get_int("maxCommitAttempts", 1) == 7


def test_a_full_key_is_taken_as_it_is() -> None:
    conf = DeltaConf.from_mapping({"spark.lakelog.commit.timeBudget": "1.5"})
    assert conf.get_float("spark.lakelog.commit.timeBudget", 600.0) == 1.5


def test_a_missing_key_gives_the_default() -> None:
    conf = DeltaConf.from_mapping(None)
    assert conf.get_bool("x", True) is True
    assert conf.get_bool("x") is None
    assert conf.get_int("x", 3) == 3
    assert conf.get_float("x", 0.5) == 0.5
    assert conf.get_str("x") is None
    assert conf.get_str("x", "d") == "d"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False), (" True ", True)])
def test_booleans_are_read_in_any_case(text: str, value: bool) -> None:
    assert (
        DeltaConf.from_mapping({"spark.databricks.delta.b": text}).get_bool("b", not value) is value
    )


@pytest.mark.parametrize(
    ("getter", "text"),
    [
        ("get_bool", "yes"),
        ("get_bool", ""),
        ("get_int", "1.5"),
        ("get_int", "ten"),
        ("get_float", "nan"),
        ("get_float", "inf"),
        ("get_float", "fast"),
    ],
)
def test_a_bad_value_is_refused_with_key_and_value_named(getter: str, text: str) -> None:
    conf = DeltaConf.from_mapping({"spark.databricks.delta.k": text})
    with pytest.raises(DeltaAnalysisError) as caught:
        getattr(conf, getter)("k", 1)
    assert "spark.databricks.delta.k" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert caught.value.key == "spark.databricks.delta.k"


def test_a_later_change_of_the_callers_dict_changes_nothing() -> None:
    values = {"spark.a": "1"}
    conf = DeltaConf.from_mapping(values)
    values["spark.a"] = "2"
    assert dict(conf) == {"spark.a": "1"}
    assert DeltaConf.from_mapping(conf) is conf


def test_values_are_not_printed() -> None:
    assert "hunter2" not in repr(
        DeltaConf.from_mapping({"spark.hadoop.fs.s3a.secret.key": "hunter2"})
    )


def test_a_pickle_has_the_storages_keys_and_no_login_of_a_catalog_or_service() -> None:
    kept = {
        "spark.sql.catalog.lake.uri": "https://unity.example",
        "spark.sql.catalog.lake.auth.oauth.clientId": "a client",
        "spark.lakelog.catalog.lake.token.file": "/run/unity",
        "spark.lakelog.commit.service.ca.file": "/run/ca.pem",
        "spark.hadoop.fs.s3a.secret.key": "executors read files",
    }
    logins = {
        "spark.sql.catalog.lake.token": "t0ken",
        "spark.sql.catalog.lake.auth.token": "t0ken",
        "spark.sql.catalog.lake.auth.oauth.clientSecret": "t0ken",
        "spark.lakelog.catalog.lake.token.command": "print t0ken",
        "spark.sql.catalog.ice.credential": "id:t0ken",
        "spark.sql.catalog.ice.header.X-Api-Key": "t0ken",
        "spark.sql.catalog.ice.uri": "https://user:t0ken@ice.example",
        "spark.sql.catalog.db.uri": "jdbc:postgresql://db/x?user=a&password=t0ken",
        "spark.sql.catalog.nessie.authentication.bearer": "t0ken",
        # Who lacks its token commits by itself.
        "spark.lakelog.commit.service": "https://commits.example",
        "spark.lakelog.commit.service.token": "t0ken",
    }
    conf = DeltaConf({**kept, **logins})
    data = pickle.dumps(conf)
    assert b"t0ken" not in data
    assert dict(pickle.loads(data)) == kept
    assert copy.deepcopy(conf) is copy.copy(conf) is conf


def test_a_service_whose_token_is_in_a_file_is_known_elsewhere_too() -> None:
    service = "spark.lakelog.commit.service"
    kept = {service: "https://commits.example", f"{service}.token.file": "/run/token"}
    for more in ({}, {f"{service}.token": "t0ken"}):
        assert dict(pickle.loads(pickle.dumps(DeltaConf({**kept, **more})))) == kept
