"""An asset that is a Delta table, made again each time that another table has a new version."""

import os

import dagster as dg

from lakelog.core import DeltaLog, create_table, merge
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    DeltaConcurrentModificationException,
    StorageUnavailableError,
)

LAKE = os.environ.get("LAKE", "/lake")
FLIGHTS, CARRIERS = f"{LAKE}/flights", f"{LAKE}/carriers"
JOB = "carriers"  # what the table knows the job by
RETRY_SECONDS = float(os.environ.get("RETRY_SECONDS", "30"))

flights = dg.AssetSpec("flights", description="Written by others", metadata={"path": FLIGHTS})


@dg.asset(deps=[flights])
def carriers() -> dg.MaterializeResult:
    """Flights and mean delay of each carrier."""
    create_table(
        CARRIERS, "carrier string, flights bigint, delay double", mode="create_if_not_exists"
    )
    source = DeltaLog.for_table(FLIGHTS).update()
    rows = source.to_arrow(["carrier", "delay"])
    delays = rows.group_by("carrier").aggregate([([], "count_all"), ("delay", "mean")])
    delays = delays.rename_columns(["carrier", "flights", "delay"])
    try:
        # The number makes a second run of the same version harmless: the table knows it.
        job = merge(CARRIERS, delays, ["carrier"], app_id=JOB, app_version=source.version)
        job.when_matched_update_all().when_not_matched_insert_all().execute()
    except (
        DeltaConcurrentModificationException,
        CommitOutcomeUnknownError,  # harmless here, since the commit has a number
        StorageUnavailableError,
    ) as error:
        # All else fails again, however often it is tried, so the asset has no RetryPolicy.
        raise dg.RetryRequested(max_retries=5, seconds_to_wait=RETRY_SECONDS) from error
    table = DeltaLog.for_table(CARRIERS).update()
    return dg.MaterializeResult(
        data_version=dg.DataVersion(str(table.version)),
        metadata={"version": table.version, "flights version": source.version},
    )


@dg.sensor(target=[carriers], minimum_interval_seconds=60)
def new_version(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Ask for a run where `flights` has a version that no run was asked for yet."""
    version = str(DeltaLog.for_table(FLIGHTS).update().version)
    if version == context.cursor:
        return dg.SkipReason(f"version {version} was the last one")
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=version)], cursor=version)


defs = dg.Definitions(assets=[flights, carriers], sensors=[new_version])
