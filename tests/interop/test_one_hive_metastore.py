"""delta-spark and lakelog take turns on the tables of one Hive metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.delta_spark import PeerUnavailableError, installed
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.hive_metastore import running_metastore
from support.lakelog_peer import LakelogPeer
from support.servers._service import ServerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[tuple[DeltaSparkPeer, DeltaSparkPeer]]:
    """delta-spark, and lakelog, on one metastore."""
    try:
        where = installed()
        with (
            running_metastore(where, tmp_path) as confs,
            DeltaSparkPeer(where, confs, timeout=600) as theirs,
            LakelogPeer(confs, timeout=600) as ours,
        ):
            yield theirs, ours
    except (PeerUnavailableError, ServerUnavailableError) as exc:
        pytest.skip(str(exc))


def _rows(peer: DeltaSparkPeer, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in peer.sql(sql)]


@pytest.mark.needs("delta_spark")
@pytest.mark.timeout(600)
def test_names_are_used_in_turns(
    peers: tuple[DeltaSparkPeer, DeltaSparkPeer], tmp_path: Path
) -> None:
    theirs, ours = peers
    outside = tmp_path / "outside"
    theirs.sql("CREATE TABLE a (id BIGINT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'x'")
    ours.sql(f"CREATE TABLE b USING delta LOCATION '{outside}' AS SELECT 1L AS id, 'b' AS p")
    # Each writes to, and changes, what the other one made.
    ours.sql("INSERT INTO a VALUES (1, 'a'), (2, 'a')")
    ours.sql("ALTER TABLE a ADD COLUMNS (more INT)")
    theirs.sql("INSERT INTO a VALUES (3, 'b', 3)")
    theirs.sql("ALTER TABLE b ADD COLUMNS (more INT)")
    ours.sql("INSERT INTO b VALUES (2, 'c', 2)")
    theirs.sql("MERGE INTO b USING a ON b.id = a.id WHEN NOT MATCHED THEN INSERT *")
    ours.sql("UPDATE a SET more = 9 WHERE id = 1")
    for peer in peers:
        assert _rows(peer, "SELECT * FROM a ORDER BY id") == [
            (1, "a", 9),
            (2, "a", None),
            (3, "b", 3),
        ]
        assert _rows(peer, "SELECT id, more FROM default.b ORDER BY id") == [
            (1, None),
            (2, 2),
            (3, 3),
        ]
        assert [row["col_name"] for row in peer.sql("SHOW COLUMNS IN b")] == ["id", "p", "more"]
    # The entries are alike: what they are of, and no columns, which would be those of then.
    kinds = {}
    for row in theirs.sql("SHOW TABLE EXTENDED LIKE '*'"):
        lines = dict(each.split(": ", 1) for each in row["information"].split("\n") if ": " in each)
        kinds[row["tableName"]] = lines["Type"], lines["Provider"], "Schema" in row["information"]
    assert kinds == {"a": ("MANAGED", "delta", False), "b": ("EXTERNAL", "delta", False)}
    # A view of delta-spark's is one of another format's to lakelog, which leaves it to Spark.
    theirs.sql("CREATE VIEW v AS SELECT 7 AS seven")
    assert _rows(ours, "SELECT * FROM v") == [(7,)]
    with pytest.raises(DeltaSparkError, match="DELTA_TABLE_ONLY_OPERATION"):
        ours.sql("OPTIMIZE v")
    # Names change, and end, for both at once: the cache of the other one is told.
    ours.sql("ALTER TABLE a RENAME TO c")
    assert _rows(theirs, "SELECT count(*) FROM c") == [(3,)]
    theirs.sql("DROP TABLE c")
    ours.sql("REFRESH TABLE b")
    with pytest.raises(DeltaSparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        ours.sql("SELECT * FROM c")
    ours.sql("DROP TABLE b")
    with pytest.raises(DeltaSparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        theirs.sql("SELECT * FROM b")
    assert not (tmp_path / "warehouse" / "c").exists()
    assert (outside / "_delta_log").exists()
    ours.sql(f"CREATE TABLE again USING delta LOCATION '{outside}'")
    assert _rows(theirs, "SELECT count(*) FROM again") == [(3,)]
    ours.sql("CREATE TABLE m (id INT) USING delta")
    theirs.sql("INSERT INTO m VALUES (5)")
    theirs.sql("CREATE OR REPLACE TABLE m USING delta AS SELECT 'x' AS other")
    assert _rows(ours, "SELECT * FROM m") == [("x",)]
    ours.sql("DROP TABLE m")
    assert not (tmp_path / "warehouse" / "m").exists()
