"""Table properties and Spark's intervals."""

from __future__ import annotations

import logging

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.property_table import KNOWN, parse_interval_ms
from lakelog.core.features.table_properties import (
    TableProperties,
    defaults_from_conf,
    validate_properties,
)

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 30 days", 30 * DAY),
        ("INTERVAL 1 Week", 7 * DAY),
        ("2 days", 2 * DAY),
        ("interval 1 day 2 hours 3 minutes", DAY + 2 * 3_600_000 + 180_000),
        ("interval 1 day -1 hour", DAY - 3_600_000),
        ("interval 1.5 seconds", 1_500),
        ("interval 1.000999999 second", 1_000),
        ("interval 999 microseconds", 0),
        ("interval -1 microsecond", -1),
        ("  interval   5   milliseconds ", 5),
        ("interval + 4 hours", 4 * 3_600_000),
    ],
)
def test_spark_s_intervals_are_read_in_milliseconds_rounded_down(
    text: str, milliseconds: int
) -> None:
    assert parse_interval_ms(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an interval"),
        ("interval", "unknown|not an interval"),
        ("interval days", "not an interval"),
        ("interval 30", "not an interval"),
        ("intervals 3 days", "not an interval"),
        ("interval 3 fortnights", "unknown unit 'fortnights'"),
        ("interval 1.5 days", "only seconds may have a fraction"),
        ("interval 1 month", "differ in length"),
        ("1 year 2 days", "differ in length"),
        ("30days", "not an interval"),
    ],
)
def test_what_is_no_interval_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_interval_ms(text)


def test_a_silent_table_has_delta_s_defaults() -> None:
    silent = TableProperties({})
    assert silent.checkpoint_interval == 10
    assert silent.isolation_level == "Serializable"
    assert silent.append_only is False
    assert silent.deleted_file_retention_ms == 7 * DAY
    assert silent.log_retention_ms == 30 * DAY
    assert silent.enable_expired_log_cleanup is True
    assert silent.num_indexed_cols == 32
    assert silent.stats_columns is None
    assert silent.string_prefix_length is None
    assert silent.set_transaction_retention_ms is None
    assert silent.write_stats_as_json is True
    assert silent.write_stats_as_struct is True
    assert silent.in_commit_timestamps is False
    assert silent.column_mapping_mode == "none"
    assert silent.randomize_file_prefixes is False
    assert silent.random_prefix_length == 2
    assert silent.constraints == {}


def test_every_default_is_a_value_of_its_property() -> None:
    silent = TableProperties({})
    unset = {name for name in KNOWN if silent.get(name) is None}
    assert unset == {name for name, known in KNOWN.items() if known.default is None}


def test_what_the_table_says_wins() -> None:
    table = TableProperties(
        {
            "delta.appendOnly": "TRUE",
            "delta.checkpointInterval": "3",
            "delta.isolationLevel": "writeserializable",
            "delta.logRetentionDuration": "interval 12 hours",
            "delta.setTransactionRetentionDuration": "1 day",
            "delta.dataSkippingNumIndexedCols": "-1",
            "delta.dataSkippingStringPrefixLength": "5",
            "delta.dataSkippingStatsColumns": "a, b.c,`d,.e`.f",
            "delta.columnMapping.mode": "NAME",
            "delta.constraints.pos": "x > 0",
            "Delta.Constraints.Neg": "y < 0",
            "mine": "kept",
        }
    )
    assert table.append_only is True
    assert table.checkpoint_interval == 3
    assert table.isolation_level == "WriteSerializable"
    assert table.log_retention_ms == 12 * 3_600_000
    assert table.set_transaction_retention_ms == DAY
    assert table.num_indexed_cols == -1
    assert table.string_prefix_length == 5
    assert table.stats_columns == [("a",), ("b", "c"), ("d,.e", "f")]
    assert table.column_mapping_mode == "name"
    assert table.constraints == {"Neg": "y < 0", "pos": "x > 0"}


def test_a_property_s_old_name_is_still_read() -> None:
    assert TableProperties({"delta.enableChangeDataCapture": "true"}).get(
        "delta.enableChangeDataFeed"
    )


def test_a_bad_stored_value_is_named_when_it_is_asked_for_and_not_before() -> None:
    table = TableProperties({"delta.checkpointInterval": "often", "delta.appendOnly": "true"})
    assert table.append_only
    with pytest.raises(DeltaAnalysisError, match=r"delta\.checkpointInterval must be .* 'often'"):
        _ = table.checkpoint_interval


def test_names_are_stored_in_delta_s_spelling_and_values_as_given() -> None:
    given = {
        "DELTA.APPENDONLY": "True",
        "delta.enableChangeDataCapture": "false",
        "Delta.Constraints.MyCheck": "x > 0",
        "delta.FEATURE.appendOnly": "Supported",
        "delta.minwriterversion": "7",
        "Owner": "me",
    }
    assert validate_properties(given) == {
        "delta.appendOnly": "True",
        "delta.enableChangeDataFeed": "false",
        "delta.constraints.MyCheck": "x > 0",
        "delta.feature.appendOnly": "Supported",
        "delta.minWriterVersion": "7",
        "Owner": "me",
    }


def test_an_unknown_delta_property_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(DeltaAnalysisError) as caught:
        validate_properties({"delta.apendOnly": "true"})
    assert "[DELTA_UNKNOWN_CONFIGURATION] Unknown table property delta.apendOnly" in str(
        caught.value
    )
    assert "Did you mean delta.appendOnly?" in str(caught.value)
    assert "allowArbitraryProperties.enabled" in str(caught.value)


def test_arbitrary_properties_pass_where_the_session_allows_them() -> None:
    conf = {"spark.databricks.delta.allowArbitraryProperties.enabled": "true"}
    assert validate_properties({"delta.new": "1"}, conf) == {"delta.new": "1"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("delta.appendOnly", "yes", "true or false"),
        ("delta.checkpointInterval", "0", "a whole number of at least 1"),
        ("delta.checkpointInterval", "1.5", "a whole number"),
        ("delta.dataSkippingNumIndexedCols", "-2", "at least -1"),
        ("delta.dataSkippingStatsColumns", "a..b", "a list of columns"),
        ("delta.dataSkippingStatsColumns", "`a", "a list of columns"),
        ("delta.logRetentionDuration", "interval 1 month", "differ in length"),
        ("delta.logRetentionDuration", "interval -1 day", "not negative"),
        ("delta.isolationLevel", "Chaos", "one of Serializable"),
        ("delta.isolationLevel", "Chaos", "DELTA_INVALID_ISOLATION_LEVEL"),
        ("delta.isolationLevel", "SnapshotIsolation", "'Serializable' or 'WriteSerializable'"),
        ("delta.minReaderVersion", "4", "at most 3"),
        ("delta.feature.appendOnly", "on", "'supported' or 'enabled'"),
        ("delta.columnMapping.mode", "position", "one of none, name, id"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=expected) as caught:
        validate_properties({name: value})
    assert caught.value.property == name
    assert repr(value) in str(caught.value)


def test_one_property_in_two_spellings_is_refused_unless_they_agree() -> None:
    assert validate_properties({"delta.appendOnly": "true", "delta.appendonly": "true"})
    with pytest.raises(DeltaAnalysisError, match="given twice"):
        validate_properties({"delta.appendOnly": "true", "delta.appendonly": "false"})


def test_the_session_s_defaults_are_table_properties_by_their_short_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    prefix = "spark.databricks.delta.properties.defaults."
    conf = {
        prefix + "appendonly": "true",
        prefix + "minWriterVersion": "4",
        prefix + "feature.timestampNtz": "supported",
        prefix + "someday": "1",
        "spark.sql.shuffle.partitions": "2",
    }
    with caplog.at_level(logging.WARNING, logger="lakelog.properties"):
        assert defaults_from_conf(conf) == {
            "delta.appendOnly": "true",
            "delta.minWriterVersion": "4",
            "delta.feature.timestampNtz": "supported",
        }
    assert prefix + "someday" in caplog.text
    assert defaults_from_conf(None) == {}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("appendOnly", "maybe", r"delta\.appendOnly must be true or false"),
        ("minReaderVersion", "x", r"delta\.minReaderVersion must be a whole number"),
        ("minWriterVersion", "8", "at most 7"),
        ("feature.domainMetadata", "perhaps", "'supported' or 'enabled'"),
    ],
)
def test_a_bad_default_of_the_session_is_refused_with_its_key(
    name: str, value: str, message: str
) -> None:
    key = f"spark.databricks.delta.properties.defaults.{name}"
    with pytest.raises(DeltaAnalysisError, match=message) as caught:
        defaults_from_conf({key: value})
    assert str(caught.value).startswith(f"The conf {key}, a default for new tables,")
    assert caught.value.key == key


def test_a_constraint_is_no_default(caplog: pytest.LogCaptureFixture) -> None:
    key = "spark.databricks.delta.properties.defaults.constraints.pos"
    with caplog.at_level(logging.WARNING, logger="lakelog.properties"):
        assert defaults_from_conf({key: "id > 0"}) == {}
    assert key in caplog.text
