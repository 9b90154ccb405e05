"""Every rule for new metadata, in the order of delta's `verifyNewMetadata`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.metadata.verify import schema_of, storable, verify_new_metadata
from lakelog.core.schema import ArrayType, PrimitiveType, StructField, StructType
from support.commits import new_uri
from support.tables import new_table, schema_json

LONG = PrimitiveType("long")
STRICT = StructType((StructField("x", LONG, nullable=False),))
CONF = DeltaConf()


def metadata(schema: str, columns: tuple[str, ...] = (), /, **configuration: str) -> Metadata:
    return Metadata(
        id="t",
        schema_string=schema,
        partition_columns=list(columns),
        configuration={k.replace("__", "."): v for k, v in configuration.items()},
    )


def of(**types: Any) -> str:
    return StructType(tuple(StructField(n, t) for n, t in types.items())).to_json()


NESTED = of(s=StructType((StructField("x", LONG), StructField("X", LONG))))
ODD = schema_json(**{"a b": "long"})
TWO = schema_json(a="long", b="long")
STATS = {"delta.dataSkippingStatsColumns": "a,S.x"}


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (metadata(schema_json(a="long", A="long")), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (metadata(NESTED), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (metadata(ODD), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (metadata(of(a=ArrayType(PrimitiveType("void")))), "CONTAINS_NULL_TYPE"),
        (metadata(TWO, ("c",)), "DELTA_COLUMN_NOT_FOUND"),
        (metadata(of(a=LONG, m=ArrayType(LONG)), ("m",)), "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (metadata(TWO, ("a", "b")), "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
        (
            metadata(schema_json(_change_type="long"), delta__enableChangeDataFeed="true"),
            "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        ),
        (metadata(TWO, delta__constraints__c="z > 1"), "UNRESOLVED_COLUMN"),
        (metadata(TWO, **STATS), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (
            metadata(TWO, delta__dataSkippingStatsColumns="a,A"),
            "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
        ),
        (
            metadata(of(m=ArrayType(LONG)), delta__dataSkippingStatsColumns="m"),
            "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
        ),
        (
            metadata(TWO, ("b",), delta__dataSkippingStatsColumns="a,B"),
            "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
        ),
        (
            metadata(
                TWO,
                delta__enableDeletionVectors="true",
                delta__compatibility__symlinkFormatManifest__enabled="true",
            ),
            "PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
        ),
    ],
)
@pytest.mark.parametrize("old", [None, metadata(schema_json(id="long"))], ids=["new", "old"])
def test_metadata_that_breaks_a_rule_is_refused_by_delta_s_condition(
    old: Metadata | None, bad: Metadata, code: str
) -> None:
    with pytest.raises(DeltaAnalysisError, match=rf"^\[[A-Z_.]*{code}\]"):
        verify_new_metadata(old, bad, CONF)


def test_good_metadata_passes() -> None:
    nested = of(a=LONG, s=StructType((StructField("x", LONG),)))
    verify_new_metadata(None, metadata(nested, ("a",), delta__constraints__c="S.x > 1"), CONF)
    verify_new_metadata(None, metadata(nested, **STATS), CONF)
    verify_new_metadata(None, metadata(ODD, delta__columnMapping__mode="name"), CONF)


def test_columns_with_statistics_that_are_gone_do_not_hinder_another_change() -> None:
    old, new = metadata(TWO, **STATS), metadata(schema_json(b="long"), **STATS)
    verify_new_metadata(old, new, CONF)


def test_properties_that_exclude_each_other_pass_where_the_session_allows_it() -> None:
    lenient = {"spark.databricks.delta.tablePropertyConstraintsCheck.enabled": "false"}
    both = metadata(
        TWO,
        delta__enableDeletionVectors="true",
        delta__compatibility__symlinkFormatManifest__enabled="true",
    )
    verify_new_metadata(None, both, DeltaConf(lenient))


def test_a_schema_is_stored_without_marks_that_no_one_can_hold() -> None:
    bad = metadata(of(a=ArrayType(STRICT)))
    with pytest.raises(DeltaAnalysisError, match="DELTA_NESTED_NOT_NULL_CONSTRAINT"):
        storable(None, bad, CONF)
    with pytest.raises(DeltaAnalysisError, match="DELTA_NESTED_NOT_NULL_CONSTRAINT"):
        storable(metadata(TWO), bad, CONF)
    allow = {"spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled": "true"}
    stored = schema_of(storable(None, bad, DeltaConf(allow)))
    assert stored == StructType(
        (StructField("a", ArrayType(StructType((StructField("x", LONG),)))),)
    )


def test_a_schema_that_stays_as_it_is_is_left_alone() -> None:
    foreign = metadata(of(a=ArrayType(STRICT)))
    assert storable(foreign, foreign, CONF) is foreign


def test_a_type_that_delta_does_not_have_is_named() -> None:
    strange = replace(metadata(TWO), schema_string=schema_json(a="calendar"))
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_UNSUPPORTED_DATA_TYPES.*a: calendar"):
        verify_new_metadata(None, strange, CONF)
    verify_new_metadata(strange, strange, CONF)
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_UNSUPPORTED_DATA_TYPES.*type"):
        schema_of(replace(strange, schema_string='{"type":"set"}'))


def test_a_transaction_verifies_the_metadata_that_it_is_given() -> None:
    log = new_table(new_uri(), schema=TWO, properties={"delta.constraints.c": "a > 1"})
    dropped = replace(log.snapshot.metadata, schema_string=schema_json(b="long"))
    with pytest.raises(DeltaAnalysisError, match="DEPENDENT_COLUMN_CHANGE"):
        log.start_transaction().update_metadata(dropped)
    with pytest.raises(DeltaAnalysisError, match="DEPENDENT_COLUMN_CHANGE"):
        log.start_transaction().commit([dropped], Operation("DROP COLUMNS"))
    with pytest.raises(DeltaAnalysisError, match="NESTED_NOT_NULL"):
        new_table(new_uri(), schema=of(a=ArrayType(STRICT)))
    limited = new_table(new_uri(), schema=schema_json(v="varchar(3)"))
    assert '"varchar(3)"' in limited.snapshot.metadata.schema_string
    assert str(limited.snapshot.schema) == "struct<v:string>"
