"""The fault checks catch stores on HTTP that break a promise, and pass sound ones."""

from __future__ import annotations

import importlib
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores.conformance import (
    HttpFaultConformance,
    PromiseBrokenError,
    run_fault_conformance,
)
from support.bad_networks import GIVING_UP
from support.object_server import DIALECT, TinyLogStore, object_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores import LogStore

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))
STORES: dict[str, Any] = vars(importlib.import_module("broken_http"))
BROKEN = {
    name: cls for name, cls in STORES.items() if isinstance(cls, type) and hasattr(cls, "breaks")
}
CHECKS = sorted(name for name in dir(HttpFaultConformance) if name.startswith("test_"))
SECRET = uuid.uuid4().hex


class Quick(HttpFaultConformance):
    dialect = DIALECT
    patience = 60.0


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with object_server() as url:
        yield url


def maker(cls: type[LogStore], check: str = "") -> Callable[[str], LogStore]:
    budget = "1" if check in GIVING_UP else "2"
    return lambda url: cls(
        {
            "tiny.endpoint": url,
            "tiny.password": SECRET,
            "spark.lakelog.store.endpointProbe": "never",
            "spark.lakelog.store.retry.timeBudget": budget,
            "spark.lakelog.store.request.timeout": "1",
        }
    )


@pytest.mark.parametrize("name", BROKEN)
def test_a_store_that_breaks_a_promise_is_caught_by_the_check_of_that_promise(
    name: str, endpoint: str
) -> None:
    check = f"test_{BROKEN[name].breaks}"
    with pytest.raises(PromiseBrokenError) as caught:
        getattr(Quick(), check)(maker(BROKEN[name], check), endpoint, "tiny://bucket/t")
    assert "no request met" not in str(caught.value), "the fault never happened"


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_has_a_store_that_it_must_catch(check: str) -> None:
    breakers = [name for name, cls in BROKEN.items() if f"test_{cls.breaks}" == check]
    assert breakers, f"nothing shows that {check} can fail"


@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("sound", [TinyLogStore, STORES["LooksBeforeItRepeats"]])
@pytest.mark.parametrize("check", CHECKS)
def test_the_sound_stores_pass(check: str, sound: type[LogStore], endpoint: str) -> None:
    getattr(Quick(), check)(maker(sound, check), endpoint, "tiny://bucket/t")


def test_a_dialect_that_fits_nothing_is_reported() -> None:
    class Misfit(Quick):
        dialect = HttpFaultConformance.dialect

    with object_server() as url, pytest.raises(PromiseBrokenError, match="no request met"):
        Misfit().test_a_torn_listing_is_repeated_or_an_error(
            maker(TinyLogStore), url, "tiny://bucket/t"
        )


def test_an_operation_that_hangs_is_a_failure_and_no_hang() -> None:
    class Hasty(Quick):
        patience = 0.3

    store = maker(TinyLogStore)

    def patient(url: str) -> LogStore:
        made = store(url)
        made._timeout = 30.0  # type: ignore[attr-defined]  # as a store without a timeout
        return made

    with object_server() as url, pytest.raises(PromiseBrokenError, match="still hangs"):
        Hasty().test_a_create_whose_reply_is_lost_is_known_as_ours(patient, url, "tiny://bucket/t")


def test_the_runner_reports_the_fault_checks_without_pytest(endpoint: str) -> None:
    only = ["a_request_delivered_twice_is_no_conflict", "slow_replies_are_waited_for"]
    broken = maker(BROKEN["BelievesEveryRefusal"])
    report = run_fault_conformance(broken, endpoint, "tiny://bucket/t", suite=Quick, only=only)
    assert [result.name for result in report.failures] == only[:1]
    assert "did not return: FileExistsError" in str(report)
    assert report.store.endswith("BelievesEveryRefusal")
