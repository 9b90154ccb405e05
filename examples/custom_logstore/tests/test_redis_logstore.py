"""The store on a real Redis: the kit's promises, and a table that is chosen by conf alone."""

import os
import uuid

import pyarrow as pa
import pytest
from lakelog_redis.store import RedisLogStore

from lakelog.core import DeltaLog, write_arrow
from lakelog.logstores import log_store_for
from lakelog.logstores.conformance import LogStoreConformance

CONF = {
    "spark.delta.logStore.redis.impl": "redis",
    "spark.lakelog.redis.url": os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"),
}


class TestRedisLogStore(LogStoreConformance):
    """Every promise of the contract, a test each."""

    @pytest.fixture
    def store(self):
        """The store, as the conf chooses it."""
        return log_store_for("redis://lake/t", CONF)

    @pytest.fixture
    def root(self):
        """A folder of its own."""
        return f"redis://lake/{uuid.uuid4().hex}"


def test_the_entry_point_chooses_the_store():
    """The conf names an entry point, and the scheme does the rest."""
    assert type(log_store_for("redis://lake/t", CONF)) is RedisLogStore


def test_a_table_lives_in_redis():
    """Create, append, checkpoint, read back."""
    uri = f"redis://lake/{uuid.uuid4().hex}"
    rows = pa.table({"id": pa.array(range(5), pa.int64())})
    write_arrow(uri, rows, conf=CONF, mode="append")
    write_arrow(uri, rows, conf=CONF, mode="append")
    log = DeltaLog.for_table(uri, CONF)
    log.checkpoint()
    snapshot = DeltaLog.for_table(uri, CONF).update()
    assert snapshot.version == 1
    assert snapshot.to_arrow().num_rows == 10
