"""Row ids: who gets which, also after a lost race."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, Operation, delete_rows, lit, update_rows, write_arrow
from lakelog.core.actions import AddFile, DomainMetadata
from lakelog.core.errors import (
    CorruptLogError,
    DeltaAnalysisError,
    MetadataChangedException,
    ProtocolChangedException,
)
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.numbered_rows import (
    NO_MARK,
    high_water_mark,
    mark_action,
    reassigned_versions,
    with_row_ids,
)
from lakelog.core.log.file_names import checksum_path, commit_name
from support.examples import examples
from support.raw_log import RawLog, metadata
from support.samples import numbers
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SUPPORTED = {"delta.feature.rowTracking": "supported"}
ENABLED = {"delta.enableRowTracking": "true"}
DOMAIN = "delta.rowTracking"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def table(uri: str, properties: Mapping[str, str] = ENABLED) -> DeltaLog:
    return new_table(uri, properties=properties)


def file(path: str, rows: int = 1) -> AddFile:
    return replace(add_file(path), stats=json.dumps({"numRecords": rows}))


def append(uri: str, *files: AddFile) -> int:
    return open_log(uri).start_transaction().commit(list(files), Operation.write("Append"))


def open_log(uri: str) -> DeltaLog:
    return DeltaLog.for_table(uri)


def ids(uri: str) -> dict[str, tuple[int | None, int | None]]:
    """Path -> first row id and row commit version, of the live files."""
    found = open_log(uri).snapshot.files()
    return {f.path: (f.base_row_id, f.default_row_commit_version) for f in found}


def mark(uri: str) -> int:
    return high_water_mark(open_log(uri).snapshot.domain_metadata, uri)


def lines(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    text = (Path(uri) / "_delta_log" / commit_name(version)).read_text()
    return [json.loads(line)[kind] for line in text.splitlines() if f'{{"{kind}"' in line]


def test_added_files_get_ids_and_the_table_the_mark(uri: str) -> None:
    table(uri)
    append(uri, file("a", 5), file("b", 0), file("c", 2))
    append(uri, file("d", 1))
    assert ids(uri) == {"a": (0, 1), "b": (5, 1), "c": (5, 1), "d": (7, 2)}
    assert mark(uri) == 7
    (said,) = lines(uri, 2, "domainMetadata")
    assert json.loads(said["configuration"])["rowIdHighWaterMark"] == 7


def test_rows_that_come_with_a_new_table_get_ids_too(uri: str) -> None:
    write_arrow(uri, numbers(0, 4), properties=ENABLED, mode="append")
    write_arrow(uri, numbers(4, 3), mode="overwrite")
    assert sorted(ids(uri).values()) == [(4, 1)]
    assert mark(uri) == 6


def test_ids_are_assigned_as_soon_as_the_feature_is_there(uri: str) -> None:
    table(uri, SUPPORTED)
    append(uri, file("a"))
    assert ids(uri) == {"a": (0, 1)}


def test_no_ids_without_the_feature_or_while_it_is_suspended(uri: str) -> None:
    table(uri, {})
    append(uri, file("a"))
    assert ids(uri) == {"a": (None, None)}
    assert lines(uri, 1, "domainMetadata") == []
    table(uri + "2", {**SUPPORTED, "delta.rowTrackingSuspended": "true"})
    append(uri + "2", file("a"))
    assert ids(uri + "2") == {"a": (None, None)}


def test_a_commit_that_adds_nothing_leaves_the_mark_alone(uri: str) -> None:
    table(uri)
    append(uri, file("a"))
    (a,) = open_log(uri).snapshot.files()
    open_log(uri).start_transaction().commit([a.remove(1)], Operation("DELETE"))
    assert lines(uri, 2, "domainMetadata") == []
    assert lines(uri, 2, "remove")[0]["baseRowId"] == 0
    assert mark(uri) == 0


def test_a_file_that_is_added_again_keeps_its_ids(uri: str) -> None:
    table(uri)
    append(uri, file("a", 3), file("b", 3))
    (a, _) = sorted(open_log(uri).snapshot.files(), key=lambda f: f.path)
    append(uri, replace(a, data_change=True), file("c"))
    assert ids(uri) == {"a": (0, 1), "b": (3, 1), "c": (6, 2)}


def test_without_a_count_of_rows_there_are_no_ids(uri: str) -> None:
    table(uri)
    with pytest.raises(DeltaAnalysisError, match="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS") as caught:
        append(uri, replace(file("bare"), stats=None))
    assert caught.value.path == "bare"
    assert open_log(uri).snapshot.version == 0


def test_the_mark_is_not_set_by_hand(uri: str) -> None:
    log = table(uri)
    with pytest.raises(DeltaAnalysisError, match="high water mark is not allowed"):
        log.start_transaction().commit([mark_action(100)], Operation.manual())


def test_a_mark_that_cannot_be_read_is_named(uri: str) -> None:
    table(uri)
    text = DomainMetadata(domain=DOMAIN, configuration='{"x":1}', removed=False).to_json()
    (Path(uri) / "_delta_log" / commit_name(1)).write_text(text)
    with pytest.raises(CorruptLogError, match="rowIdHighWaterMark"):
        append(uri, file("a"))


def test_checkpoints_and_checksums_keep_ids_and_mark(uri: str) -> None:
    log = table(uri)
    append(uri, file("a", 3))
    before = ids(uri)
    log.checkpoint()
    (Path(uri) / "_delta_log" / commit_name(0)).unlink()
    assert (ids(uri), mark(uri)) == (before, 2)
    append(uri, file("b"))
    assert ids(uri)["b"] == (3, 2)
    checksum = json.loads(log.store.read_bytes(checksum_path(log.table, 1)))
    assert [d["domain"] for d in checksum["domainMetadata"]] == [DOMAIN]


def test_a_compaction_runs_at_snapshot_isolation_all_the_same(uri: str) -> None:
    table(uri)
    append(uri, file("a"), file("b"))
    txn = open_log(uri).start_transaction()
    removes = [f.remove(1, data_change=False) for f in txn.filter_files()]
    txn.commit([*removes, replace(file("ab", 2), data_change=False)], Operation("OPTIMIZE"))
    assert lines(uri, 2, "commitInfo")[0]["isolationLevel"] == IsolationLevel.SNAPSHOT_ISOLATION


# Races -------------------------------------------------------------------------------------


def test_writers_that_race_get_ids_that_do_not_overlap(uri: str) -> None:
    table(uri)
    append(uri, file("base", 10))
    losers = [open_log(uri).start_transaction() for _ in range(3)]
    for number, loser in enumerate(losers):
        loser.commit([file(f"f{number}", 5), file(f"g{number}", 1)], Operation.write("Append"))
    assert ids(uri) == {
        "base": (0, 1),
        "f0": (10, 2),
        "g0": (15, 2),
        "f1": (16, 3),
        "g1": (21, 3),
        "f2": (22, 4),
        "g2": (27, 4),
    }
    assert mark(uri) == 27
    assert len(lines(uri, 4, "domainMetadata")) == 1


def test_what_is_known_after_a_race_is_what_is_in_the_log(uri: str) -> None:
    table(uri)
    log = open_log(uri)
    loser = log.start_transaction()
    append(uri, file("winner", 7))
    loser.commit([file("late")], Operation.write("Append"))
    known = {f.path: f.base_row_id for f in log.update().files()}
    assert known == {"winner": 0, "late": 7}
    assert high_water_mark(log.snapshot.domain_metadata, uri) == 7


def test_a_winner_that_sets_no_mark_leaves_ours(uri: str) -> None:
    table(uri)
    append(uri, file("a", 4))
    loser = open_log(uri).start_transaction()
    winner = open_log(uri).start_transaction()
    winner.commit([a.remove(1) for a in winner.snapshot.files()], Operation("DELETE"))  # type: ignore[union-attr]  # it exists
    loser.commit([file("late", 2)], Operation.write("Append"))
    assert ids(uri) == {"late": (4, 3)}
    assert mark(uri) == 5


def test_a_file_that_is_added_again_keeps_its_ids_in_a_race(uri: str) -> None:
    table(uri)
    append(uri, file("a", 3))
    loser = open_log(uri).start_transaction()
    assert loser.snapshot is not None
    (a,) = loser.snapshot.files()
    append(uri, file("winner", 2))
    tagged = replace(a, tags={"note": "x"})
    loser.commit([tagged, replace(file("new"), data_change=False)], Operation.manual())
    assert ids(uri) == {"a": (0, 1), "winner": (3, 2), "new": (5, 3)}


def test_a_loser_without_files_sets_the_mark_of_the_winner_again(uri: str) -> None:
    table(uri)
    loser = open_log(uri).start_transaction()
    append(uri, file("winner", 2))
    loser.commit([], Operation("EMPTY"))
    (said,) = lines(uri, 2, "domainMetadata")
    assert json.loads(said["configuration"])["rowIdHighWaterMark"] == 1


def test_a_writer_that_met_the_feature_assigns_ids(uri: str) -> None:
    table(uri, {})
    loser = open_log(uri).start_transaction()
    open_log(uri).upgrade_protocol(features=["rowTracking"])
    append(uri, file("winner", 11))
    loser.commit([file("late", 2)], Operation.write("Append"))
    assert ids(uri) == {"winner": (0, 2), "late": (11, 3)}
    assert mark(uri) == 12


def test_a_writer_that_met_the_feature_needs_counts_of_rows(uri: str) -> None:
    table(uri, {})
    loser = open_log(uri).start_transaction()
    open_log(uri).upgrade_protocol(features=["rowTracking"])
    with pytest.raises(DeltaAnalysisError, match="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"):
        loser.commit([replace(file("late"), stats=None)], Operation.write("Append"))
    assert open_log(uri).snapshot.version == 1


def test_a_writer_that_met_the_switch_says_that_it_kept_no_ids(uri: str) -> None:
    table(uri, SUPPORTED)
    append(uri, file("a"))
    losers = [open_log(uri).start_transaction() for _ in range(2)]
    enable(uri)
    losers[0].commit([file("late")], Operation.write("Append"))
    (info,) = lines(uri, 3, "commitInfo")
    assert info["tags"] == {"delta.rowTracking.preserved": "false"}
    losers[1].update_metadata(replace(losers[1].metadata, name="other"))
    with pytest.raises(MetadataChangedException):
        losers[1].commit([], Operation("SET TBLPROPERTIES"))


def test_a_switch_off_is_not_gone_by(uri: str) -> None:
    table(uri)
    loser = open_log(uri).start_transaction()
    enable(uri, "false")
    with pytest.raises(MetadataChangedException):
        loser.commit([file("late")], Operation.write("Append"))


def enable(uri: str, value: str = "true") -> None:
    txn = open_log(uri).start_transaction()
    wanted = {**txn.metadata.configuration, "delta.enableRowTracking": value}
    txn.update_metadata(replace(txn.metadata, configuration=wanted))
    txn.commit([], Operation("SET TBLPROPERTIES"))


def test_a_table_that_lost_the_feature_is_not_written_on(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    names = ["domainMetadata", "rowTracking"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}
    log.commit({"protocol": protocol}, metadata())
    loser = open_log(log.table).start_transaction()
    log.commit({"protocol": {**protocol, "writerFeatures": ["domainMetadata"]}})
    with pytest.raises(ProtocolChangedException, match="rowTracking"):
        loser.commit([file("late")], Operation.write("Append"))


# Properties --------------------------------------------------------------------------------

_rows = st.integers(0, 9)


@settings(max_examples=examples(80))
@given(st.lists(st.lists(_rows, max_size=3), max_size=6), st.lists(_rows, max_size=4))
def test_ids_never_overlap_however_often_a_commit_is_rebased(
    winners: list[list[int]], mine: list[int]
) -> None:
    taken: list[tuple[int, int]] = []
    top = read = NO_MARK
    ours, _ = with_row_ids([file(f"m{n}", rows) for n, rows in enumerate(mine)], NO_MARK, "t")
    for version, counts in enumerate(winners):
        theirs, top = with_row_ids([file(f"w{n}", rows) for n, rows in enumerate(counts)], top, "t")
        taken += spans(theirs)
        ours, reached = with_row_ids(ours, top, "t", assigned_above=read)
        ours = reassigned_versions(ours, version)
        assert reached == top + sum(mine)
        read = top
    mixed = sorted(span for span in [*taken, *spans(ours)] if span[0] < span[1])
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(mixed))
    if winners:
        assert {a.default_row_commit_version for a in ours} <= {len(winners)}  # type: ignore[union-attr]  # all adds


def spans(actions: list[Any]) -> list[tuple[int, int]]:
    return [(a.base_row_id, a.base_row_id + a.num_records) for a in actions]


# Rows that move ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "change", "kept"),
    [
        ("true", lambda uri: delete_rows(uri, "id = 1"), "true"),
        ("false", lambda uri: delete_rows(uri, "id = 1"), "true"),
        ("false", lambda uri: delete_rows(uri), "true"),
        ("true", lambda uri: update_rows(uri, {"name": lit("x")}, "id = 1"), "true"),
        ("by id", lambda uri: update_rows(uri, {"name": lit("x")}, "id = 1"), "true"),
    ],
    ids=["masked", "copied", "dropped", "updated", "by field id"],
)
def test_a_change_of_rows_says_whether_the_others_kept_their_ids(
    uri: str, vectors: str, change: Callable[[str], object], kept: str
) -> None:
    properties = {**ENABLED, "delta.enableDeletionVectors": vectors}
    if vectors == "by id":
        # Columns go by their field ids there; those that carry ids have none, and go by name.
        properties = {**ENABLED, "delta.columnMapping.mode": "id"}
    write_arrow(uri, numbers(0, 4), properties=properties, mode="append")
    change(uri)
    assert lines(uri, 1, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": kept}


def test_a_deletion_vector_leaves_the_ids_of_the_file(uri: str) -> None:
    write_arrow(
        uri,
        numbers(0, 4),
        properties={**ENABLED, "delta.enableDeletionVectors": "true"},
        mode="append",
    )
    before = ids(uri)
    delete_rows(uri, "id = 1")
    assert ids(uri) == before
    assert mark(uri) == 3


def test_without_row_tracking_nothing_is_said_of_ids(uri: str) -> None:
    write_arrow(uri, numbers(0, 4), properties=SUPPORTED, mode="append")
    delete_rows(uri, "id = 1")
    assert "tags" not in lines(uri, 1, "commitInfo")[0]
