from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from lakelog.spark.format.claims import delta_is_claimed


def session(
    found: str | None = None, refuses: bool = False, confs: dict[str, str] | None = None
) -> Any:
    """A session whose Spark answers whether a class loads."""

    def sql(text: str) -> Any:
        if refuses:
            raise PySparkException("reflection is forbidden")
        return SimpleNamespace(first=lambda: SimpleNamespace(found=found))

    return SimpleNamespace(conf=SimpleNamespace(get=(confs or {}).get), sql=sql)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.0"),
        ("spark.jars", "/opt/jars/delta-spark_4.2_2.13-4.4.0.jar"),
        ("spark.sql.extensions", "a.B,io.delta.sql.DeltaSparkSessionExtension"),
    ],
)
def test_a_conf_that_brings_delta_sparks_jar_claims_delta(key: str, value: str) -> None:
    assert delta_is_claimed(session(confs={key: value}))


def test_a_class_that_loads_claims_delta() -> None:
    assert delta_is_claimed(session(found="class org.apache.spark.sql.delta…"))


def test_other_jars_and_a_silent_spark_claim_nothing() -> None:
    assert not delta_is_claimed(session(confs={"spark.jars": "/opt/jars/iceberg-spark.jar"}))
    assert not delta_is_claimed(session(refuses=True))
