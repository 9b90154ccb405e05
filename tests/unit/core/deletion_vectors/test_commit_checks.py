from __future__ import annotations

from dataclasses import replace

import pytest

from lakelog.core import Operation
from lakelog.core.actions import AddFile, DeletionVectorDescriptor
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from support.tables import new_table

ON = {"delta.enableDeletionVectors": "true"}
OFF = {"delta.feature.deletionVectors": "supported"}
FILE = AddFile(
    path="a",
    partition_values={},
    size=1,
    modification_time=1,
    data_change=True,
    stats='{"numRecords":9,"tightBounds":false}',
    deletion_vector=DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="0" * 20, offset=1, size_in_bytes=34, cardinality=1
    ),
)
DELETE = Operation("DELETE")


@pytest.fixture
def uri(tmp_path):
    return str(tmp_path / "t")


def commit(uri, properties, add, operation=DELETE, conf=None):
    log = new_table(uri, properties=properties, conf=conf)
    return log.start_transaction().commit([add], operation)


def test_a_table_that_makes_vectors_takes_them(uri):
    assert commit(uri, ON, FILE) == 1


@pytest.mark.parametrize(
    ("properties", "why"),
    [({}, "protocol lacks the feature"), (OFF, "delta.enableDeletionVectors to true")],
)
def test_a_table_that_makes_none_is_refused_one(uri, properties, why):
    with pytest.raises(UnsupportedFeatureError, match=f"VECTORS_DISALLOWED.* file a .*{why}"):
        commit(uri, properties, FILE)


@pytest.mark.parametrize("stats", [None, "{}", '{"tightBounds":false}', "no JSON"])
def test_a_file_with_a_vector_says_how_many_rows_it_has(uri, stats):
    with pytest.raises(DeltaAnalysisError, match="MISSING_NUM_RECORDS"):
        commit(uri, ON, replace(FILE, stats=stats))


@pytest.mark.parametrize("stats", ['{"numRecords":9}', '{"numRecords":9,"tightBounds":true}'])
def test_bounds_are_not_called_tight_beside_a_vector(uri, stats):
    with pytest.raises(DeltaAnalysisError, match="TIGHT_BOUNDS_DISALLOWED"):
        commit(uri, ON, replace(FILE, stats=stats))


@pytest.mark.parametrize("name", ["RESTORE", "CLONE", "Manual Update", "COMPUTE STATS"])
def test_an_operation_that_moves_files_takes_them_as_they_are(uri, name):
    tight = replace(FILE, stats='{"numRecords":9}')
    assert commit(uri, OFF, tight, Operation(name)) == 1


def test_the_conf_that_says_skip_and_means_check_switches_the_checks_off(uri):
    conf = {"spark.databricks.delta.deletionVectors.skipCommitCheck": "false"}
    assert commit(uri, OFF, replace(FILE, stats=None), conf=conf) == 1
