"""Settings come from a spark-defaults.conf and from the command line, read as Spark reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest

from lakelog.cli.shared_options import conf_options
from lakelog.core.conf_file import parse_properties
from support.terminal import runner, said

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spark.a   b", {"spark.a": "b"}),
        ("spark.a\tb c  ", {"spark.a": "b c"}),
        ("spark.a=b", {"spark.a": "b"}),
        ("spark.a = b=c", {"spark.a": "b=c"}),
        ("spark.a: b", {"spark.a": "b"}),
        ("  spark.a b", {"spark.a": "b"}),
        ("# spark.a b\n! spark.a b\n\n", {}),
        ("spark.a b # no comment", {"spark.a": "b # no comment"}),
        ("spark.a first \\\n    second", {"spark.a": "first second"}),
        ("spark.a b\\\\\nspark.c d", {"spark.a": "b\\", "spark.c": "d"}),
        ("spark.a\\ b c", {"spark.a b": "c"}),
        ("spark.a \\u00e4\\tx", {"spark.a": "ä\tx"}),
        ("spark.a", {"spark.a": ""}),
        ("spark.a b\nspark.a c", {"spark.a": "c"}),
        ("spark.a b\r\nspark.c d\r\n", {"spark.a": "b", "spark.c": "d"}),
        ("spark.a b\\", {"spark.a": "b"}),
    ],
)
def test_the_rules_are_those_of_java_properties(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@click.command()
@conf_options
def _show(conf: dict[str, str]) -> None:
    for key, value in conf.items():
        click.echo(f"{key}|{value}")


def _run(*args: str) -> tuple[int, str]:
    result = runner().invoke(_show, list(args))
    return result.exit_code, said(result)


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("spark.a from-file\nspark.b from-file\n")
    code, output = _run("--conf-file", str(file), "--conf", "spark.b=b=b", "--conf", "spark.c=")
    assert code == 0
    assert output.splitlines() == ["spark.a|from-file", "spark.b|b=b", "spark.c|"]


def test_a_setting_without_an_equals_sign_is_refused_and_not_repeated() -> None:
    code, output = _run("--conf", "spark.a=1", "--conf", "hunter2")
    assert code == 2
    assert "--conf number 2 is not KEY=VALUE" in output
    assert "hunter2" not in output


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_bytes(b"\xff\xfe\x00")
    code, output = _run("--conf-file", str(file))
    assert code == 2
    assert "can't be read" in output


def test_a_file_that_is_not_there_is_refused() -> None:
    code, output = _run("--conf-file", "/no/such/file")
    assert code == 2
    assert "/no/such/file" in output
