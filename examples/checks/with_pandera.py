"""Write the rows that pass a pandera schema to one Delta table, and the others to another."""

from __future__ import annotations

import os
import sys

import pandera.polars as pa
import polars as pl

from lakelog.core import write_arrow

LAKE = os.environ.get("LAKE", "/lake")
ORDERS, REFUSED = f"{LAKE}/orders", f"{LAKE}/orders_refused"


class Order(pa.DataFrameModel):
    id: int = pa.Field(ge=1)
    country: str = pa.Field(isin=["DE", "FR", "US"])
    amount: float = pa.Field(gt=0, nullable=True)


def load(orders: pl.DataFrame) -> tuple[int, int]:
    """Write a batch; how many rows passed, and how many did not."""
    try:
        good, bad = Order.validate(orders, lazy=True), orders.clear()
    except pa.errors.SchemaErrors as found:
        if found.failure_cases["index"].is_null().any():
            raise  # a column is missing, or has another type: no row is right
        rows = found.failure_cases["index"].unique()
        wrong = pl.int_range(orders.height, eager=True).is_in(rows.to_list())
        good, bad = orders.filter(~wrong), orders.filter(wrong)
    write_arrow(ORDERS, good, mode="append")
    if bad.height:
        write_arrow(REFUSED, bad, mode="append")
    return good.height, bad.height


if __name__ == "__main__":
    print(load(pl.read_csv(sys.argv[1])))
