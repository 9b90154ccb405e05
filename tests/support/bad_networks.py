"""The kit's fault checks, on servers that answer at once: what they wait for can be short."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakelog.logstores.conformance import HttpFaultConformance
from lakelog.logstores.hdfs import access as hdfs_access
from lakelog.logstores.object_store import store as object_store
from support.kit_sizes import PAGE, short_pages

if TYPE_CHECKING:
    from collections.abc import Mapping

GIVING_UP: Final = (
    "test_a_write_that_was_refused_is_known_as_not_made",
    "test_a_request_that_may_land_later_leaves_the_outcome_unknown",
    "test_a_service_that_dies_in_mid_write_leaves_the_outcome_unknown",
    "test_an_endpoint_that_is_down_is_an_error_in_bounded_time",
    "test_no_error_of_the_transport_shows_a_secret",
)
"""Checks that end when a store gives up: it need not have the time to succeed."""


def brief_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a store whose budget is spent look for one second more, and not for five."""
    policy = object_store.retry_policy

    def brief(conf: Mapping[str, str]) -> Any:
        return dataclasses.replace(policy(conf), grace=1.0)

    monkeypatch.setattr(object_store, "retry_policy", brief)
    monkeypatch.setattr(hdfs_access, "retry_policy", brief)


class Impatient:
    """Has the conf of stores that give up early."""

    @pytest.fixture
    def impatient(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Mapping[str, str]:
        """Their last look is as short."""
        brief_last_look(monkeypatch)
        gives_up = request.node.originalname in GIVING_UP
        return {
            "spark.lakelog.store.endpointProbe": "never",
            "spark.lakelog.store.request.timeout": "1",
            "spark.lakelog.store.retry.timeBudget": "1.5" if gives_up else "3",
        }


class OnABadNetwork(Impatient, HttpFaultConformance):
    """With short pages; a subclass has a dialect of such."""

    @pytest.fixture(autouse=True)
    def _short_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        short_pages(monkeypatch)

    def __init_subclass__(cls) -> None:
        """Let the dialect know of the pages."""
        super().__init_subclass__()
        cls.dialect = dataclasses.replace(cls.dialect, page=PAGE)
