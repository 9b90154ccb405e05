"""`lakelog migrate`: what is wrong usage is told in a line."""

from __future__ import annotations

from click.testing import CliRunner

from lakelog.cli.app import app


def test_a_table_that_is_not_on_s3_is_wrong_usage() -> None:
    result = CliRunner().invoke(app, ["migrate", "/lake/t", "--to", "conditional"])
    assert result.exit_code == 2
    assert "'/lake/t' is not a table on S3: give s3a://bucket/table" in result.stderr
    assert "Traceback" not in result.output


def test_a_setting_that_is_wrong_exits_with_2_and_names_it() -> None:
    wrong = "spark.io.delta.storage.S3DynamoDBLogStore.ddb.ttl=soon"
    result = CliRunner().invoke(app, ["migrate", "s3a://b/t", "--to", "dynamodb", "--conf", wrong])
    assert result.exit_code == 2
    assert result.stderr.startswith("lakelog: ")
    assert "ddb.ttl" in result.stderr
