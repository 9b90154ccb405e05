from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pytest

from lakelog.core import write_arrow
from lakelog.core.commit import lock as durable
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import Capabilities, LocalLogStore, Scope
from lakelog.logstores.keys import LAKELOG_KEYS

ROWS = pa.table({"id": [1]})


class Forgetful(LocalLogStore):
    scope = Scope.HOST

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, durable=False, exclusive_create=self.scope)


class OfOneProcess(Forgetful):
    scope = Scope.PROCESS


@pytest.fixture(autouse=True)
def fresh() -> None:
    durable._warn.cache_clear()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        each.getMessage()
        for each in caplog.records
        if each.levelno == logging.WARNING and "survives a crash" in each.getMessage()
    ]


def conf(store: type[LocalLogStore], **more: str) -> dict[str, str]:
    return {"spark.delta.logStore.class": f"{store.__module__}.{store.__qualname__}"} | more


def test_one_warning_a_store_and_process_says_that_commits_may_be_lost(tmp_path, caplog) -> None:
    for table in ("a", "b", "a"):
        write_arrow(str(tmp_path / table), ROWS, mode="append", conf=conf(Forgetful))
    (message,) = warnings(caplog)
    assert "Forgetful" in message
    assert durable.WARN_KEY in message


def test_what_a_store_calls_its_storage_is_its_own(caplog) -> None:
    class WithAStorage(Forgetful):
        storage = "a bucket"

    durable.warn_if_not_durable(WithAStorage({}), DeltaConf.from_mapping({}))
    (message,) = warnings(caplog)
    assert message.startswith("WithAStorage ")


def test_the_conf_silences_it(tmp_path, caplog) -> None:
    silent = conf(Forgetful, **{durable.WARN_KEY: "false"})
    write_arrow(str(tmp_path / "t"), ROWS, mode="append", conf=silent)
    assert warnings(caplog) == []


@pytest.mark.parametrize("store", [LocalLogStore, OfOneProcess])
def test_a_store_that_is_durable_or_of_one_process_gets_none(tmp_path, caplog, store) -> None:
    write_arrow(str(tmp_path / "t"), ROWS, mode="append", conf=conf(store))
    assert warnings(caplog) == []


def test_a_value_that_is_no_truth_value_is_refused(tmp_path) -> None:
    with pytest.raises(DeltaAnalysisError, match=durable.WARN_KEY):
        write_arrow(str(tmp_path / "t"), ROWS, conf=conf(Forgetful, **{durable.WARN_KEY: "no"}))
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_key_is_known() -> None:
    assert durable.WARN_KEY in {key.name for key in LAKELOG_KEYS}
