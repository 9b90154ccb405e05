from __future__ import annotations

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.reading.read_options import chosen_columns, column_names, wants_changes

LONG = PrimitiveType("long")
NAMES = ("a", "b", "a,b", " c", "[d", "[e]")
SCHEMA = StructType(tuple(StructField(name, LONG) for name in NAMES))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, []),
        ("", []),
        (" , ", []),
        ("[]", []),
        ("a", ["a"]),
        ("b, a", ["b", "a"]),
        ('["a,b"]', ["a,b"]),
        (' ["a,b", "a", " c"]', ["a,b", "a", " c"]),
        ("[d", ["[d"]),
        ("[e],[d", ["[e]", "[d"]),
    ],
)
def test_columns_are_named_by_commas_or_as_a_list(text: str | None, names: list[str]) -> None:
    assert column_names(text) == names
    assert chosen_columns(SCHEMA, text, "/t") == (names or None)


def test_names_count_in_any_case() -> None:
    assert chosen_columns(SCHEMA, '["A,B", "B"]', "/t") == ["a,b", "b"]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DeltaAnalysisError, match="names 'x,y', but /t has a, b, a,b"):
        chosen_columns(SCHEMA, '["a", "x,y"]', "/t")


@pytest.mark.parametrize("text", ["[1]", '["a", null]', '[["a"]]'])
def test_a_list_of_other_things_is_refused(text: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="only strings can be names"):
        column_names(text)


@pytest.mark.parametrize("name", ["readChangeFeed", "readChangeData"])
def test_changes_are_asked_for_by_true_alone(name: str) -> None:
    """Another word would read the table's rows, where its changes are wanted."""
    assert not wants_changes({})
    assert not wants_changes({name.lower(): " False "})
    assert wants_changes({name.lower(): "TRUE"})
    for word in ("yes", "1", "", "ture"):
        with pytest.raises(DeltaAnalysisError, match=f"ILLEGAL_OPTION.*'{word}'.*'{name}'.*true"):
            wants_changes({"readchangefeed": "true", name.lower(): word})
