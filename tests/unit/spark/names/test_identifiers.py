from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.identifiers import is_session_name, parse, path_in, quoted_name


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("spark_catalog.db.t", ("spark_catalog", "db", "t")),
        (" db . `t` ", ("db", "t")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("delta.`/lake/a b`", ("delta", "/lake/a b")),
    ],
)
def test_a_name_has_the_parts_that_spark_reads(text: str, parts: tuple[str, ...]) -> None:
    assert parse(text) == parts


@pytest.mark.parametrize("text", ["", " ", ".", "a.", ".a", "a..b", "`a", "a`", "a b", "a.`"])
def test_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="not the name of a table"):
        parse(text)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_parts_survive_being_quoted(parts: list[str]) -> None:
    assert parse(quoted_name(parts)) == tuple(parts)


def test_a_path_stands_behind_the_format() -> None:
    assert path_in(("delta", "/lake/t")) == "/lake/t"
    assert path_in(("LakeLog", "s3a://b/t")) == "s3a://b/t"
    assert path_in(("spark_catalog", "delta", "/t")) == "/t"
    for other in [
        ("delta", "t"),
        ("db", "/t"),
        ("/t",),
        ("other", "delta", "/t"),
        ("delta", "a/b"),
    ]:
        assert path_in(other) is None


def test_the_catalog_has_ascii_words_alone() -> None:
    assert is_session_name(("default", "T_1"))
    assert not is_session_name(("default", "a b"))
    assert not is_session_name(("default", "ü"))
    assert not is_session_name(("default", "a*"))
