"""`lakelog migrate`: what is wrong usage is told in a line."""

from __future__ import annotations

from lakelog.cli.app import app
from support.terminal import runner, said


def test_a_table_that_is_not_on_s3_is_wrong_usage() -> None:
    result = runner().invoke(app, ["migrate", "/lake/t", "--to", "conditional"])
    assert result.exit_code == 2
    assert "'/lake/t' is not a table on S3: give s3a://bucket/table" in result.stderr
    assert "Traceback" not in said(result)


def test_a_setting_that_is_wrong_exits_with_2_and_names_it() -> None:
    wrong = "spark.io.delta.storage.S3DynamoDBLogStore.ddb.ttl=soon"
    result = runner().invoke(app, ["migrate", "s3a://b/t", "--to", "dynamodb", "--conf", wrong])
    assert result.exit_code == 2
    assert result.stderr.startswith("lakelog: ")
    assert "ddb.ttl" in result.stderr
