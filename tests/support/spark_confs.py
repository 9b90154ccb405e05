"""The confs of the Spark that most tests share, classic and over Connect."""

from __future__ import annotations

CONF = {
    "spark.driver.memory": "1500m",
    # With room for what is young, Java looks through the rest less often.
    "spark.driver.extraJavaOptions": "-Xmn500m",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": "/nonexistent/lakelog-warehouse",
}
