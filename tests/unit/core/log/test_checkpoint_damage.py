"""One wrong byte anywhere in a checkpoint: survived with the commits, refused without them."""

from __future__ import annotations

import contextlib
from itertools import cycle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptLogError
from lakelog.core.log.checkpoint_parts import COLUMNS_KEY
from support.log_histories import whole_state
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove
from support.v2_checkpoints import sidecars_of

VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
LATE = 4_000_000_000_000
STEP = 83
MASKS = (0x01, 0x80, 0xFF)
"""Bits of a byte that are turned over: by the way through the file, each in turn."""


V2 = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint", "deletionVectors"],
        "writerFeatures": ["v2Checkpoint", "deletionVectors", "domainMetadata"],
    }
}


@pytest.fixture(params=["classic", "v2"])
def log(tmp_path, request):
    policy = {"delta.checkpointPolicy": request.param}
    protocol = V2 if request.param == "v2" else PROTOCOL
    log = RawLog(tmp_path / "t").commit(
        protocol,
        metadata(configuration=policy),
        add("p=1/a", stats='{"numRecords":1}'),
        add("b", deletionVector=VECTOR),
    )
    return log.commit(
        {"txn": {"appId": "a", "version": 7}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        remove("b", LATE, deletionVector=VECTOR),
        add("c", tags={"t": "1"}),
    )


def state(log):
    return whole_state(DeltaLog.for_table(log.table).snapshot)


def damaged(path):
    """Each time the file has another byte that is wrong; at the end it is whole."""
    data = path.read_bytes()
    for index, mask in zip(range(0, len(data), STEP), cycle(MASKS), strict=False):
        wrong = bytearray(data)
        wrong[index] ^= mask
        path.write_bytes(wrong)
        yield index
    path.write_bytes(data)


def with_files(log):
    """The file of the checkpoint that has the file actions."""
    sidecars = sidecars_of(log)
    return sidecars[0] if sidecars else next(log.folder.glob("*.checkpoint.parquet"))


def test_a_wrong_byte_never_changes_what_is_read(log):
    expected = state(log)
    DeltaLog.for_table(log.table).checkpoint()
    for index in damaged(with_files(log)):
        assert state(log) == expected, index


def test_a_wrong_byte_without_the_commits_is_harmless_or_refused(log):
    expected = state(log)
    DeltaLog.for_table(log.table).checkpoint()
    log.path(0).unlink()
    refused = 0
    for index in damaged(with_files(log)):
        try:
            assert state(log) == expected, index
        except CorruptLogError:
            refused += 1
    assert refused
    assert state(log) == expected


def test_a_field_that_lost_what_it_may_be_never_changes_what_is_read(tmp_path):
    log = RawLog(tmp_path / "t").create(
        {"txn": {"appId": "a", "version": 7}},
        add("a", stats='{"numRecords":1}'),
        remove("b", LATE, deletionVector=VECTOR),
    )
    expected = state(log)
    DeltaLog.for_table(log.table).checkpoint()
    log.path(0).unlink()
    path = with_files(log)
    data = path.read_bytes()
    # In the footer: this may be null, and its name is...; and: this is text.
    for mark, at in ((b"\x25\x02\x18", 0), (b"\x25\x00\x4c\x1c", 0), (b"\x25\x00\x4c\x1c", 2)):
        found = 0
        start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        while (start := data.find(mark, start + 1)) > 0:
            found += 1
            for mask in MASKS:
                wrong = bytearray(data)
                wrong[start + at] ^= mask
                path.write_bytes(wrong)
                with contextlib.suppress(CorruptLogError):
                    assert state(log) == expected, (mark, start, mask)
        assert found > 10, mark


def test_texts_that_are_not_noted_as_text_are_read_and_what_is_no_text_is_refused(tmp_path):
    log = RawLog(tmp_path / "t").create({"txn": {"appId": "a", "version": 7}}, add("a"))
    expected = state(log)
    DeltaLog.for_table(log.table).checkpoint()
    log.path(0).unlink()
    path = with_files(log)
    rows = pq.read_table(path).replace_schema_metadata(None)
    txn = rows["txn"].combine_chunks()
    for app, fits in ((b"a", True), (b"\xff", False)):
        names = [pa.array([None if one is None else app for one in txn.field("appId").to_pylist()])]
        others = [txn.field(at) for at in range(1, txn.type.num_fields)]
        fields = [each.name for each in txn.type]
        made = pa.StructArray.from_arrays([*names, *others], names=fields, mask=txn.is_null())
        at = rows.schema.get_field_index("txn")
        pq.write_table(rows.set_column(at, "txn", made), path)
        if fits:
            assert state(log) == expected
        else:
            with pytest.raises(CorruptLogError, match="utf-8"):
                state(log)


def test_a_column_that_lost_its_name_is_noticed_and_one_that_was_left_out_is_not_missed(tmp_path):
    txn = {"txn": {"appId": "a", "version": 7}}
    log = RawLog(tmp_path / "t").create(txn, add("a"))
    expected = state(log)
    DeltaLog.for_table(log.table).checkpoint()
    path = with_files(log)
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data.index(b"\x03txn", start)
    path.write_bytes(data[:footer] + b"\x03tyn" + data[footer + 4 :])
    log.path(0).unlink()
    with pytest.raises(CorruptLogError, match="columns are not the ones"):
        state(log)
    # Another writer copies our notes, and leaves out what it does not need.
    path.write_bytes(data)
    rows = pq.read_table(path)
    assert COLUMNS_KEY.encode() in rows.schema.metadata
    pq.write_table(rows.drop_columns(["txn"]), path)
    assert state(log)[3] == {}
    assert state(log)[5] == expected[5]
