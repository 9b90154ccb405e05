from __future__ import annotations

import traceback

import pytest

from lakelog.core.errors import ConcurrentAppendException, DeltaError
from lakelog.logstores.errors import CommitOutcomeUnknownError, UnsafeLogStoreError
from lakelog.spark.workers.marked_errors import marked, unwrap_error


def through_spark(exc: Exception) -> Exception:
    """What is left of an error that a data source raises: its traceback, within a message."""
    try:
        with marked():
            raise exc
    except Exception as raised:
        text = "".join(traceback.format_exception(raised))
        return RuntimeError(f"[PYTHON_DATA_SOURCE_ERROR] Failed: {text}\n SQLSTATE: 38000")


def test_an_error_comes_back_with_class_message_and_fields() -> None:
    sent = ConcurrentAppendException("somebody added {files}", version=7, partitions=["a=1"])
    found = unwrap_error(through_spark(sent))
    assert type(found) is type(sent)
    assert isinstance(found, ConcurrentAppendException)
    assert str(found) == "somebody added {files}"
    assert found.fields == {"version": 7, "partitions": ["a=1"]}


@pytest.mark.parametrize(
    "exc",
    [
        CommitOutcomeUnknownError("/t/_delta_log/1.json", "no reply"),
        UnsafeLogStoreError("one writer only"),
        FileExistsError("taken"),
    ],
    ids=lambda exc: type(exc).__name__,
)
def test_errors_of_the_store_come_back_too(exc: Exception) -> None:
    found = unwrap_error(through_spark(exc))
    assert type(found) is type(exc)
    assert str(found) == str(exc)


def test_other_errors_pass_unmarked() -> None:
    with pytest.raises(KeyError), marked():
        raise KeyError("x")
    assert unwrap_error(KeyError("x")) is None
    assert unwrap_error(RuntimeError("<lakelog-error {broken lakelog-error>")) is None


def test_the_text_begins_with_the_message() -> None:
    with pytest.raises(RuntimeError, match=r"\Aa clear message"), marked():
        raise DeltaError("a clear message")
