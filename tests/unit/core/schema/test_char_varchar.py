from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.dml.write import write_arrow
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.core.schema.char_varchar import MARK, length_rules, stored_as_string
from support.commits import new_uri
from support.tables import new_table, schema_json


def schema(**types: Any) -> str:
    return schema_json(**types)


ARRAY = {"type": "array", "elementType": "varchar(3)", "containsNull": True}
DEEP = {
    "type": "struct",
    "fields": [
        {"name": "a b", "type": "char(2)", "nullable": True, "metadata": {}},
        {
            "name": "m",
            "type": {
                "type": "map",
                "keyType": "long",
                "valueType": "varchar(4)",
                "valueContainsNull": True,
            },
            "nullable": True,
            "metadata": {},
        },
    ],
}


@pytest.mark.parametrize(
    ("kind", "stored", "mark"),
    [
        ("varchar(5)", "string", "varchar(5)"),
        ("char(4)", "string", "char(4)"),
        (ARRAY, "array<string>", "array<varchar(3)>"),
        (
            DEEP,
            "struct<a b:string,m:map<bigint,string>>",
            "struct<`a b`:char(2),m:map<bigint,varchar(4)>>",
        ),
    ],
    ids=str,
)
def test_limited_strings_are_stored_as_strings_with_a_mark(
    kind: Any, stored: str, mark: str
) -> None:
    found = StructType.from_json(stored_as_string(schema(id="long", c=kind)))
    assert str(found.fields[1].data_type) == stored
    assert found.fields[1].metadata == {MARK: mark}
    assert found.fields[0].metadata == {}


@pytest.mark.parametrize("text", [schema(a="string"), schema(**{"char(1)": "long"}), "{char(", "7"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert stored_as_string(text) is text


@pytest.mark.parametrize(
    ("kind", "sql", "limit"),
    [
        ("varchar(5)", "`c` IS NULL OR length(`c`) <= 5", 5),
        (
            ARRAY,
            "`c` IS NULL OR ((forall(`c`, x0 -> x0 IS NULL OR length(x0) <= 3)))",
            None,
        ),
        (
            DEEP,
            "`c` IS NULL OR ((`c`.`a b` IS NULL OR length(`c`.`a b`) <= 2) AND (`c`.`m` IS NULL OR "
            "((forall(map_values(`c`.`m`), x0 -> x0 IS NULL OR length(x0) <= 4)))))",
            None,
        ),
    ],
    ids=["itself", "in an array", "deep"],
)
def test_a_mark_makes_a_rule(kind: Any, sql: str, limit: int | None) -> None:
    (rule,) = length_rules(StructType.from_json(stored_as_string(schema(id="long", c=kind))))
    assert rule == ("c", sql, limit)


@pytest.mark.parametrize("mark", ["string", "no type (", 7, "array<int>"])
def test_a_mark_that_limits_nothing_makes_none(mark: object) -> None:
    text = schema(c="string").replace('"metadata": {}', f'"metadata": {json.dumps({MARK: mark})}')
    assert list(length_rules(StructType.from_json(text))) == []


def test_a_write_keeps_the_length_in_characters() -> None:
    log = new_table(new_uri(), schema=schema(v="varchar(3)"))
    write_arrow(log.table, pa.table({"v": ["abc", None, "äöü"]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="EXCEED_CHAR_VARCHAR_LIMIT") as caught:
        write_arrow(log.table, pa.table({"v": ["ok", "four", "fives"]}), mode="append")
    assert caught.value.first == {"v": "four"}
    assert caught.value.rows == 2
    assert log.update().to_arrow()["v"].to_pylist() == ["abc", None, "äöü"]


def test_a_length_within_other_values_is_left_to_spark() -> None:
    log = new_table(new_uri(), schema=schema(n=ARRAY))
    with pytest.raises(DeltaAnalysisError, match=r"can't be checked without Spark"):
        write_arrow(log.table, pa.table({"n": [["a"]]}), mode="append")
