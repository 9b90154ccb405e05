from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.actions.z85 import z85_decoded
from lakelog.core.deletion_vectors.stored_vectors import DeletionVector, vector_path
from lakelog.core.errors import CorruptLogError, DataFileError, DataFileMissingError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.deletion_vectors import inline, stored, z85
from support.raw_log import RawLog, add, metadata

SCHEMA = StructType(
    (StructField("id", PrimitiveType("long")), StructField("text", PrimitiveType("string")))
)
PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}
ROWS = 100


@pytest.fixture
def table(tmp_path):
    """A table of one file with the ids 0 to 99 in ten row groups."""

    def make(descriptor, rows=ROWS):
        path = tmp_path / "t"
        log = RawLog(path).commit(PROTOCOL, metadata(schema=SCHEMA))
        data = pa.table({"id": range(rows), "text": [str(i) for i in range(rows)]})
        pq.write_table(data, path / "part", row_group_size=10)
        vector = descriptor(path) if callable(descriptor) else descriptor
        stats = f'{{"numRecords":{rows},"tightBounds":false,"minValues":{{"id":0}},'
        stats += f'"maxValues":{{"id":{rows - 1}}},"nullCount":{{"id":0}}}}'
        log.commit(add("part", deletionVector=vector, stats=stats))
        return DeltaLog.for_table(path).snapshot

    return make


def ids(snapshot, **how):
    return snapshot.to_arrow(**how)["id"].to_pylist()


PLACES = {
    "inline": lambda _, rows: inline(rows),
    "relative": lambda path, rows: stored(path, rows)[0],
    "with a prefix": lambda path, rows: stored(path, rows, prefix="ab")[0],
    "absolute": lambda path, rows: stored(path, rows, absolute=True)[0],
    "absolute, escaped": lambda path, rows: stored(path, rows, prefix="a b%", absolute=True)[0],
    "second of its file": lambda path, rows: stored(path, {5}, rows, {6})[1],
}


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_the_vector_are_gone_wherever_it_is_stored(table, place):
    gone = {0, 9, 10, 11, 50, *range(70, 80), 99}

    snapshot = table(lambda path: PLACES[place](path, gone))

    assert ids(snapshot) == [i for i in range(ROWS) if i not in gone]


def test_positions_are_those_of_the_file_where_row_groups_are_left_out(table):
    snapshot = table(inline({55, 57, 99}))

    assert ids(snapshot, where="id >= 52 and id < 58") == [52, 53, 54, 56]
    assert ids(snapshot, where="id = 57") == []
    assert ids(snapshot, where="text = '98' or text = '99'") == [98]


def test_rows_are_counted_without_those_of_the_vector(table):
    snapshot = table(inline(range(7)))

    assert snapshot.to_arrow(columns=[]).num_rows == ROWS - 7
    assert snapshot.to_arrow(columns=[], where="id < 10").num_rows == 3


def test_a_vector_may_have_all_rows(table):
    assert ids(table(inline(range(ROWS)))) == []


def test_a_vector_is_applied_where_the_property_is_off_again(table):
    snapshot = table(inline({0}))
    assert "delta.enableDeletionVectors" not in snapshot.metadata.configuration

    assert ids(snapshot)[0] == 1


def damaged(change):
    def make(path):
        (descriptor,) = stored(path, {1, 2, 3})
        (file,) = path.glob("*.bin")
        data = bytearray(file.read_bytes())
        changes: dict[str, int] = {}
        change(data, changes)
        file.write_bytes(data)
        return {**descriptor, **changes}

    return make


def flip(at):
    def change(data, _):
        data[at] ^= 1

    return change


def cut(data, _):
    del data[-1]


def empty(data, _):
    data.clear()


DAMAGES = {
    "bit of the bitmap": (flip(20), "its checksum does not match"),
    "bit of the checksum": (flip(-1), "its checksum does not match"),
    "version": (flip(0), "version 0, but only 1 is supported"),
    "size": (flip(4), "bytes, but the log says"),
    "cut off": (cut, "its file ends within it"),
    "empty": (empty, "its file ends within it"),
    "cardinality": (lambda _, d: d.update(cardinality=4), "3 rows, but the log says 4"),
    "size in the log": (lambda _, d: d.update(sizeInBytes=8), "bytes, but the log says 8"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_vector_is_an_error_that_names_file_and_version(table, damage):
    change, message = DAMAGES[damage]
    snapshot = table(damaged(change))

    with pytest.raises(DataFileError, match=message) as caught:
        snapshot.to_arrow()
    assert "deletion_vector_" in str(caught.value)
    assert "/part, in version 1 of" in str(caught.value)
    assert caught.value.version == 1
    assert caught.value.path.endswith(".bin")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cardinality": 1}, "2 rows, but the log says 1"),
        ({"sizeInBytes": 400}, "bytes, but the log says 400"),
        ({"pathOrInlineDv": "abcd"}, "must be a multiple of 5, and it is 4"),
        ({"pathOrInlineDv": "ab cd"}, "' ' is not a Z85 character"),
        ({"pathOrInlineDv": "#####"}, "does not fit 4 bytes"),
        ({"pathOrInlineDv": z85(b"\0" * 8), "sizeInBytes": 8}, "it begins with 0"),
    ],
)
def test_a_damaged_inline_vector_is_an_error(table, changes, message):
    snapshot = table({**inline({4, 5}), **changes})

    with pytest.raises(DataFileError, match=message):
        snapshot.to_arrow()


def test_a_vector_of_a_longer_file_is_an_error(table):
    with pytest.raises(DataFileError, match="it has row 40, but the file has 20 rows"):
        table(inline({40}), rows=20).to_arrow()


def test_a_missing_vector_is_an_error_that_names_it_and_the_version(table):
    snapshot = table(lambda path: stored(path, {1})[0])
    (file,) = Path(snapshot.table).glob("*.bin")
    file.unlink()

    with pytest.raises(DataFileMissingError, match=f"deletion vector {file} .*version 1") as caught:
        snapshot.to_arrow()
    assert caught.value.path == str(file)


@pytest.mark.parametrize(
    "descriptor",
    [
        {"storageType": "r", "pathOrInlineDv": "x/y.bin"},
        {"storageType": "u", "pathOrInlineDv": "short"},
        {"storageType": "u", "pathOrInlineDv": "§" * 20},
    ],
)
def test_a_place_that_no_one_knows_is_an_error_of_the_log(table, descriptor):
    snapshot = table({**descriptor, "sizeInBytes": 4, "cardinality": 1})

    with pytest.raises(CorruptLogError, match=r"deletion vector of .*/part in version 1"):
        snapshot.to_arrow()


# --- The texts of the protocol ---


def test_the_protocols_example_of_a_relative_path():
    descriptor = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_path(descriptor, "s3://b/t") == f"s3://b/t/ab/{name}"


def test_an_inline_vector_of_another_client(table):
    # From the tests of delta-kernel-rs.
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 44, "cardinality": 6}
    assert set(range(ROWS)) - set(ids(table(vector))) == {3, 4, 7, 11, 18, 29}


def test_z85_as_its_specification_shows_it():
    assert z85_decoded("HelloWorld") == bytes.fromhex("864FD26FB559F75B")
    assert z85_decoded("0" * 20) == bytes(16)
    assert z85_decoded("%nSc0" * 4) == b"\xff" * 16


@given(st.binary(max_size=64))
def test_z85_there_and_back(data):
    assert z85_decoded(z85(data))[: len(data)] == data
    assert len(z85_decoded(z85(data))) - len(data) == -len(data) % 4


@pytest.mark.parametrize(
    "changes", [{"sizeInBytes": 1 << 30}, {"sizeInBytes": -1}, {"offset": -5}, {"offset": 1 << 40}]
)
def test_what_the_log_says_of_a_vector_takes_no_memory(tmp_path, changes):
    """As much is asked of the file as it has, and no more than a vector of its rows takes."""
    asked = []

    class Watched:
        def __init__(self, place):
            self._file = pa.OSFile(place)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def size(self):
            return self._file.size()

        def read_at(self, count, start):
            asked.append(count)
            return self._file.read_at(count, start)

    (descriptor,) = stored(tmp_path, [1, 2])
    place = vector_path(descriptor, str(tmp_path)) or ""
    wrong = {**descriptor, **changes}
    vector = DeletionVector.from_descriptor(wrong, place, str(tmp_path), 1, "f")
    filesystem = SimpleNamespace(open_input_file=Watched)
    with pytest.raises(DataFileError, match=r"the log says|ends within it"):
        vector.deleted(filesystem, 10)
    assert not asked
    whole = DeletionVector.from_descriptor(descriptor, place, str(tmp_path), 1, "f")
    assert whole.deleted(filesystem, 10).to_pylist().count(True) == 2
