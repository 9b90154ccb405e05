"""Offsets and options of a stream, as Delta writes and reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.streaming.offsets import SourceOffset
from lakelog.core.streaming.stream_options import StreamOptions

# As delta-spark 4.4 writes it into a checkpoint.
TEXT = (
    '{"sourceVersion":1,"reservoirId":"id-1","reservoirVersion":10,"index":-1,'
    '"isStartingVersion":false}'
)


def _read(text: str) -> SourceOffset:
    return SourceOffset.from_json_value(json.loads(text), "id-1", "/t")


def test_an_offset_is_written_as_delta_writes_it() -> None:
    offset = _read(TEXT)
    assert offset == SourceOffset(10, -1)
    assert json.dumps(offset.to_json_value("id-1"), separators=(",", ":")) == TEXT
    starting = TEXT.replace("false", "true").replace("-1,", "4,")
    assert _read(starting) == SourceOffset(10, 4, is_starting=True)
    assert _read(TEXT.replace('n":1,', 'n":3,').replace('x":-1', 'x":-100')) == offset


def test_the_sides_of_a_change_of_metadata_lie_before_the_files_of_its_version() -> None:
    texts = [TEXT.replace('n":1,', 'n":3,').replace(":-1,", f":{i},") for i in (-100, -20, -19)]
    offsets = [_read(each) for each in texts]
    assert offsets == [SourceOffset(10, -1, barrier=n) for n in range(3)]
    assert sorted([SourceOffset(10, 0), *reversed(offsets)])[:3] == offsets
    for text, offset in list(zip(texts, offsets, strict=True))[1:]:
        assert json.dumps(offset.to_json_value("id-1"), separators=(",", ":")) == text


@pytest.mark.parametrize(
    ("old", "new", "condition"),
    [
        ('n":1,', 'n":4,', "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION.*smaller than or equal to 3"),
        ('n":1,', 'n":0,', r"DELTA_INVALID_SOURCE_VERSION.*sourceVersion\(0\)"),
        ('"sourceVersion":1,', "", "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*sourceVersion is None"),
        ('n":1,', 'n":"x",', "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*sourceVersion is 'x'"),
        (":10", ":null", "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*reservoirVersion is None"),
        ("false", "0", "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*isStartingVersion is 0"),
        ('x":-1', 'x":true', "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*index is True"),
        ("id-1", "id-2", "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE.*id-2.*checkpoint"),
        ('x":-1', 'x":-20', "DELTA_INVALID_SOURCE_OFFSET_FORMAT.*index is -20"),
    ],
)
def test_what_is_no_offset_of_this_table_is_refused(old: str, new: str, condition: str) -> None:
    assert old in TEXT
    with pytest.raises(DeltaAnalysisError, match=condition):
        _read(TEXT.replace(old, new))


def _options(**given: Any) -> StreamOptions:
    return StreamOptions.from_options(given, _millis)


def _millis(text: str) -> int:
    if text.isdigit():
        return int(text)
    raise DeltaAnalysisError(f"timestampAsOf is {text!r}")


def test_the_options_have_deltas_defaults() -> None:
    assert _options() == StreamOptions(max_files=1000, max_bytes=None)
    # A limit of bytes alone is no limit of files.
    assert _options(MAXBYTESPERTRIGGER="2m") == StreamOptions(max_files=None, max_bytes=2 << 20)
    both = _options(maxBytesPerTrigger="10", maxFilesPerTrigger="3")
    assert (both.max_files, both.max_bytes) == (3, 10)
    assert _options(startingVersion="Latest").starting_version == "latest"
    assert _options(startingTimestamp="12").starting_timestamp == 12
    assert _options(ignoreFileDeletion="true").ignore_changes
    assert not _options(failOnDataLoss="False").fail_on_data_loss
    tracked = _options(schemaLocation="/c", streamingSourceTrackingId="2")
    assert (tracked.tracking_location, tracked.tracking_id) == ("/c", "2")
    assert _options(allowSourceColumnDrop="4").allowed == {"allowsourcecolumndrop": "4"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"maxFilesPerTrigger": "0"}, "DELTA_ILLEGAL_OPTION.*'0'.*a positive integer"),
        ({"maxBytesPerTrigger": "ten"}, "DELTA_ILLEGAL_OPTION.*size configuration such as '10g'"),
        ({"maxBytesPerTrigger": "0b"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "-1"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "1", "startingTimestamp": "1"}, "BOTH_SET"),
        ({"ignoreDeletes": "yes"}, "DELTA_ILLEGAL_OPTION.*true or false"),
        ({"startingTimestamp": "soon"}, "DELTA_TIMESTAMP_INVALID.*'soon'.*startingTimestamp"),
        ({"excludeRegex": "("}, "DELTA_REGEX_OPT_SYNTAX_ERROR"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=message):
        _options(**given)
