"""Which field a given one is: by name, or by position."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.assignment import fits_by_name, fitting, named_by_position
from lakelog.core.schema.diff import same_type

INT, LONG, TEXT = (PrimitiveType(each) for each in ("integer", "long", "string"))


def struct(**fields):
    return StructType(tuple(StructField(name, kind) for name, kind in fields.items()))


TABLE = struct(a=INT, b=TEXT)
HOLDERS = {
    "struct": lambda kind: kind,
    "array": ArrayType,
    "value": lambda kind: MapType(TEXT, kind),
    "key": lambda kind: MapType(kind, TEXT),
    "nested": lambda kind: struct(n=kind, d=INT),
    "deep": lambda kind: ArrayType(MapType(TEXT, struct(x=ArrayType(kind)))),
}
holders = pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)


@holders
@pytest.mark.parametrize(
    ("given_type", "by_name"),
    [
        (struct(a=INT, b=TEXT), True),
        (struct(b=TEXT, a=INT), True),
        (struct(c=INT, b=TEXT, a=INT), True),
        (struct(a=LONG, b=TEXT), False),
        (struct(a=INT), False),
        (struct(A=INT, b=TEXT), False),
        (struct(col1=INT, col2=TEXT), False),
        (INT, False),
    ],
)
def test_names_decide_where_all_are_there_in_their_types(held, given_type, by_name):
    assert fits_by_name(held(TABLE), held(given_type)) is by_name


@holders
def test_names_in_another_order_do_not_fit_where_order_counts_but_within_arrays(held):
    moved, more = struct(b=TEXT, a=INT), struct(c=INT, b=TEXT, a=INT)
    in_structs = held in (HOLDERS["struct"], HOLDERS["nested"])
    assert fits_by_name(held(TABLE), held(moved), in_order=True) is not in_structs
    assert fits_by_name(held(TABLE), held(more), in_order=True)


@holders
def test_a_wider_type_fits_where_the_table_widens(held):
    assert fits_by_name(held(TABLE), held(struct(a=LONG, b=TEXT)), widens=True)
    assert not fits_by_name(held(struct(a=LONG)), held(struct(a=INT)), widens=True)


@holders
def test_by_position_fields_get_the_names_of_the_table(held):
    found = named_by_position(held(TABLE), held(struct(col1=LONG, x=TEXT, c=INT)), ("s",))
    assert found == held(struct(a=LONG, b=TEXT, c=INT))


@holders
@pytest.mark.parametrize(
    ("given_type", "condition"),
    [
        (struct(a=INT), "[DELTA_INSERT_COLUMN_ARITY_MISMATCH]"),
        (struct(), "[DELTA_INSERT_COLUMN_ARITY_MISMATCH]"),
        (struct(b=TEXT, a=LONG), "[INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME]"),
        (struct(c=INT, a=LONG, b=TEXT), "[INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME]"),
        (struct(x=INT, y=TEXT, A=INT), "[INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME]"),
        (struct(B=INT, A=TEXT), "[INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME]"),
    ],
)
def test_too_few_fields_and_names_that_contradict_positions_are_refused(
    held, given_type, condition
):
    with pytest.raises(SchemaMismatchError) as caught:
        named_by_position(held(TABLE), held(given_type), ("s",))
    assert str(caught.value).startswith(condition)
    assert all(name in str(caught.value) for name in ("a, b", *given_type.names))


atoms = st.sampled_from((INT, LONG, TEXT))
names = st.lists(st.sampled_from("abcdefgh"), max_size=4, unique=True)


def types_of(inner):
    return st.one_of(
        st.builds(ArrayType, inner),
        st.builds(MapType, inner, inner),
        names.flatmap(
            lambda each: st.tuples(*(inner for _ in each)).map(
                lambda kinds: struct(**dict(zip(each, kinds, strict=True)))
            )
        ),
    )


types = st.recursive(atoms, types_of, max_leaves=8)


def atoms_of(kind):
    match kind:
        case StructType():
            return [each for field in kind for each in atoms_of(field.data_type)]
        case ArrayType():
            return atoms_of(kind.element_type)
        case MapType():
            return [*atoms_of(kind.key_type), *atoms_of(kind.value_type)]
    return [kind]


@given(types, types)
def test_a_name_by_position_moves_and_loses_nothing(table, data):
    try:
        found = named_by_position(table, data, ("s",))
    except SchemaMismatchError:
        return
    assert atoms_of(found) == atoms_of(data)
    # What has got its name by position is found by name, or is new: nothing is left to chance.
    assert named_by_position(table, found, ("s",)) == found


@given(types, types, st.booleans())
def test_what_fits_has_the_shape_of_the_data(table, data, widens):
    found = fitting(table, data, widens=widens)
    assert len(atoms_of(found)) == len(atoms_of(data))
    if fits_by_name(table, data):
        assert same_type(found, data)
