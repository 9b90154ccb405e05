"""The confs of the Spark that most tests share, classic and over Connect."""

from __future__ import annotations

CONF = {
    "spark.driver.memory": "1500m",
    # With room for what is young, Java looks through the rest less often; and through all of it
    # each time that the old or the classes outgrow a size, which begin small.
    "spark.driver.extraJavaOptions": "-Xmn500m -Xms1500m -XX:MetaspaceSize=512m",
    # What nobody asks for needn't be kept, nor be looked through.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.warehouse.dir": "/nonexistent/lakelog-warehouse",
}
