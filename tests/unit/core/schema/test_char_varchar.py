from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import ConstraintViolationError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import MARK, length_rules, stored_as_string, stored_sql
from support.commits import new_uri
from support.tables import new_table, schema_json

TEXT = PrimitiveType("string")


def schema(**types: Any) -> str:
    return schema_json(**types)


ARRAY = {"type": "array", "elementType": "varchar(3)", "containsNull": True}
DEEP: dict[str, Any] = {
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
INNER = {"type": "struct", "fields": [{**DEEP["fields"][0], "name": "c"}, DEEP["fields"][1]]}


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
    ("kind", "sql"),
    [
        ("varchar(5)", "`c` IS NULL OR length(`c`) <= 5"),
        (ARRAY, "`c` IS NULL OR ((forall(`c`, x0 -> x0 IS NULL OR length(x0) <= 3)))"),
        (
            DEEP,
            "`c` IS NULL OR ((`c`.`a b` IS NULL OR length(`c`.`a b`) <= 2) AND (`c`.`m` IS NULL OR "
            "((forall(map_values(`c`.`m`), x0 -> x0 IS NULL OR length(x0) <= 4)))))",
        ),
    ],
    ids=["itself", "in an array", "deep"],
)
def test_a_mark_makes_a_rule(kind: Any, sql: str) -> None:
    (rule,) = length_rules(StructType.from_json(stored_as_string(schema(id="long", c=kind))))
    assert rule == ("c", sql)


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


def nested(**types: Any) -> pa.Table:
    """Rows of a long and of columns in `types`, as lists of values of their Arrow types."""
    columns = {name: pa.array(values, kind) for name, (kind, values) in types.items()}
    count = len(next(iter(columns.values())))
    return pa.table({"id": pa.array(range(count), pa.int64()), **columns})


LETTERS = pa.map_(pa.string(), pa.list_(pa.struct([("c", pa.string()), ("n", pa.int32())])))
MARKED = {
    "type": "map",
    "keyType": "varchar(2)",
    "valueType": {
        "type": "array",
        "elementType": {
            "type": "struct",
            "fields": [
                {"name": "c", "type": "char(3)", "nullable": True, "metadata": {}},
                {"name": "n", "type": "integer", "nullable": True, "metadata": {}},
            ],
        },
        "containsNull": True,
    },
    "valueContainsNull": True,
}


@pytest.mark.parametrize(
    ("row", "is_kept"),
    [
        (None, True),
        ([], True),
        ([("ab", None), ("c", [])], True),
        ([("ab", [None, {"c": "abc", "n": 1}, {"c": None, "n": 1}])], True),
        ([("abc", None)], False),
        ([("a", [{"c": "abc", "n": 1}, {"c": "abcd", "n": 1}])], False),
        ([("a", [{"c": "äöüß", "n": 1}])], False),
    ],
    ids=str,
)
def test_a_length_is_kept_at_any_depth_and_row_by_row(row: Any, is_kept: bool) -> None:
    log = new_table(new_uri(), schema=schema(id="long", m=MARKED))
    good = [("a", [{"c": "a", "n": 1}])]
    data = nested(m=(LETTERS, [good, None, row, good, [], row]))
    for part in (data, data.slice(1, 4), data.slice(3, 2)):
        has_row = part.num_rows > 2
        if is_kept or not has_row:
            write_arrow(log.table, part, mode="append")
            continue
        with pytest.raises(ConstraintViolationError, match="EXCEED_CHAR_VARCHAR_LIMIT") as caught:
            write_arrow(log.table, part, mode="append")
        assert caught.value.rows == (2 if part.num_rows == 6 else 1)
        assert caught.value.first == {"m": row}
    found = log.update().to_arrow()["m"].to_pylist()
    assert [{"c": "a  ", "n": 1}] in [dict(each).get("a") for each in found if each]


def test_what_a_null_hides_is_not_too_long() -> None:
    log = new_table(new_uri(), schema=schema(id="long", n=ARRAY, s=INNER))
    texts = pa.array(["a", "much too long", "b"])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), texts, mask=pa.array([False, True, False])
    )
    maps = pa.array([[], [], []], pa.map_(pa.int64(), pa.string()))
    structs = pa.StructArray.from_arrays(
        [texts, maps], ["c", "m"], mask=pa.array([False, True, False])
    )
    data = pa.table({"id": [1, 2, 3], "n": lists, "s": structs})
    write_arrow(log.table, data, mode="append")
    assert log.update().to_arrow()["s"].to_pylist() == [
        {"c": "a ", "m": []},
        None,
        {"c": "b ", "m": []},
    ]


def test_a_length_is_kept_by_what_a_field_is_called_now() -> None:
    marked = schema(id="long", s={"type": "struct", "fields": DEEP["fields"][:1]})
    text = stored_as_string(marked).replace('"name":"a b"', '"name":"z"')
    log = new_table(new_uri(), schema=text)
    kind = pa.struct([("z", pa.string())])
    write_arrow(log.table, nested(s=(kind, [{"z": "a"}])), mode="append")
    assert log.update().to_arrow()["s"].to_pylist() == [{"z": "a "}]
    with pytest.raises(ConstraintViolationError, match="EXCEED_CHAR_VARCHAR_LIMIT"):
        write_arrow(log.table, nested(s=(kind, [{"z": "abc"}])), mode="append")


def test_a_field_of_void_hides_no_limit_beside_it() -> None:
    kind = StructType((StructField("v", PrimitiveType("void")), StructField("c", TEXT)))
    field = StructField("s", kind, metadata={MARK: "struct<v:void,c:char(2)>"})
    (rule,) = length_rules(StructType((field,)))
    assert rule.sql.count("length") == 1
    assert stored_sql(field)
