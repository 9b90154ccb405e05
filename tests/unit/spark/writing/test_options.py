from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.writing.options import WriteOptions, save_mode

if TYPE_CHECKING:
    from lakelog.core.engine.write import SaveMode

DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "DYNAMIC"}


def read(options=None, *, mode: SaveMode = "append", conf=None, partition_by=None):
    return WriteOptions.from_options(
        mode, partition_by, options or {}, DeltaConf.from_mapping(conf)
    )


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("append", "append"),
        ("Overwrite", "overwrite"),
        ("error", "error"),
        ("ErrorIfExists", "error"),
        ("default", "error"),
        ("IGNORE", "ignore"),
    ],
)
def test_a_mode_is_known_by_every_spelling_that_spark_takes(text, mode):
    assert save_mode(text) == mode


def test_an_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(DeltaAnalysisError, match=r"'upsert'.*append, overwrite, error"):
        save_mode("upsert")


def test_names_of_options_count_in_any_case():
    options = read({"MERGEschema": "TRUE", "USERmetadata": "note", "maxrecordsPERfile": "7"})

    assert options.merge_schema
    assert options.user_metadata == "note"
    assert options.max_records_per_file == 7


def test_the_conf_answers_where_an_option_is_not_given():
    conf = {
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.commitInfo.userMetadata": "from conf",
        "spark.sql.files.maxRecordsPerFile": "9",
        "spark.sql.parquet.compression.codec": "ZSTD",
    }

    options = read(conf=conf)

    assert options.merge_schema
    assert options.user_metadata == "from conf"
    assert options.max_records_per_file == 9
    assert options.compression is None  # the layout of the table's files knows conf and property


def test_an_option_beats_the_conf():
    conf = {
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.commitInfo.userMetadata": "from conf",
        **DYNAMIC,
    }
    given = {"mergeSchema": "false", "userMetadata": "mine", "partitionOverwriteMode": "static"}

    options = read(given, mode="overwrite", conf=conf)

    assert not options.merge_schema
    assert options.user_metadata == "mine"
    assert not options.dynamic_overwrite


def test_dynamic_overwrite_by_the_session_gives_way_to_replace_where():
    assert read(mode="overwrite", conf=DYNAMIC).dynamic_overwrite
    assert not read({"replaceWhere": "a = 1"}, mode="overwrite", conf=DYNAMIC).dynamic_overwrite


def test_dynamic_overwrite_means_nothing_to_an_append():
    assert not read(conf=DYNAMIC).dynamic_overwrite


def test_properties_of_a_new_table_keep_their_spelling():
    options = read({"delta.appendOnly": "true", "header": "true"})

    assert options.properties == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("given", "mode", "message"),
    [
        ({"mergeSchema": "yes"}, "append", "'yes' for option 'mergeSchema', must be true or false"),
        (
            {"maxRecordsPerFile": "many"},
            "append",
            "maxRecordsPerFile', must be a whole number",
        ),
        ({"compression": "rar"}, "append", "unknown compression 'rar'.*snappy"),
        ({"txnAppId": "a"}, "append", "txnAppId and txnVersion"),
        ({"txnVersion": "1"}, "append", "txnAppId and txnVersion"),
        (
            {"txnAppId": "a", "txnVersion": "x"},
            "append",
            "txnVersion', must be a whole number",
        ),
        ({"partitionOverwriteMode": "x"}, "overwrite", "must be static or dynamic"),
        ({"replaceWhere": "a = 1"}, "append", r"works with mode\('overwrite'\) only"),
        ({"replaceWhere": ""}, "overwrite", "replaceWhere is empty"),
        ({"replaceWhere": " "}, "overwrite", "replaceWhere is empty"),
        (
            {"replaceWhere": "a = 1", "partitionOverwriteMode": "dynamic"},
            "overwrite",
            "give only one of them",
        ),
        (
            {"overwriteSchema": "true", "partitionOverwriteMode": "dynamic"},
            "overwrite",
            "give only one of them",
        ),
        (
            {"overwriteSchema": "true", "replaceWhere": "a = 1"},
            "overwrite",
            "give only one of them",
        ),
    ],
)
def test_a_bad_option_is_refused_with_its_name(given, mode, message):
    with pytest.raises(DeltaAnalysisError, match=message):
        read(given, mode=mode)


def test_a_transaction_takes_both_of_its_options():
    options = read({"txnAppId": "job", "txnVersion": "12"})

    assert options.batch == ("job", 12)
