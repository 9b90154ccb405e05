"""Appends of a Spark driver are committed by the service that its conf names."""

from lakelog.core import DeltaLog
from lakelog.core.log.commit_identity import GROUP_TAG
from lakelog.spark import read, write
from support.commit_services import SERVICE, serving_commits


def test_a_service_commits_what_spark_appends(spark, tmp_path):
    path, token = str(tmp_path / "table"), tmp_path / "token"
    write(spark.range(1)).save(path)
    with serving_commits(tmp_path, token) as (_, url):
        conf = {SERVICE: url, f"{SERVICE}.token.file": str(token)}
        for key, value in conf.items():
            spark.conf.set(key, value)
        try:
            write(spark.range(1, 2)).mode("append").save(path)
        finally:
            for key in conf:
                spark.conf.unset(key)
    assert sorted(row.id for row in read(spark).load(path).collect()) == [0, 1]
    newest, first = DeltaLog.for_table(path).history()
    assert GROUP_TAG in newest.commit_info["tags"]
    assert GROUP_TAG not in (first.commit_info.get("tags") or {})
