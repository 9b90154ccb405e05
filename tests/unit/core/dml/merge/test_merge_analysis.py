from __future__ import annotations

from typing import Any

import pytest

from lakelog.core.dml.merge.alignment import can_store
from lakelog.core.dml.merge.analysis import analyse_merge, analyse_update
from lakelog.core.dml.merge.clauses import (
    MergeClause,
    check_clauses,
    merge_parameters,
    takes_many_matches,
)
from lakelog.core.dml.merge.new_rows import (
    Built,
    Default,
    Generated,
    Given,
    Kept,
    Nothing,
    Numbered,
    Taken,
)
from lakelog.core.errors import DeltaAnalysisError, SchemaMismatchError
from lakelog.core.input.given_types import schema_from
from lakelog.core.schema import ArrayType, PrimitiveType, StructType
from lakelog.core.schema.column_fills import (
    column_with_default,
    generated_column,
    identity_column,
)

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")


def update(values: Any = None, condition: Any = None, when: Any = "matched") -> MergeClause:
    return MergeClause(when, "update", condition, values)


def insert(values: Any = None, condition: Any = None) -> MergeClause:
    return MergeClause("not matched", "insert", condition, values)


def delete(condition: Any = None, when: Any = "matched") -> MergeClause:
    return MergeClause(when, "delete", condition)


def values_of(clause: MergeClause, target: Any, source: Any, **options: Any) -> dict[str, Any]:
    plan = analyse_merge([clause], schema_from(target), schema_from(source), **options)
    return {each.field.name: each.value for each in plan.rows[0].columns}


@pytest.mark.parametrize(
    ("clauses", "condition"),
    [
        ([], "DELTA_MERGE_MISSING_WHEN"),
        ([delete(), update()], "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        ([insert(), insert(None, "x")], "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"),
        (
            [delete(None, "not matched by source"), delete("x", "not matched by source")],
            "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        ),
    ],
)
def test_a_clause_that_no_row_reaches_is_refused(clauses, condition):
    with pytest.raises(DeltaAnalysisError, match=condition):
        check_clauses(clauses)


def test_clauses_of_different_kinds_do_not_hide_each_other():
    check_clauses([insert(), delete("x"), delete(None, "not matched by source"), update()])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MergeClause("matched", "insert"),
        lambda: MergeClause("not matched", "delete"),
        lambda: MergeClause("not matched by source", "update"),
        lambda: MergeClause("matched", "update", None, {}),
    ],
    ids=["insert", "delete", "update without source", "no column"],
)
def test_a_clause_that_sql_does_not_have_is_refused(wrong):
    with pytest.raises(DeltaAnalysisError):
        wrong()


def test_only_a_sure_deletion_and_inserts_take_several_matches():
    assert takes_many_matches([insert()])
    assert takes_many_matches([delete(), insert()])
    assert not takes_many_matches([delete("x")])
    assert not takes_many_matches([delete("x"), delete()])
    assert not takes_many_matches([update()])


def test_the_history_names_every_clause():
    clauses = [update({"a": "1"}, "p"), delete(), insert(None, "q")]
    assert merge_parameters("t.a = s.a", clauses, str) == {
        "predicate": '["t.a = s.a"]',
        "matchedPredicates": '[{"predicate":"p","actionType":"update"},{"actionType":"delete"}]',
        "notMatchedPredicates": '[{"predicate":"q","actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }


def test_names_ignore_case_and_may_follow_the_alias():
    found = values_of(
        update({"T.Name": "x", "`odd name`": "y"}),
        "id bigint, name string, `odd name` string",
        "id bigint",
        target_alias="t",
    )
    assert found == {"id": Kept(("id",)), "name": Given("x"), "odd name": Given("y")}


def test_an_alias_comes_before_a_column_of_its_name():
    found = values_of(update({"t.a": "1"}), "t struct<a: int>, a int", "x int", target_alias="t")
    assert found == {"t": Kept(("t",)), "a": Given("1")}


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(DeltaAnalysisError, match=r"MERGE_UNRESOLVED.*did you mean name") as caught:
        values_of(update({"nmae": "1"}), "id int, name string", "nmae int")
    assert caught.value.fields["column"] == "nmae"


@pytest.mark.parametrize(
    ("clause", "condition"),
    [
        (update({"a": "1", "A": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
        (update({"s": "1", "s.x": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
        (update({"s.x": "1", "S.X": "2"}), "DELTA_CONFLICT_SET_COLUMN"),
        (update({"l.element": "1"}), "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE"),
        (insert({"s.x": "1"}), "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION"),
        (insert({"a": "1", "A": "1"}), "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
        (update(), "MERGE_UNRESOLVED_EXPRESSION"),
        (insert(), "MERGE_UNRESOLVED_EXPRESSION"),
    ],
)
def test_assignments_that_contradict_each_other_are_refused(clause, condition):
    with pytest.raises(DeltaAnalysisError, match=condition):
        values_of(clause, "a int, s struct<x: int, y: int>, l array<int>", "a int, b int")


def test_a_source_with_one_name_twice_is_refused():
    with pytest.raises(DeltaAnalysisError, match="AMBIGUOUS_REFERENCE"):
        values_of(delete(), "a int", "b int, B int")


def test_a_field_of_a_struct_leaves_its_neighbours():
    found = values_of(
        update({"s.y.z": "1"}), "s struct<x: int, y: struct<z: int, w: int>>", "a int"
    )
    built = found["s"]
    assert isinstance(built, Built)
    assert built.null_where == ()
    (x, kept), (y, inner) = built.fields
    assert isinstance(inner, Built)
    assert (x.name, kept, y.name) == ("x", Kept(("s", "x")), "y")
    assert [value for _, value in inner.fields] == [Given("1"), Kept(("s", "y", "w"))]


def test_all_columns_come_by_name():
    found = values_of(insert(), "a bigint, b string", "B string, extra int, A int")
    assert found == {"a": Taken(("A",)), "b": Taken(("B",))}


def test_a_struct_is_taken_by_the_names_of_its_fields():
    found = values_of(update(), "s struct<a: int, b: int>", "s struct<b: int, a: bigint>")
    built = found["s"]
    assert [value for _, value in built.fields] == [Taken(("s", "a")), Taken(("s", "b"))]
    assert built.null_where == (Taken(("s",)),)


@pytest.mark.parametrize("source", ["s struct<a: int>", "s struct<a: int, b: int, c: int>"])
def test_structs_with_other_fields_are_refused(source):
    with pytest.raises(DeltaAnalysisError, match="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"):
        values_of(update(), "s struct<a: int, b: int>", source)


def test_types_without_a_cast_are_refused():
    with pytest.raises(DeltaAnalysisError, match="CAST_WITHOUT_SUGGESTION"):
        values_of(update(), "a array<int>", "a int")
    assert can_store(STRING, LONG)
    assert not can_store(PrimitiveType("date"), LONG)
    assert can_store(PrimitiveType("void"), StructType())
    assert can_store(ArrayType(LONG), ArrayType(STRING))


def test_with_evolution_only_what_is_assigned_is_added():
    clauses = [update({"b": "s.b"}), insert({"a": "s.a", "c": "s.c"})]
    target, source = schema_from("a int"), schema_from("a int, b string, c bigint, d int")
    plan = analyse_merge(clauses, target, source, evolves=True)
    assert plan.schema.names == ["a", "b", "c"]
    updated, inserted = ({c.field.name: c.value for c in row.columns} for row in plan.rows)
    assert updated == {"a": Kept(("a",)), "b": Given("s.b"), "c": Nothing()}
    assert inserted == {"a": Given("s.a"), "b": Nothing(), "c": Given("s.c")}


def test_with_evolution_all_columns_are_those_of_the_source():
    clauses = [update(), insert(), delete(None, "not matched by source")]
    plan = analyse_merge(
        clauses, schema_from("a int, b int"), schema_from("c int, a string"), evolves=True
    )
    assert plan.schema == schema_from("a int, b int, c int")
    updated, inserted, deleted = ({c.field.name: c.value for c in row.columns} for row in plan.rows)
    assert updated == {"a": Taken(("a",)), "b": Kept(("b",)), "c": Taken(("c",))}
    assert inserted == {"a": Taken(("a",)), "b": Nothing(), "c": Taken(("c",))}
    assert deleted == {}


def test_with_evolution_an_update_of_all_keeps_fields_that_the_source_lacks():
    found = values_of(
        update(), "s struct<a: int, b: int>", "s struct<c: int, a: int>", evolves=True
    )
    built = found["s"]
    assert [(f.name, value) for f, value in built.fields] == [
        ("a", Taken(("s", "a"))),
        ("b", Kept(("s", "b"))),
        ("c", Taken(("s", "c"))),
    ]
    assert built.null_where == (Taken(("s",)), Kept(("s",)))


def test_with_evolution_a_row_that_is_kept_gets_null_in_a_new_field():
    clauses = [update({"s.b": "s.s.b"}), update({"x": "1"}, None, "not matched by source")]
    plan = analyse_merge(
        clauses,
        schema_from("x int, s struct<a: int>"),
        schema_from("s struct<b: int>"),
        evolves=True,
    )
    struct = plan.rows[1].columns[1].value
    assert isinstance(struct, Built)
    assert [value for _, value in struct.fields] == [Kept(("s", "a")), Nothing()]
    assert struct.null_where == (Kept(("s",)),)


def test_a_clause_without_a_source_adds_no_column():
    clause = update({"b": "1"}, None, "not matched by source")
    with pytest.raises(DeltaAnalysisError, match="MERGE_UNRESOLVED_EXPRESSION"):
        values_of(clause, "a int", "b int", evolves=True)


def test_types_widen_only_where_the_table_allows_it():
    target, source = schema_from("a int"), schema_from("a bigint")
    assert analyse_merge([update()], target, source, evolves=True).schema == target
    wide = analyse_merge([update()], target, source, evolves=True, widens=True).schema
    assert wide.fields[0].data_type == LONG


def test_a_new_column_needs_a_type_and_a_struct_stays_one():
    with pytest.raises(DeltaAnalysisError, match="DELTA_MERGE_ADD_VOID_COLUMN"):
        values_of(insert(), "a int", {"a": "int", "b": "void"}, evolves=True)
    with pytest.raises(SchemaMismatchError):
        values_of(insert(), "a int", "a struct<b: int>", evolves=True)


FILLED = StructType(
    (
        identity_column("id"),
        generated_column("g", LONG, "x + 1"),
        column_with_default("d", LONG, "7"),
        *schema_from("x bigint"),
    )
)


def test_an_insert_fills_what_it_leaves_out():
    plan = analyse_merge([insert({"x": "1"})], FILLED, schema_from("x int"))
    found = {each.field.name: each.value for each in plan.rows[0].columns}
    assert found == {"id": Numbered(), "g": Generated("x + 1"), "d": Default("7"), "x": Given("1")}
    with pytest.raises(DeltaAnalysisError, match="WRONG_COLUMN_DEFAULTS"):
        analyse_merge([insert({"x": "1"})], FILLED, schema_from("x int"), has_defaults=False)


def test_an_update_computes_generated_columns_again_and_keeps_numbers():
    found = {c.field.name: c for c in analyse_update({"x": "2", "d": " default "}, FILLED)}
    assert found["id"].is_unchanged
    assert found["g"].value == Generated("x + 1")
    assert found["d"].value == Default("7")
    assert found["x"].value == Given("2")
    given = {c.field.name: c for c in analyse_update({"g": "5"}, FILLED)}
    assert given["g"].is_assigned
    assert not found["g"].is_assigned


def test_numbers_are_not_set_by_hand():
    with pytest.raises(DeltaAnalysisError, match="IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        analyse_update({"ID": "1"}, FILLED)
    with pytest.raises(DeltaAnalysisError, match="IDENTITY_COLUMNS_EXPLICIT_INSERT"):
        analyse_merge([insert({"id": "1"})], FILLED, schema_from("x int"))


def test_all_columns_need_no_source_for_what_the_table_fills_itself():
    plan = analyse_merge([insert(), update()], FILLED, schema_from("x bigint, d bigint"))
    inserted, updated = ({c.field.name: c.value for c in row.columns} for row in plan.rows)
    assert inserted["id"] == Numbered()
    assert updated["id"] == Kept(("id",))
    assert inserted["g"] == updated["g"] == Generated("x + 1")


def test_a_column_named_default_is_a_column():
    (found, *_) = analyse_update({"a": "default"}, schema_from("a int, default int"))
    assert found.value == Given("default")
