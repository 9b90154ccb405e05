"""Check rows by Great Expectations before they are written, and a version of the whole table."""

from __future__ import annotations

import os
import sys

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd

from lakelog.core import DeltaLog, write_arrow

LAKE = os.environ.get("LAKE", "/lake")
ORDERS = f"{LAKE}/orders"

context = gx.get_context(mode="ephemeral")
rows = (
    context.data_sources.add_pandas("lake")
    .add_dataframe_asset("orders")
    .add_batch_definition_whole_dataframe("rows")
)
suite = gx.ExpectationSuite(
    "orders",
    expectations=[
        gxe.ExpectColumnValuesToBeUnique(column="id"),
        gxe.ExpectColumnValuesToBeInSet(column="country", value_set=["DE", "FR", "US"]),
        gxe.ExpectColumnValuesToBeBetween(column="amount", min_value=0, strict_min=True),
    ],
)
checks = context.validation_definitions.add(
    gx.ValidationDefinition(name="orders", data=rows, suite=context.suites.add(suite))
)


def failed(orders: pd.DataFrame) -> list[str]:
    """Which expectations do not hold."""
    result = checks.run(batch_parameters={"dataframe": orders})
    return [each.expectation_config.type for each in result.results if not each.success]


def load(orders: pd.DataFrame) -> int:
    """Append rows of which all expectations hold; the version that has them."""
    if found := failed(orders):
        raise ValueError(f"nothing was written: {', '.join(found)}")
    return write_arrow(ORDERS, orders, mode="append")


def audit() -> tuple[int, list[str]]:
    """Check the newest version, which stays the same whoever writes in the meantime."""
    table = DeltaLog.for_table(ORDERS).update()
    return table.version, failed(table.to_arrow().to_pandas())


if __name__ == "__main__":
    print(load(pd.read_csv(sys.argv[1])), audit())
