from __future__ import annotations

import pytest

from lakelog.core.actions import Action, AddCDCFile, Metadata, Protocol, RemoveFile, SetTransaction
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.terms import TableTerms
from lakelog.core.metadata.change_data_feed import (
    check_mapping_with_cdc,
    perform_cdc_metadata_check,
)
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.tables import add_file, schema_json

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {**FEED, "delta.columnMapping.mode": "name"}


def metadata(*columns: str, **configuration: str) -> Metadata:
    return Metadata(
        id="t",
        schema_string=schema_json(**dict.fromkeys(columns, "long")),
        configuration={k.replace("__", "."): v for k, v in configuration.items()},
    )


def mapped(properties: dict[str, str] = MAPPED, /, **physical_names: str) -> Metadata:
    fields = (
        StructField(name, PrimitiveType("long"), metadata={"delta.columnMapping.physicalName": p})
        for name, p in physical_names.items()
    )
    return Metadata(
        id="t", schema_string=StructType(tuple(fields)).to_json(), configuration=properties
    )


def check(old: Metadata | None, new: Metadata) -> None:
    before, after = (None if each is None else terms(each) for each in (old, new))
    assert after is not None
    known = None if before is None else before.properties
    perform_cdc_metadata_check(known, after.properties, after.schema.names)


def terms(metadata: Metadata) -> TableTerms:
    return TableTerms(metadata, Protocol(min_reader_version=2, min_writer_version=5))


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_the_feed_needs_its_names_for_itself(name: str) -> None:
    off = metadata("id", name)
    on = metadata("id", name, delta__enableChangeDataFeed="true")
    check(None, off)
    with pytest.raises(DeltaAnalysisError, match="ALREADY_CONTAINS_CDC_COLUMNS") as caught:
        check(off, on)
    assert caught.value.columns == [name]
    with pytest.raises(DeltaAnalysisError, match="ALREADY_CONTAINS_CDC_COLUMNS"):
        check(None, on)
    with pytest.raises(DeltaAnalysisError, match="RESERVED_CDC_COLUMNS_ON_WRITE"):
        check(metadata("id", delta__enableChangeDataFeed="true"), on)


def test_the_feed_s_old_name_counts_too() -> None:
    on = metadata("_change_type", delta__enableChangeDataCapture="true")
    with pytest.raises(DeltaAnalysisError, match="_change_type"):
        check(None, on)


CHANGES = [
    (mapped(a="p1", b="p2"), mapped(a="p1"), "drops b"),
    (mapped(a="p1", b="p2"), mapped(a="p1", c="p2"), "renames b"),
    (metadata("a", **{"delta.enableChangeDataFeed": "true"}), mapped(a="a"), "enables column"),
]
FILES: list[Action] = [
    add_file("f"),
    RemoveFile(path="f"),
    AddCDCFile(path="f", partition_values={}, size=1),
]


@pytest.mark.parametrize(("old", "new", "what"), CHANGES, ids=[c[2] for c in CHANGES])
@pytest.mark.parametrize("file", FILES, ids=lambda each: each.kind)
def test_names_and_files_do_not_change_in_one_commit_of_a_table_with_a_feed(
    old: Metadata, new: Metadata, what: str, file
) -> None:
    code = "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"
    with pytest.raises(DeltaAnalysisError, match=rf'{code}\] Operation "WRITE"') as caught:
        check_mapping_with_cdc(terms(old), terms(new), [file], "WRITE")
    assert what in str(caught.value)
    check_mapping_with_cdc(terms(old), terms(new), [SetTransaction(app_id="a", version=1)], "WRITE")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (mapped(a="p1"), mapped(a="p1", b="p2")),
        (mapped({"delta.columnMapping.mode": "name"}, a="p"), mapped({}, b="p")),
        (metadata("a", **FEED), metadata("b", **FEED)),
    ],
    ids=["one more column", "no feed", "no mapping"],
)
def test_other_changes_go_with_files(old: Metadata, new: Metadata) -> None:
    check_mapping_with_cdc(terms(old), terms(new), FILES, "WRITE")
