"""Histories of a log for Hypothesis, and all that a snapshot says, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from support.raw_log import add, metadata, remove

if TYPE_CHECKING:
    from lakelog.core.state.snapshot import Snapshot

NOW = 1_700_000_000_000

_vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
_names = st.sampled_from(["a", "b", "c%20d", "p=1/e"])
_vectors = st.sampled_from([None, _vector, {**_vector, "offset": 1}])
_adds = st.builds(
    lambda path, dv, tags, stats, size: add(
        path,
        partitionValues={"p": None, "q": "1"},
        deletionVector=dv,
        tags=tags,
        stats=stats,
        size=size,
    ),
    _names,
    _vectors,
    st.none() | st.just({"t": "1", "u": None}),
    st.none() | st.just('{"numRecords":1}'),
    st.integers(0, 1 << 40),
)
_removes = st.builds(
    lambda path, dv: remove(path, NOW - 1, deletionVector=dv, extendedFileMetadata=True),
    _names,
    _vectors,
)
_others = st.one_of(
    st.builds(lambda a, v: {"txn": {"appId": a, "version": v}}, _names, st.integers(0, 9)),
    st.builds(
        lambda d, r: {"domainMetadata": {"domain": d, "configuration": "{}", "removed": r}},
        _names,
        st.booleans(),
    ),
    st.just(metadata(configuration={"delta.x": "1"})),
    st.just({"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}),
    st.just({"commitInfo": {}}),
)

histories = st.lists(st.lists(_adds | _removes | _others, min_size=1, max_size=4), max_size=6)
"""The actions of the commits after the one that makes the table."""


def whole_state(snapshot: Snapshot) -> tuple[Any, ...]:
    """Everything that a snapshot says, in an order of its own."""
    return (
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        snapshot.transactions,
        snapshot.domain_metadata,
        sorted(snapshot.file_table.to_pylist(), key=str),
        sorted(snapshot.tombstones.to_pylist(), key=str),
    )
