"""delta-spark and lakelog commit to one table on S3 at once, both by way of the lock table.

delta-spark runs on the JVM with its own commit loop, on Hadoop's S3A, with Delta's
`S3DynamoDBLogStore` where Maven has it, else with the Java store of `support/java` that follows it.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.logstores.s3_dynamodb import log_objects as _dynamodb_objects
from lakelog.logstores.s3_dynamodb import migrate
from support import appenders
from support.backends import backend_of
from support.delta_spark import PeerUnavailableError
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.delta_spark_s3 import installed_with_s3
from support.examples import examples
from support.faults import Crash
from support.samples import ids

pytestmark = [
    pytest.mark.xdist_group("s3 and dynamodb on the jvm"),
    pytest.mark.needs("delta_spark", "delta_spark_s3", "s3a", "minio", "dynamodb"),
]

SCHEMA = "id long, writer string"
COMMITS = examples(3)
AT_A_TIME = 1


@pytest.fixture(scope="module")
def stop(tmp_path_factory):
    """While this file exists, the JVM's writers stop right after the row of their commit."""
    return tmp_path_factory.mktemp("stop") / "now"


@pytest.fixture(scope="module")
def lock_table():
    return f"log-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def jvm(minio, dynamodb, lock_table, stop, record_testsuite_property):
    try:
        installed = installed_with_s3()
    except PeerUnavailableError as exc:
        pytest.skip(str(exc))
    record_testsuite_property("store on the JVM", "Delta's" if installed.by_delta else "ours")
    confs = {
        "spark.delta.logStore.s3a.impl": installed.store,
        **minio.conf,
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": lock_table,
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region": dynamodb.region,
        "spark.hadoop.lakelog.tests.endpoint": dynamodb.url,
        "spark.hadoop.lakelog.tests.access.key": dynamodb.access_key,
        "spark.hadoop.lakelog.tests.secret.key": dynamodb.secret_key,
        "spark.hadoop.lakelog.tests.stop": str(stop),
    }
    with DeltaSparkPeer(installed.peer, confs, timeout=260) as peer:
        yield peer


@pytest.fixture
def backend(request, lock_table):
    made = backend_of("minio and DynamoDB", request)
    made.conf["spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName"] = lock_table
    return made


@pytest.fixture
def rows_of_table(dynamodb, lock_table):
    """Every row of the lock table for a Delta table, by file name."""
    from boto3.session import Session

    client = Session().client(
        "dynamodb",
        endpoint_url=dynamodb.url,
        region_name=dynamodb.region,
        aws_access_key_id=dynamodb.access_key,
        aws_secret_access_key=dynamodb.secret_key,
    )

    def rows(table):
        found = client.query(
            TableName=lock_table,
            KeyConditionExpression="tablePath = :t",
            ExpressionAttributeValues={":t": {"S": table}},
            ConsistentRead=True,
        )["Items"]
        return {row["fileName"]["S"]: row["complete"]["S"] for row in found}

    yield rows
    client.close()


def append(log, number):
    """One commit of ours."""
    return write_arrow(log.table, appenders.row(number, "lakelog"), conf=log.conf, mode="append")


def versions(log):
    return {entry.version: entry for entry in log.history()}


# A commit of delta-spark's takes four seconds there, and much longer on a busy machine.
@pytest.mark.one_day_in(3, 1)
@pytest.mark.soak
@pytest.mark.timeout(280)
def test_commits_of_both_at_once_are_all_there_and_once(jvm, backend, rows_of_table):
    table = backend.uri("at-once")
    log = DeltaLog.for_table(table, backend.conf)
    append(log, 0)
    # Spark's first commit takes seconds, in which all of ours would be made.
    jvm.append_rows(table, SCHEMA, [[1, "delta-spark"]])
    ready = threading.Barrier(2)

    def theirs():
        ready.wait(60)
        batches = [[[1000 + number, "delta-spark"]] for number in range(COMMITS)]
        jvm.append_rows(table, SCHEMA, *batches)

    def ours(running):
        ready.wait(60)
        mine = []
        for number in range(COMMITS):
            mine.append(append(log, 2000 + number))
            # Spark needs several times as long; it would lose each race, and have no turn.
            while len(mine) % AT_A_TIME == 0 and log.update().version == mine[-1]:
                if wait([running], 0.05).done:
                    break
        return mine

    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(theirs)
        acknowledged = pool.submit(ours, running)
        running.result(timeout=260)
        mine = acknowledged.result(timeout=260)

    expected = [0, 1, *range(1000, 1000 + COMMITS), *range(2000, 2000 + COMMITS)]
    assert len(set(mine)) == COMMITS, "each commit got a version of its own"
    history = versions(log)
    assert sorted(history) == list(range(2 * COMMITS + 2))
    by_spark = {v for v, e in history.items() if "Apache-Spark" in (e.engine_info or "")}
    assert len(by_spark) == COMMITS + 1
    assert not by_spark & set(mine)
    turns = sum((v in by_spark) != (w in by_spark) for v, w in itertools.pairwise(sorted(history)))
    assert turns > 3, "they did not commit at once"
    assert ids(log.update().to_arrow()) == expected
    assert ids(jvm.read(table)) == expected
    assert sorted(row["id"] for row in backend.rows_by_deltalake("at-once")) == expected
    rows = rows_of_table(table)
    assert sorted(rows) == [f"{version:020d}.json" for version in range(2 * COMMITS + 2)]
    assert set(rows.values()) == {"true"}


def test_ours_finishes_what_delta_spark_began(jvm, backend, rows_of_table, stop):
    table = backend.uri("theirs-begun")
    log = DeltaLog.for_table(table, backend.conf)
    append(log, 1)
    stop.touch()
    try:
        with pytest.raises(DeltaSparkError, match="stopped by the test"):
            jvm.append_rows(table, SCHEMA, [[2, "delta-spark"]])
    finally:
        stop.unlink()
    assert rows_of_table(table)[f"{1:020d}.json"] == "false"

    # A reader that lists finishes the commit, and so does a writer of the next version.
    assert ids(DeltaLog.for_table(table, backend.conf).snapshot.to_arrow()) == [1, 2]
    assert append(log, 3) == 2
    assert set(rows_of_table(table).values()) == {"true"}
    assert ids(jvm.read(table)) == [1, 2, 3]


def test_delta_spark_finishes_what_ours_began(jvm, backend, rows_of_table, monkeypatch):
    table = backend.uri("ours-begun")
    log = DeltaLog.for_table(table, backend.conf)
    append(log, 1)

    def crash(*_):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(_dynamodb_objects.LogObjects, "publish", crash)
        with pytest.raises(Crash):
            append(log, 2)
    assert rows_of_table(table)[f"{1:020d}.json"] == "false"

    assert ids(jvm.read(table)) == [1, 2]
    assert set(rows_of_table(table).values()) == {"true"}
    jvm.append_rows(table, SCHEMA, [[3, "delta-spark"]])
    assert ids(log.update().to_arrow()) == [1, 2, 3]
    assert sorted(versions(log)) == [0, 1, 2]


def test_delta_spark_stops_where_the_log_moved_to_conditional_puts_until_it_moved_back(
    jvm, backend
):
    table = backend.uri("moved")
    log = DeltaLog.for_table(table, backend.conf)
    append(log, 1)
    jvm.append_rows(table, SCHEMA, [[2, "delta-spark"]])

    migrate(table, backend.conf, to="conditional")
    for work in (
        lambda: jvm.append_rows(table, SCHEMA, [[0, "too late"]]),
        lambda: jvm.read(table),
    ):
        with pytest.raises(DeltaSparkError, match="THIS-TABLE-MOVED-TO-CONDITIONAL-PUT"):
            work()
    conf = {key: value for key, value in backend.conf.items() if "delta.logStore." not in key}
    assert append(DeltaLog.for_table(table, conf), 3) == 2

    migrate(table, backend.conf, to="dynamodb")
    jvm.append_rows(table, SCHEMA, [[4, "delta-spark"]])
    assert ids(jvm.read(table)) == [1, 2, 3, 4]
    assert ids(DeltaLog.for_table(table, backend.conf).snapshot.to_arrow()) == [1, 2, 3, 4]
