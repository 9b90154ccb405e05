"""One writer process: appends its months, each in two deliveries, to the table."""

from __future__ import annotations

from functools import partial

from child import Child
from pipeline import start_session, wide
from settings import PARTS

import lakelog.spark as delta


def main() -> None:
    child = Child()
    settings = child.settings
    spark = start_session(settings, child.name)
    child.wait_for_go()
    for month in settings.shares[child.name]:
        delivery = settings.source / "deliveries" / f"{month}.parquet"
        flights = wide(spark, settings, delivery)
        for part in PARTS:
            child.say("writing", month=month, part=part)
            rows = flights.where("day <= 15" if part == 1 else "day > 15")
            job = (
                delta.write(rows)
                .mode("append")
                .partitionBy("month")
                .option("userMetadata", f"{child.name}: month {month}, {PARTS[part]}")
                # A delivery that is in the table already is not appended twice.
                .option("txnAppId", f"deliveries of month {month}")
                .option("txnVersion", part)
            )
            version = child.again_until_committed(partial(job.save, settings.table))
            child.say("committed", version=version, month=month, part=part)
    child.say("done")
    spark.stop()


if __name__ == "__main__":
    main()
