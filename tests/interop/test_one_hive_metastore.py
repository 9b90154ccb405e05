"""delta-spark and lakelog take turns on the tables of one Hive metastore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import named_tables
from support.delta_spark import PeerUnavailableError, installed
from support.delta_spark_peer import DeltaSparkError, DeltaSparkPeer
from support.hive_metastore import running_metastore
from support.lakelog_peer import LakelogPeer
from support.servers._service import ServerUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator


# A session of each, and a metastore, for all of them.
pytestmark = [
    pytest.mark.needs("delta_spark"), pytest.mark.xdist_group("hive"), pytest.mark.timeout(280)
]  # fmt: skip
SCRIPT = Path(str(named_tables.__file__))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the metastore is, and its managed tables."""
    return tmp_path_factory.mktemp("hive")


@pytest.fixture(scope="module")
def peers(folder: Path) -> Iterator[tuple[DeltaSparkPeer, DeltaSparkPeer]]:
    """delta-spark, and lakelog, on one metastore."""
    try:
        where = installed()
        with (
            running_metastore(where, folder) as confs,
            DeltaSparkPeer(where, confs, timeout=260) as theirs,
            LakelogPeer(confs, timeout=260) as ours,
        ):
            yield theirs, ours
    except (PeerUnavailableError, ServerUnavailableError) as exc:
        pytest.skip(str(exc))


def _rows(peer: DeltaSparkPeer, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in peer.sql(sql)]


@pytest.mark.one_day_in(2)
def test_names_are_used_in_turns(
    peers: tuple[DeltaSparkPeer, DeltaSparkPeer], folder: Path
) -> None:
    theirs, ours = peers
    outside = folder / "outside"
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
    # Views over tables, of either, are read by both, with the newest rows.
    ours.sql("CREATE VIEW by_ours AS SELECT id, more FROM a WHERE id > 1")
    theirs.sql("CREATE VIEW by_theirs AS SELECT id FROM b")
    theirs.sql("INSERT INTO a VALUES (4, 'b', 4)")
    ours.sql("INSERT INTO b VALUES (4, 'b', 4)")
    for peer in peers:
        assert _rows(peer, "SELECT * FROM by_ours ORDER BY id") == [(2, None), (3, 3), (4, 4)]
        assert _rows(peer, "SELECT * FROM by_theirs ORDER BY id") == [(1,), (2,), (3,), (4,)]
    theirs.sql("DROP VIEW by_ours")
    ours.sql("DROP VIEW by_theirs")
    for peer in peers:
        with pytest.raises(DeltaSparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
            peer.sql("SELECT * FROM by_ours")
    # Names change, and end, for both at once: the cache of the other one is told.
    ours.sql("ALTER TABLE a RENAME TO c")
    assert _rows(theirs, "SELECT count(*) FROM c") == [(4,)]
    theirs.sql("DROP TABLE c")
    ours.sql("REFRESH TABLE b")
    with pytest.raises(DeltaSparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        ours.sql("SELECT * FROM c")
    ours.sql("DROP TABLE b")
    with pytest.raises(DeltaSparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
        theirs.sql("SELECT * FROM b")
    assert not (folder / "warehouse" / "c").exists()
    assert (outside / "_delta_log").exists()
    ours.sql(f"CREATE TABLE again USING delta LOCATION '{outside}'")
    assert _rows(theirs, "SELECT count(*) FROM again") == [(4,)]
    ours.sql("CREATE TABLE m (id INT) USING delta")
    theirs.sql("INSERT INTO m VALUES (5)")
    theirs.sql("CREATE OR REPLACE TABLE m USING delta AS SELECT 'x' AS other")
    assert _rows(ours, "SELECT * FROM m") == [("x",)]
    ours.sql("DROP TABLE m")
    assert not (folder / "warehouse" / "m").exists()


@pytest.mark.one_day_in(6, 2)
@pytest.mark.soak
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_methods_on_names_are_used_in_turns(
    peers: tuple[DeltaSparkPeer, DeltaSparkPeer], tmp_path: Path, first: str
) -> None:
    """`saveAsTable`, `insertInto`, `writeTo`, `mergeInto`, `toTable`, `spark.table`, `forName`."""
    one, two = peers if first == "theirs" else peers[::-1]
    place = tmp_path / first
    one.script(SCRIPT, "make", place)
    expected = {
        "saved": [[[1, "a"], [2, "b"]], ["id", "p"]],
        "made": [[[1, "a"], [2, "b"]], ["id", "p"]],
        "outside": [[[1, "a"]], ["id", "p"]],
        "streamed": [[[1, "a"], [2, "b"]], ["id", "p"]],
    }
    assert two.script(SCRIPT, "read", place) == expected
    two.script(SCRIPT, "go_on", place)
    saved = [[1, "A"], [2, "b"], [3, "c"], [4, "c"], [9, "z"]]
    for peer in peers:
        answers = peer.script(SCRIPT, "read", place)
        assert answers["saved"] == [saved, ["id", "p"]]
        assert answers["made"] == [[[3, "c"], [4, "a"], [5, "b"]], ["id", "p"]]
        assert answers["outside"] == [[[7]], ["other"]]
        # The row that MERGE rewrote came again, with the file that has it.
        assert {tuple(row) for row in answers["streamed"][0]} == {(1, "a"), *map(tuple, saved)}
    _, ours = peers
    assert ours.script(SCRIPT, "by_python", place) == [
        "CREATE TABLE AS SELECT", "WRITE", "WRITE", "MERGE", "DELETE",
    ]  # fmt: skip
    assert (place / "outside" / "_delta_log").exists()
    for peer, kinds in ((one, ("saved", "made")), (two, ("outside", "streamed"))):
        for kind in kinds:
            peer.sql(f"DROP TABLE {first}_{kind}")
