from __future__ import annotations

from lakelog.core.actions import AddFile
from lakelog.core.actions.file_table import from_add_files
from lakelog.spark.reading.layout import HiveLayout, Layout, LooseLayout, layouts


def sort(
    *files: tuple[str, dict[str, str | None]], columns: tuple[str, ...] = ("p",)
) -> list[Layout]:
    adds = [
        AddFile(path=p, partition_values=v, size=1, modification_time=0, data_change=True)
        for p, v in files
    ]
    return layouts("/t", from_add_files(adds), columns, ("id", *columns))


def test_folders_that_agree_with_the_log_are_left_to_spark() -> None:
    (found,) = sort(("p=a%2520b/x", {"p": "a b"}), ("p=%C3%BC/y", {"p": "ü"}))
    assert isinstance(found, HiveLayout)
    assert found.files == ["/t/p=a%20b/x", "/t/p=ü/y"]
    assert found.translations("p") == {}


def test_a_text_that_stands_for_one_other_value_is_translated() -> None:
    (found,) = sort(("p=1/x", {"p": "one"}), ("p=1/y", {"p": "one"}), ("p=2/z", {"p": None}))
    assert isinstance(found, HiveLayout)
    assert found.translations("p") == {"1": "one", "2": None}


def test_a_text_that_stands_for_two_values_is_not_trusted() -> None:
    first, second = sort(("p=1/x", {"p": "one"}), ("p=1/y", {"p": "two"}))
    assert isinstance(first, HiveLayout)
    assert isinstance(second, LooseLayout)
    assert second.values == [("two",)]


def test_only_relative_folders_of_pairs_with_every_column_once_are_hive() -> None:
    paths = ["x", "a/x", "q=1/x", "p=/x", "p=1/deep/x", "p=1/P=1/x", "/abs/p=1/x", "s3://b/p=1/x"]
    value: dict[str, str | None] = {"p": "1"}
    (found,) = sort(*((p, value) for p in paths))
    assert isinstance(found, LooseLayout)
    assert found.files[0] == "/t/x"
    assert found.files[-2:] == ["/abs/p=1/x", "s3://b/p=1/x"]


def test_a_foreign_key_that_is_a_columns_name_in_another_case_is_not_hive() -> None:
    (found,) = sort(("ID=7/p=1/x", {"p": "1"}))
    assert isinstance(found, LooseLayout)


def test_each_order_of_keys_is_a_layout_of_its_own() -> None:
    found = sort(
        ("p=1/q=2/x", {"p": "1", "q": "2"}),
        ("q=2/p=1/y", {"p": "1", "q": "2"}),
        columns=("p", "q"),
    )
    assert [each.keys for each in found if isinstance(each, HiveLayout)] == [("p", "q"), ("q", "p")]


def test_an_unpartitioned_table_has_no_values_to_find() -> None:
    (found,) = sort(("a=b/x", {}), columns=())
    assert isinstance(found, LooseLayout)
    assert found.files == ["/t/a=b/x"]
