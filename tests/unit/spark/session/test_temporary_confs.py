from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from lakelog.spark.session.temporary_confs import temporary_confs


class Conf:
    """The runtime conf of a session, as a dict."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]


def session(**values: str) -> Any:
    return SimpleNamespace(conf=Conf(**values))


def test_what_was_set_comes_back_and_what_was_not_goes() -> None:
    spark = session(a="1")
    with temporary_confs(spark, {"a": "2", "b": "3"}):
        assert spark.conf.values == {"a": "2", "b": "3"}
    assert spark.conf.values == {"a": "1"}


def test_a_failure_restores_too() -> None:
    spark = session(a="1")
    with pytest.raises(KeyError), temporary_confs(spark, {"a": "2"}):
        raise KeyError
    assert spark.conf.values == {"a": "1"}


def test_a_key_that_cannot_be_set_undoes_those_before_it() -> None:
    spark = session(a="1")
    plain = spark.conf.set

    def refuse(key: str, value: str) -> None:
        if key == "b":
            raise ValueError(key)
        plain(key, value)

    spark.conf.set = refuse
    with pytest.raises(ValueError, match="b"), temporary_confs(spark, {"a": "2", "b": "3"}):
        pass
    assert spark.conf.values == {"a": "1"}


def test_the_last_of_overlapping_threads_restores_the_users_value() -> None:
    spark = session(a="user")
    inside, leave = threading.Event(), threading.Event()

    def second() -> None:
        with temporary_confs(spark, {"a": "ours"}):
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=second)
    with temporary_confs(spark, {"a": "ours"}):
        thread.start()
        assert inside.wait(10)
    assert spark.conf.values == {"a": "ours"}
    leave.set()
    thread.join(10)
    assert spark.conf.values == {"a": "user"}
