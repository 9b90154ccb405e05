"""Bring one Delta table up to date with another, each time that one has a new version.

`new_version` waits for a version of `flights` that `carriers` does not know yet, and `merge_delays`
merges what the flights of that version say of each carrier.
"""

from __future__ import annotations

import os
from datetime import timedelta

from airflow.sdk import ExceptionRetryPolicy, PokeReturnValue, RetryAction, RetryRule, dag, task
from lineage import lineage

from lakelog.core import DeltaLog, create_table, merge, read_arrow
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    StorageUnavailableError,
)

LAKE = os.environ.get("LAKE", "/lake")
FLIGHTS, CARRIERS = f"{LAKE}/flights", f"{LAKE}/carriers"
JOB = "carriers"  # what the table knows the job by

# All else fails again, however often it is tried: a missing column, rows that break a constraint.
AGAIN = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            [
                DeltaConcurrentModificationException,
                CommitOutcomeUnknownError,  # harmless here, since the commit has a number
                StorageUnavailableError,
            ],
            retry_delay=timedelta(seconds=float(os.environ.get("RETRY_SECONDS", "30"))),
        ),
        RetryRule(Exception, RetryAction.FAIL),
    ]
)


@dag(schedule="@continuous", max_active_runs=1, catchup=False)
def carriers():
    @task.sensor(poke_interval=60, mode="reschedule")
    def new_version() -> PokeReturnValue:
        create_table(
            CARRIERS, "carrier string, flights bigint, delay double", mode="create_if_not_exists"
        )
        done = DeltaLog.for_table(CARRIERS).snapshot.txn_version(JOB)
        newest = DeltaLog.for_table(FLIGHTS).snapshot.version
        return PokeReturnValue(newest > done, newest)

    @task(retries=5, retry_policy=AGAIN)
    def merge_delays(version: int) -> int | None:
        flights = read_arrow(FLIGHTS, ["carrier", "delay"], version=version)
        delays = flights.group_by("carrier").aggregate([([], "count_all"), ("delay", "mean")])
        delays = delays.rename_columns(["carrier", "flights", "delay"])
        with lineage("carriers.merge_delays", reads={FLIGHTS: version}):
            # The number makes a second run of the same version harmless: the table knows it.
            rows = merge(CARRIERS, delays, ["carrier"], app_id=JOB, app_version=version)
            done = rows.when_matched_update_all().when_not_matched_insert_all().execute()
        return done.version

    merge_delays(new_version())


carriers()
