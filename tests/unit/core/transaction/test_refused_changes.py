"""What a transaction was refused is gone: no later commit of it writes a part of that."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.actions import AddFile, Metadata, Protocol
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features import registry as features
from lakelog.core.features.protocol import check_covers, protocol_for_new_table, supported_features
from lakelog.core.features.registry import active_features
from lakelog.core.transaction import transaction_changes as tracked_changes
from support.commits import APPEND, kinds_of, new_uri
from support.tables import ID_SCHEMA, add_file, new_table, schema_json

if TYPE_CHECKING:
    from lakelog.core.transaction.optimistic import OptimisticTransaction

CHANGED = Metadata(
    id="test",
    schema_string=schema_json(id="long", more="string"),
    configuration={"delta.enableDeletionVectors": "true"},
)
OLD = Protocol(min_reader_version=1, min_writer_version=2)
STEPS = [
    name
    for name in ("new_table_metadata", "changed_metadata", "check_promises", "check_may_enable")
    if hasattr(tracked_changes, name)
]


def given(log: DeltaLog, way: str) -> OptimisticTransaction:
    txn = log.start_transaction()
    getattr(txn.changes, way)(CHANGED)
    return txn


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("way", ["update_metadata", "update_metadata_for_new_table"])
@pytest.mark.parametrize("exists", [True, False])
def test_metadata_that_any_step_refuses_stays_out_of_later_commits(
    monkeypatch: pytest.MonkeyPatch, step: str, way: str, exists: bool
) -> None:
    uri = new_uri()
    log = new_table(uri) if exists else DeltaLog.for_table(uri)
    txn = log.start_transaction()

    def refuse(*_: Any, **__: Any) -> None:
        raise DeltaAnalysisError("refused")

    with monkeypatch.context() as patched:
        patched.setattr(tracked_changes, step, refuse)
        try:
            getattr(txn.changes, way)(CHANGED)
        except DeltaAnalysisError:
            assert txn.changes.new_metadata is None
            assert txn.changes.new_protocol is None
        else:
            return  # this way doesn't take that step
    if exists:
        assert kinds_of(log, txn.commit([add_file("a")], APPEND)) == ["commitInfo", "add"]
    else:
        with pytest.raises(DeltaAnalysisError, match="METADATA_ABSENT"):
            txn.commit([add_file("a")], APPEND)


def test_the_steps_are_those_that_there_are() -> None:
    assert len(STEPS) == 4


BAD_HEADS = {
    "two protocols": [CHANGED, OLD, OLD],
    "the same path twice": [CHANGED, add_file("a"), add_file("a")],
    "unknown partition": [CHANGED, add_file("a", p="1")],
}


@pytest.mark.parametrize("heads", BAD_HEADS.values(), ids=BAD_HEADS)
def test_metadata_among_the_actions_of_a_refused_commit_goes_with_it(heads: list[Any]) -> None:
    log = new_table(new_uri())
    txn = log.start_transaction()
    with pytest.raises(DeltaAnalysisError):
        txn.commit(heads, APPEND)
    assert (txn.changes.new_metadata, txn.changes.new_protocol, txn.changes.has_written) == (
        None,
        None,
        False,
    )
    assert kinds_of(log, txn.commit([add_file("b")], APPEND)) == ["commitInfo", "add"]


def test_a_commit_that_the_storage_refused_can_be_made_again_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = new_table(new_uri())
    txn = log.start_transaction()

    def full(_: CommitLoop) -> int:
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(CommitLoop, "do_commit_retry_iteratively", full)
        with pytest.raises(OSError, match="no room"):
            txn.commit([CHANGED], APPEND)
    assert "metaData" in kinds_of(log, txn.commit([CHANGED], APPEND))


def _field(**said: Any) -> str:
    column = {"name": "id", "type": "long", "nullable": True, "metadata": said}
    return json.dumps({"type": "struct", "fields": [column]})


def _switched_on() -> dict[str, Metadata]:
    """One table's metadata for each way to switch a feature on, taken from the table of them."""
    on = {
        flag: Metadata(id="t", schema_string=ID_SCHEMA, configuration={flag: "true"})
        for flag in features._BY_FLAG
    }
    for key, value in {
        **dict.fromkeys(features._BY_PRESENCE, "x"),
        "delta.columnMapping.mode": "name",
        "delta.checkpointPolicy": "v2",
        "delta.constraints.c": "id > 0",
    }.items():
        on[key] = Metadata(id="t", schema_string=ID_SCHEMA, configuration={key: value})
    for key in features._BY_FIELD:
        on[key] = Metadata(id="t", schema_string=_field(**{key: "1"}))
    for kind in features._BY_TYPE:
        on[kind] = Metadata(id="t", schema_string=schema_json(id=kind))
    return on


ON = _switched_on()


@pytest.mark.parametrize("metadata", ON.values(), ids=ON)
def test_no_commit_switches_on_what_its_protocol_lacks(metadata: Metadata) -> None:
    (active,) = active_features(metadata)
    bare = Protocol(min_reader_version=1, min_writer_version=1)
    with pytest.raises(DeltaAnalysisError, match="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH") as e:
        check_covers(bare, metadata, "t")
    assert active in e.value.fields["features"]
    # What another client left amiss hinders nobody, and what the metadata asks for covers it.
    check_covers(bare, metadata, "t", before=(bare, metadata))
    wanted = protocol_for_new_table(metadata)[0]
    assert active in supported_features(wanted)
    check_covers(wanted, metadata, "t")


def test_every_feature_with_a_switch_is_tried() -> None:
    tried = {name for metadata in ON.values() for name in active_features(metadata)}
    with_switch = {f.name for f in features.FEATURES.values() if f.switch}
    with_switch -= {"catalogManaged"}  # a catalog switches it on, and no metadata
    assert with_switch <= tried


@pytest.mark.parametrize("large", [False, True])
def test_the_commit_asks(large: bool) -> None:
    metadata = Metadata(
        id="t", schema_string=ID_SCHEMA, configuration={"delta.enableRowTracking": "true"}
    )
    log = DeltaLog.for_table(new_uri())
    txn = log.start_transaction()
    txn.update_metadata(metadata)
    txn.changes._new_protocol = None
    files: list[AddFile] = [add_file("a")]
    commit = (
        partial(txn.commit_large, files, APPEND, protocol=OLD)
        if large
        else partial(txn.commit, [OLD, *files], APPEND)
    )
    with pytest.raises(DeltaAnalysisError, match="the metadata of this commit enables"):
        commit()
    assert not log.table_exists()
