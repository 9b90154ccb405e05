from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.prepare import commit_info, engine_info
from lakelog.core.conf import DeltaConf
from lakelog.core.features.isolation import IsolationLevel
from support.tables import add_file

if TYPE_CHECKING:
    from lakelog.core.actions import CommitInfo

CONF = "spark.databricks.delta."
WRITE = Operation.write("Append", ["day"], metrics={"numFiles": 1}, user_metadata="mine")


def made(
    operation: Operation = WRITE, conf: dict[str, str] | None = None, **changes: Any
) -> CommitInfo:
    given: dict[str, Any] = {
        "txn_id": "t-1",
        "now_ms": 5,
        "read_version": 3,
        "isolation": IsolationLevel.SERIALIZABLE,
        "is_blind_append": True,
    }
    return commit_info(
        operation, [add_file("a")], CommitSettings(DeltaConf(conf)), **given | changes
    )


def test_every_field_stands_where_delta_writes_it() -> None:
    line = json.loads(made(replace(WRITE, tags={"delta.rowTracking.preserved": "true"})).to_json())[
        "commitInfo"
    ]
    assert list(line.items()) == [
        ("timestamp", 5),
        ("operation", "WRITE"),
        ("operationParameters", {"mode": "Append", "partitionBy": '["day"]'}),
        ("readVersion", 3),
        ("isolationLevel", "Serializable"),
        ("isBlindAppend", True),
        ("dataChange", True),
        ("operationMetrics", {"numFiles": "1"}),
        ("userMetadata", "mine"),
        ("tags", {"delta.rowTracking.preserved": "true"}),
        ("engineInfo", engine_info()),
        ("txnId", "t-1"),
    ]


def test_a_new_table_has_no_read_version_and_most_commits_no_tags() -> None:
    info = made(read_version=-1)
    assert info.read_version is None
    assert info.tags is None


def test_an_operation_without_metrics_says_that_it_has_none() -> None:
    assert made(Operation.manual()).operation_metrics == {}
    off = made(conf={CONF + "history.metricsEnabled": "false"})
    assert off.operation_metrics is None


@pytest.mark.parametrize(
    ("own", "conf", "expected"),
    [
        ("mine", None, "mine"),
        ("mine", "theirs", "mine"),
        (None, "theirs", "theirs"),
        (None, None, None),
    ],
)
def test_the_operation_s_own_note_wins(
    own: str | None, conf: str | None, expected: str | None
) -> None:
    session = {CONF + "commitInfo.userMetadata": conf} if conf else {}
    assert made(Operation.write("Append", user_metadata=own), session).user_metadata == expected


def test_a_session_may_keep_what_was_done_out_of_the_log() -> None:
    conf = {CONF + "commitInfo.enabled": "false"}
    line = json.loads(made(replace(WRITE, tags={"t": "u"}), conf).to_json())["commitInfo"]
    assert line == {
        "timestamp": 5,
        "operation": "WRITE",
        "operationParameters": {},
        "isBlindAppend": True,
        "tags": {"t": "u"},
        "txnId": "t-1",
    }
