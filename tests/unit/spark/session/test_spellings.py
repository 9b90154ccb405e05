from __future__ import annotations

import pytest

from lakelog.spark.types.path_forms import file_path_uri, glob_escaped, hadoop_path, quoted


@pytest.mark.parametrize(
    ("path", "hadoop", "uri"),
    [
        ("/t/a b%20[x]/é", "file:/t/a b%20[x]/é", "file:/t/a%20b%2520%5Bx%5D/é"),
        ("s3://bucket/t/x#y", "s3://bucket/t/x#y", "s3://bucket/t/x%23y"),
        (
            "abfss://c@a.dfs.core.windows.net/t/p=1",
            "abfss://c@a.dfs.core.windows.net/t/p=1",
            "abfss://c@a.dfs.core.windows.net/t/p=1",
        ),
        ("hdfs:/t/x", "hdfs:/t/x", "hdfs:/t/x"),
    ],
)
def test_a_file_has_three_spellings(path: str, hadoop: str, uri: str) -> None:
    assert hadoop_path(path) == hadoop
    assert file_path_uri(path) == uri


def test_no_character_of_a_path_is_a_glob() -> None:
    assert glob_escaped("/a[b]{c}*?\\d e") == "/a\\[b\\]\\{c\\}\\*\\?\\\\d e"


def test_a_relative_path_is_no_file_of_a_table() -> None:
    with pytest.raises(ValueError, match="absolute"):
        file_path_uri("t/x")


def test_a_column_name_is_quoted_whatever_it_holds() -> None:
    assert quoted("a`b.c") == "`a``b.c`"
