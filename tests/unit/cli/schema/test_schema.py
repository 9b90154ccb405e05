"""`lakelog schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.cli.schema.create_statement import create_table_sql
from lakelog.core import DeltaLog, create_table
from lakelog.core.alter import add_columns
from lakelog.core.schema import (
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)
from support.tables import new_table, schema_json
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = StructType(
    (
        identity_column("id", start=5, step=2),
        StructField("od'd `name`", TEXT, False, {"comment": "it's\nhere"}),
        StructField(
            "where",
            StructType((StructField("a b", LONG, False), StructField("c", TEXT))),
        ),
        generated_column("day", PrimitiveType("date"), "cast(at as date)"),
        StructField("at", PrimitiveType("timestamp")),
        column_with_default("left", LONG, "7"),
        StructField("code", TEXT, True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
    )
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name", "owner": "o'neill"}
    properties["delta.feature.allowColumnDefaults"] = "supported"
    create_table(made, SCHEMA, partition_by=["day"], properties=properties)
    return made


def test_the_statement_has_everything_that_a_column_has(uri: str) -> None:
    outcome = lakelog("schema", uri, "--sql")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (
        f"CREATE TABLE delta.`{uri}` (\n"
        "  id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2),\n"
        "  `od'd ``name``` STRING NOT NULL COMMENT 'it\\'s\\nhere',\n"
        "  where STRUCT<`a b`: BIGINT NOT NULL, c: STRING>,\n"
        "  day DATE GENERATED ALWAYS AS (cast(at as date)),\n"
        "  at TIMESTAMP,\n"
        "  left BIGINT DEFAULT 7,\n"
        "  code varchar(3)\n"
        ")\n"
        "USING delta\n"
        "PARTITIONED BY (day)\n"
        "TBLPROPERTIES (\n"
        "  'delta.columnMapping.mode' = 'name',\n"
        "  'delta.feature.allowColumnDefaults' = 'supported',\n"
        "  'owner' = 'o\\'neill'\n"
        ");\n"
    )


def test_clustering_columns_and_a_description_are_in_the_statement() -> None:
    sql = create_table_sql(
        "/t", StructType((StructField("a", LONG),)), clustering_columns=[["a", "b c"]], comment="x"
    )
    assert sql == (
        "CREATE TABLE delta.`/t` (\n  a BIGINT\n)\nUSING delta\nCLUSTER BY (a.`b c`)\nCOMMENT 'x';"
    )


def test_the_text_is_the_tree(uri: str) -> None:
    outcome = lakelog("schema", uri)
    assert "od'd `name`" in outcome.out
    assert "not null" in outcome.out
    assert "generated as cast(at as date)" in outcome.out
    assert outcome.lines[-1] == "Files know the columns by name (column mapping)."


def test_the_document_is_the_log_s_schema(uri: str) -> None:
    found = lakelog_json("schema", uri)
    assert found["schema"] == DeltaLog.for_table(uri).snapshot.schema.json_value()
    assert (found["partition_columns"], found["clustering_columns"]) == (["day"], [])
    assert (found["version"], found["column_mapping"]) == (0, "name")


def test_an_older_version_has_its_own_columns(uri: str) -> None:
    add_columns(uri, {"new": "int"})
    newest = lakelog_json("schema", uri)["schema"]["fields"]
    oldest = lakelog_json("schema", uri, "--version", "0")["schema"]["fields"]
    assert [each["name"] for each in newest] == [*(each["name"] for each in oldest), "new"]


def test_a_table_that_lakelog_can_not_read_has_a_schema_too(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    new_table(table, schema=schema_json(id="long"))
    commit = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    commit.write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["soon"],'
        '"writerFeatures":["soon"]}}\n'
    )
    assert lakelog("sample", table).code == 2
    assert lakelog_json("schema", table)["version"] == 1


def test_one_form_at_a_time(uri: str) -> None:
    assert lakelog("schema", uri, "--sql", "--json").code == 2
