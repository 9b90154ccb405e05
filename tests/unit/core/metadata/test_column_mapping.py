from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.actions import Metadata
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.metadata.column_mapping_changes import MAX_ID, reused_mapping, with_mapping
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from lakelog.core.schema.column_paths import walk

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
ID, NAME, MODE = (f"delta.columnMapping.{word}" for word in ("id", "physicalName", "mode"))


def struct(**fields):
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


NESTED = struct(
    a=LONG,
    s=struct(x=TEXT, y=struct(z=LONG)),
    list=ArrayType(struct(e=LONG)),
    map=MapType(struct(k=TEXT), struct(v=LONG)),
    last=TEXT,
)


def meta(schema: StructType, mode: str | None = "name", **more: str) -> Metadata:
    configuration = {} if mode is None else {MODE: mode}
    return Metadata(id="t", schema_string=schema.to_json(), configuration={**configuration, **more})


def schema_of(metadata):
    return StructType.from_json(metadata.schema_string)


def marks(metadata):
    """Path -> id and physical name."""
    found = {}
    for path, field in walk(schema_of(metadata)):
        found[".".join(path)] = field.metadata.get(ID), field.metadata.get(NAME)
    return found


@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_new_table_gives_every_column_an_id_and_a_name_of_its_own(mode):
    found = with_mapping(None, meta(NESTED, mode))

    ids = [number for number, _ in marks(found).values()]
    names = [name for _, name in marks(found).values()]
    # Depth first: parents, their fields, the next sibling.
    assert ids == list(range(1, 12))
    assert list(marks(found))[:5] == ["a", "s", "s.x", "s.y", "s.y.z"]
    assert len(set(names)) == 11
    assert all(name.startswith("col-") and len(name) == 40 for name in names)
    assert found.configuration[MAX_ID] == "11"


def test_a_table_that_turns_mapping_on_keeps_its_names():
    old = meta(NESTED, None)

    found = with_mapping(old, meta(NESTED))

    assert [number for number, _ in marks(found).values()] == list(range(1, 12))
    assert all(name == path.rpartition(".")[2] for path, (_, name) in marks(found).items())
    assert found.configuration[MAX_ID] == "11"


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, "id"), ("name", "id"), ("id", "name"), ("name", "none"), ("id", None)],
)
def test_other_changes_of_mode_are_refused(before, after):
    old = meta(NESTED, before)
    if before:
        old = with_mapping(None, old)
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
        with_mapping(old, meta(schema_of(old), after))


def test_columns_do_not_change_while_mapping_is_turned_on():
    with pytest.raises(DeltaAnalysisError, match="COLUMN_MAPPING_SCHEMA_CHANGE"):
        with_mapping(meta(NESTED, None), meta(struct(a=LONG)))


def test_leftovers_of_another_mapping_are_no_start():
    marked = with_mapping(None, meta(NESTED))
    old = meta(schema_of(marked), None)
    with pytest.raises(DeltaAnalysisError, match="METADATA_ALREADY_EXISTS"):
        with_mapping(old, meta(schema_of(marked)))


def test_a_table_without_mapping_takes_over_no_marks():
    marked = schema_of(with_mapping(None, meta(NESTED)))

    assert schema_of(with_mapping(None, meta(marked, None))) == NESTED


def test_only_new_columns_get_new_marks():
    old = with_mapping(None, meta(struct(a=LONG, s=struct(x=TEXT))))
    schema = schema_of(old)
    before = schema.fields[1].data_type
    assert isinstance(before, StructType)
    inner = StructType((*before, StructField("y", LONG)))
    grown = StructType(
        (schema.fields[0], schema.fields[1].with_type(inner), StructField("new", TEXT))
    )

    found = with_mapping(old, meta(grown))

    assert {path: marks(found)[path] for path in marks(old)} == marks(old)
    assert [marks(found)[path][0] for path in ("s.y", "new")] == [4, 5]
    assert found.configuration[MAX_ID] == "5"


def test_the_greatest_id_never_falls():
    old = with_mapping(None, meta(struct(a=LONG, b=LONG, c=LONG)))
    shrunk = with_mapping(old, meta(StructType(schema_of(old).fields[:1])))
    assert shrunk.configuration[MAX_ID] == "3"

    grown = with_mapping(shrunk, meta(StructType((*schema_of(shrunk), StructField("d", LONG)))))
    assert marks(grown)["d"][0] == 4

    lowered = meta(schema_of(grown), **{MAX_ID: "1"})
    assert with_mapping(grown, lowered).configuration[MAX_ID] == "4"


def test_an_overwritten_schema_reuses_the_marks_of_columns_that_stay():
    old = with_mapping(None, meta(struct(a=LONG, s=struct(x=TEXT, y=LONG), b=TEXT)))
    new = struct(A=LONG, s=struct(x=TEXT, y=TEXT), b=LONG, c=LONG)

    found = with_mapping(old, meta(new))

    before, after = marks(old), marks(found)
    assert after["A"] == before["a"]
    assert after["s.x"] == before["s.x"]
    # Another type is another column: files of before have other values under that name.
    for path in ("s", "s.y", "b"):
        assert after[path][0] > 5
        assert after[path][1] not in {name for _, name in before.values()}
    assert found.configuration[MAX_ID] == str(max(number for number, _ in after.values()))


def with_marks(**fields):
    return StructType(
        tuple(
            StructField(name, LONG, True, {ID: number, NAME: physical})
            for name, (number, physical) in fields.items()
        )
    )


def test_marks_that_the_creator_gives_are_kept():
    given = with_marks(a=(7, "x"), b=(3, "y"))
    found = with_mapping(None, meta(StructType((*given, StructField("c", LONG)))))

    assert marks(found)["a"] == (7, "x")
    assert marks(found)["c"][0] == 8


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (with_marks(a=(1, "x"), b=(1, "y")), "a and b share the id 1"),
        (with_marks(a=(1, "x"), b=(2, "X")), "a and b share the physical name"),
        (with_marks(a=("1", "x")), "the id '1'"),
        (with_marks(a=(0, "x")), "the id 0"),
        (with_marks(a=(1, "")), "physical name ''"),
    ],
    ids=range(5),
)
def test_marks_that_contradict_each_other_are_refused(schema, message):
    with pytest.raises(DeltaAnalysisError, match=message):
        with_mapping(None, meta(schema))


def test_an_id_belongs_to_one_physical_name_for_ever():
    old = with_mapping(None, meta(with_marks(a=(1, "x"), b=(2, "y"))))
    with pytest.raises(DeltaAnalysisError, match="in the table that id belongs"):
        with_mapping(old, meta(with_marks(a=(1, "z"), b=(2, "y"))))


KINDS = st.recursive(
    st.sampled_from([LONG, TEXT]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3).map(
            lambda fields: struct(**fields)
        )
        | inner.map(ArrayType)
        | st.tuples(inner, inner).map(lambda pair: MapType(*pair))
    ),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.sampled_from("abcdef"), KINDS, min_size=1, max_size=4).map(
    lambda fields: struct(**fields)
)


@given(st.lists(SCHEMAS, min_size=1, max_size=5))
def test_whatever_schemas_follow_each_other_marks_stay_unique_and_true(schemas):
    names: dict[int, str] = {}
    table, most = None, 0
    for schema in schemas:
        table = with_mapping(table, meta(schema))
        found = list(marks(table).values())
        assert len({number for number, _ in found}) == len(found)
        assert int(table.configuration[MAX_ID]) >= max(most, *(number for number, _ in found))
        most = int(table.configuration[MAX_ID])
        for number, name in found:
            assert names.setdefault(number, name) == name
        # The same schema again is no change.
        assert schema_of(with_mapping(table, meta(schema))) == schema_of(table)
        assert reused_mapping(schema, schema_of(table)) == schema_of(table)
