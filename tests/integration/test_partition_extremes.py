"""Partition values that a log has no text for, by every way that Spark's rows may take."""

from __future__ import annotations

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import register, unwrap_error, write

pytestmark = pytest.mark.connect

VALUES = {
    "binary": "X'FF'",
    "date": "date_from_unix_date(4000000)",
    "early": "date_from_unix_date(-800000)",
    "timestamp": "timestamp_micros(300000000000000000)",
    "ntz": "TIMESTAMP_NTZ'9999-12-31 00:00:00' + INTERVAL 400 DAY",
}


@pytest.mark.soak
@pytest.mark.parametrize("way", ["driver", "native", "arrow", "source"])
def test_a_value_without_a_text_is_refused_by_column_and_value(spark, tmp_path, way, of_the_day):
    for name, sql in of_the_day([*VALUES.items()], 2, about=f"extremes by {way}"):
        frame = spark.sql(f"SELECT id, {sql} AS p FROM RANGE(1)")
        table = str(tmp_path / name)
        if way == "source":
            register(spark)
            with pytest.raises(Exception) as raised:
                frame.write.format("lakelog").option("partitionBy", "p").mode("append").save(table)
            error = unwrap_error(raised.value)
        else:
            spark.conf.set("spark.lakelog.write.path", way)
            try:
                with pytest.raises(DeltaAnalysisError) as caught:
                    write(frame).partitionBy("p").save(table)
            finally:
                spark.conf.unset("spark.lakelog.write.path")
            error = caught.value
        assert isinstance(error, DeltaAnalysisError), name
        assert error.fields["column"] == "p", name
        assert error.fields["value"] in str(error), name
