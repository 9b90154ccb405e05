"""All checks in one class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.basics import BasicChecks
from lakelog.logstores.conformance.checks.crashes import CrashChecks
from lakelog.logstores.conformance.checks.expect import CheckNotRunError
from lakelog.logstores.conformance.checks.listings import ListingChecks
from lakelog.logstores.conformance.checks.races import RaceChecks
from lakelog.logstores.conformance.checks.sharing import SharingChecks
from lakelog.logstores.conformance.checks.staging import StagingChecks

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore


class LogStoreConformance(
    BasicChecks, ListingChecks, RaceChecks, StagingChecks, CrashChecks, SharingChecks
):
    """Every promise of the contract, a method each. Inherit it, and define two fixtures.

    `store` gives the store, and `root` the URI of a folder that exists or can be created; each
    check works in a new folder below it and leaves it there. Set the sizes (`many_files`,
    `large_megabytes`, `race_rounds`, …) lower where requests are slow, and override `another`
    where `Class(conf)` is not enough to reach the same storage.
    """

    def test_any_history_agrees_with_a_dict(self, store: LogStore, root: str) -> None:
        """Random histories of two instances, made, copied and closed, agree with a dict."""
        try:
            from lakelog.logstores.conformance.checks.model import run_model
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            raise CheckNotRunError("it needs another package: pip install hypothesis") from None

        run_model(lambda: self.another(store), root, self.model_examples)


class QuickConformance(LogStoreConformance):
    """The same with less work: one page of a listing, few races. A pass means less."""

    many_files = 60
    large_megabytes = 4
    race_rounds = 5
    race_processes = 2
    crash_rounds = 1
    model_examples = 5
