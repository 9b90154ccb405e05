from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.log.file_names import (
    LogFileKind,
    LogFileName,
    checkpoint_name,
    commit_name,
    commit_path,
    is_nearly_log_name,
    log_path,
    parse_log_name,
)
from lakelog.core.paths import canonical_path, data_path, encode_path, normalize_table_uri


@pytest.mark.parametrize(
    ("given_uri", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/a//b///", "/a/b"),
        ("/", "/"),
        ("file:/a/b/", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("s3://bucket/a//b/", "s3://bucket/a/b"),
        ("s3a://bucket", "s3a://bucket"),
        ("s3a://bucket/", "s3a://bucket"),
        ("abfss://c@host.net/t", "abfss://c@host.net/t"),
        ("memory://name/t", "memory://name/t"),
        ("/with space/p=1%20/ü", "/with space/p=1%20/ü"),
    ],
)
def test_a_table_has_one_spelling(given_uri, expected):
    assert normalize_table_uri(given_uri) == expected
    assert normalize_table_uri(expected) == expected


def test_a_relative_path_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert normalize_table_uri("t/x/") == f"{os.getcwd()}/t/x"
    assert normalize_table_uri(tmp_path / "t") == f"{tmp_path}/t"


def test_an_empty_path_is_refused():
    with pytest.raises(ValueError, match="empty"):
        normalize_table_uri("")


def test_a_file_uri_with_a_host_is_refused():
    with pytest.raises(ValueError, match="host 'data'"):
        normalize_table_uri("file://data/table")


def test_log_files_have_twenty_digits():
    assert commit_name(7) == "00000000000000000007.json"
    assert checkpoint_name(10) == "00000000000000000010.checkpoint.parquet"
    assert log_path("/t") == "/t/_delta_log"
    assert commit_path("/t", 0) == "/t/_delta_log/00000000000000000000.json"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("00000000000000000007.json", LogFileName(LogFileKind.COMMIT, 7)),
        ("00000000000000000010.checkpoint.parquet", LogFileName(LogFileKind.CHECKPOINT, 10)),
        (
            "00000000000000000010.checkpoint.0000000002.0000000003.parquet",
            LogFileName(LogFileKind.MULTIPART, 10, 2, 3),
        ),
        (
            "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            LogFileName(LogFileKind.V2, 10),
        ),
        (
            "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
            LogFileName(LogFileKind.V2, 10),
        ),
        (
            "00000000000000000004.00000000000000000006.compacted.json",
            LogFileName(LogFileKind.COMPACTED, 6, first=4),
        ),
        ("00000000000000000007.crc", LogFileName(LogFileKind.CRC, 7)),
        ("09223372036854775807.json", LogFileName(LogFileKind.COMMIT, 2**63 - 1)),
    ],
)
def test_names_of_the_protocol_are_read(name, parsed):
    assert parse_log_name(name) == parsed


@pytest.mark.parametrize(
    "name",
    [
        "_last_checkpoint",
        ".00000000000000000007.json.uuid.tmp",
        "00000000000000000007.json.tmp",
        "00000000000000000007.JSON",
        "٣.json",
        "-1.json",
        "00000000000000000010.checkpoint.0000000004.0000000003.parquet",
        "00000000000000000010.checkpoint.0000000000.0000000003.parquet",
        "00000000000000000010.checkpoint.parquet.crc",
        "_staged_commits",
        "x.json",
        "",
        "7.json",
        "20240131120000.json",
        "000000000000000000007.json",
        "00000000000000000004.6.compacted.json",
        "09223372036854775808.json",
        "09223372036854775808.crc",
        "20240131120000000000.checkpoint.parquet",
        "00000000000000000004.99999999999999999999.compacted.json",
    ],
)
def test_other_names_are_nothing(name):
    assert parse_log_name(name) is None


@pytest.mark.parametrize(
    ("name", "nearly"),
    [
        ("20240131120000.json", True),
        ("7.checkpoint.parquet", True),
        ("000000000000000000007.crc", True),
        ("09223372036854775808.json", True),
        ("20240131120000000000.checkpoint.parquet", True),
        ("09223372036854775807.json", False),
        ("00000000000000000007.json", False),
        ("00000000000000000007.tmp", False),
        ("7.tmp", False),
        ("x.json", False),
        ("", False),
    ],
)
def test_a_name_that_only_lacks_the_right_number_of_digits_is_known(name, nearly):
    assert is_nearly_log_name(name) is nearly


def test_the_path_of_an_action_is_decoded_exactly_once():
    assert data_path("/t", "x=a%20b%2525/f.parquet") == "/t/x=a b%25/f.parquet"
    assert data_path("s3://b/t", "f.parquet") == "s3://b/t/f.parquet"


def test_absolute_paths_pass():
    assert data_path("/t", "file:///x/a%20b") == "/x/a b"
    assert data_path("/t", "/x/y") == "/x/y"
    assert data_path("s3://b/t", "/x/y") == "s3://b/x/y"
    assert data_path("/t", "s3a://other/x%20y") == "s3a://other/x y"


@pytest.mark.parametrize(
    "spelling",
    [
        "/x/a%20b",
        "file:/x/a%20b",
        "file:///x/a b",
        "FILE://localhost/x/a b",
        "file:////x//./y/%2e%2E/a b",
        "/../x/a b",
    ],
)
def test_two_spellings_of_one_file_are_equal(spelling):
    assert canonical_path("/t", spelling) == "/x/a b"


@pytest.mark.parametrize("spelling", ["/x/y", "hdfs:/x/y", "hdfs:///x/y", "hdfs://n:1/x//%79"])
def test_what_an_absolute_path_leaves_out_is_the_tables(spelling):
    assert canonical_path("hdfs://n:1/t", spelling) == "hdfs://n:1/x/y"
    assert canonical_path("s3://b/t", "hdfs:///x/y") == "hdfs:///x/y"


@pytest.mark.parametrize("spelling", ["a/b", "./a/b", "a/./b", "a//b", "a/x/../b", "%2E/a%2Fb"])
def test_a_relative_path_is_the_same_with_dots_and_without(spelling):
    assert canonical_path("/t", spelling) == "a/b"
    assert canonical_path("/t", "../" + spelling) == "../a/b"


@pytest.mark.parametrize(
    ("path", "encoded"),
    [
        ("a b", "a%20b"),
        ("p=a%20b/f", "p=a%2520b/f"),
        ("p={[?#]}/f", "p=%7B%5B%3F%23%5D%7D/f"),
        ("é=+*()!'/f", "%C3%A9=+*()!'/f"),
        ("a:b/c:d", "a%3Ab/c:d"),
        ('"<>\\^`|', "%22%3C%3E%5C%5E%60%7C"),
        ("\u00a0\u2003\x01", "%C2%A0%E2%80%83%01"),
    ],
)
def test_paths_are_encoded_as_spark_does_and_beyond_ascii_as_deltalake_does(path, encoded):
    assert encode_path(path) == encoded


segments = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1
).filter(lambda segment: segment not in (".", ".."))


@settings(deadline=None)
@given(st.lists(segments, min_size=1, max_size=3).map("/".join))
def test_every_path_survives_encoding(path):
    assert data_path("/t", encode_path(path)) == f"/t/{path}"


@settings(deadline=None)
@given(st.lists(segments, min_size=1, max_size=3).map("/".join))
def test_every_absolute_path_survives_encoding(path):
    assert data_path("/t", "/" + encode_path(path)) == f"/{path}"
