from __future__ import annotations

import errno

import pytest

from lakelog.core.actions import Metadata
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import ConstraintViolationError, TableNotFoundError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.session.job_errors import job_errors, violation_in
from lakelog.spark.workers.marked_errors import lacks_pyarrow
from lakelog.spark.writing.enforced_rules import check_rule, table_rules

CONF = DeltaConf.from_mapping({})


def fails(text: str, version: int | None = 3):
    with job_errors("/lake/t", version):
        raise RuntimeError(text)


def test_a_check_fails_on_null_as_on_false_and_shows_the_columns_that_it_names():
    rule = check_rule("bad:", "a > 3 AND lower(b) = 'x'", ["a", "b", "c"])

    assert rule.violated == "NOT ((a > 3 AND lower(b) = 'x') <=> true)"
    assert rule.shown == ("a", "b")


def test_a_table_asks_for_its_not_null_columns_and_its_constraints():
    schema = StructType(
        (
            StructField("id", PrimitiveType("long"), nullable=False),
            StructField("x", PrimitiveType("long")),
        )
    )
    metadata = Metadata(
        id="1",
        schema_string=schema.to_json(),
        configuration={"delta.constraints.positive": "x > 0"},
    )

    not_null, check = table_rules(metadata, "t", CONF)

    assert "NOT NULL constraint violated for column: id" in not_null.message
    assert "CHECK constraint positive (x > 0)" in check.message


def test_a_length_is_a_rule_with_delta_s_condition():
    marks = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}
    schema = StructType((StructField("v", PrimitiveType("string"), metadata=marks),))

    (rule,) = table_rules(Metadata(id="1", schema_string=schema.to_json()), "t", CONF)

    assert rule.message.startswith("[DELTA_EXCEED_CHAR_VARCHAR_LIMIT]")
    assert rule.violated == "NOT ((`v` IS NULL OR length(`v`) <= 5) <=> true)"
    assert rule.shown == ("v",)


def test_a_violation_is_found_in_the_text_of_any_exception():
    text = "[USER_RAISED_EXCEPTION] {{lakelog: bad\n - a : 3 :lakelog}} SQLSTATE: P0001"

    assert violation_in(text) == "bad\n - a : 3"
    assert violation_in("Job aborted") is None


def test_a_broken_rule_becomes_one_error_that_says_where_the_table_is():
    with pytest.raises(ConstraintViolationError, match="at version 3") as caught:
        fails("x {{lakelog: bad\n - a : 3 :lakelog}} y")

    assert str(caught.value).startswith("bad\n - a : 3\n")
    assert caught.value.table == "/lake/t"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Job aborted: java.io.IOException: No space left on device", errno.ENOSPC),
        ("PythonException: OSError: [Errno 28] Error writing bytes to file", errno.ENOSPC),
        ("java.io.FileNotFoundException: /lake/x (Permission denied)", errno.EACCES),
        ("java.io.IOException: Mkdirs failed to create file:/lake/t/write-1", errno.EACCES),
        ("PythonException: OSError: [Errno 30] Read-only file system", errno.EROFS),
    ],
)
def test_a_storage_that_refuses_becomes_an_os_error_with_number_and_path(text, number):
    with pytest.raises(OSError, match="/lake/t") as caught:
        fails(text, None)

    assert caught.value.errno == number
    assert "was not created" in str(caught.value)


def test_another_failure_keeps_its_type_and_gets_a_note():
    with pytest.raises(RuntimeError, match="boom") as caught:
        fails("boom")

    assert any("as it was, at version 3" in n for n in caught.value.__notes__)


def test_our_own_errors_pass_untouched():
    with pytest.raises(TableNotFoundError, match="gone"), job_errors("/lake/t", 1):
        raise TableNotFoundError("gone")


def test_a_python_without_pyarrow_is_recognised():
    assert lacks_pyarrow(RuntimeError("ModuleNotFoundError: No module named 'pyarrow'"))
    assert not lacks_pyarrow(RuntimeError("No module named 'my_job'"))
