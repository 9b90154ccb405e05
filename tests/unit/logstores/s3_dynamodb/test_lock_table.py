"""A lock table is ready, and its rows expire, whatever answers were lost while it was made."""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from lakelog.logstores.object_store.client import TryAgainError
from lakelog.logstores.s3_dynamodb import lock_table
from lakelog.logstores.s3_dynamodb.conf import LockTableSettings
from lakelog.logstores.s3_dynamodb.lock_table import ensure_table
from lakelog.logstores.s3_dynamodb.replies import TablePlace

PLACE = TablePlace("delta_log", "us-east-1", "https://ddb.test")
LOST = ConnectionClosedError(endpoint_url="https://ddb.test")


class Service:
    """DynamoDB with one table that is ready when it was asked for three times.

    Attributes:
        loses: of each call, the turns whose answer is lost.
        lags: how often `DescribeTable` does not know the table yet.
        calls: what was asked for.
    """

    def __init__(
        self, loses: dict[str, set[int]] | None = None, *, made: bool = False, lags: int = 0
    ) -> None:
        self.loses, self.lags = loses or {}, lags
        self.made, self.looks, self.expires = made, 0, False
        self.calls: list[str] = []

    def describe_table(self, **_: Any) -> dict[str, Any]:
        self._call("describe_table")
        self.lags -= self.made
        if not self.made or self.lags >= 0:
            raise _refusal("ResourceNotFoundException")
        self.looks += 1
        return {"Table": {"TableStatus": "ACTIVE" if self.looks > 2 else "CREATING", **KEYS}}

    def create_table(self, **_: Any) -> dict[str, Any]:
        if self.made:
            raise _refusal("ResourceInUseException")
        self.made = True
        self._call("create_table")
        return {}

    def describe_time_to_live(self, **_: Any) -> dict[str, Any]:
        self._call("describe_time_to_live")
        return {}

    def update_time_to_live(self, **_: Any) -> dict[str, Any]:
        self._call("update_time_to_live")
        self.expires = True
        return {}

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.calls.count(name) in self.loses.get(name, ()):
            raise LOST


KEYS = {
    "KeySchema": [
        {"AttributeName": "tablePath", "KeyType": "HASH"},
        {"AttributeName": "fileName", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "tablePath", "AttributeType": "S"},
        {"AttributeName": "fileName", "AttributeType": "S"},
    ],
}


def _refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "x")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> LockTableSettings:
    still = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None)
    monkeypatch.setattr(lock_table, "time", still)
    return LockTableSettings.from_conf({"spark.lakelog.s3dynamodb.createTable": "true"})


@pytest.mark.parametrize(
    "loses",
    [
        {},
        {"create_table": {1}},
        {"describe_table": {2}},
        {"create_table": {1}, "describe_table": {2, 3, 5, 6}},
    ],
)
def test_a_table_that_is_made_is_ready_and_its_rows_expire(
    loses: dict[str, set[int]], settings: LockTableSettings
) -> None:
    service = Service(loses)
    ensure_table(service, settings, PLACE)
    assert (service.looks, service.expires) == (3, True)


@pytest.mark.parametrize("lags", [1, 3, 6])
def test_a_new_table_may_be_unknown_for_a_moment(lags: int, settings: LockTableSettings) -> None:
    service = Service({"create_table": {1}}, lags=lags)
    with contextlib.suppress(TryAgainError):  # where it lags too long: it is asked again
        ensure_table(service, settings, PLACE)
    ensure_table(service, settings, PLACE)
    assert service.expires


def test_a_table_that_another_writer_is_making_is_waited_for(settings: LockTableSettings) -> None:
    service = Service(made=True)
    ensure_table(service, settings, PLACE)
    assert service.looks == 3
    assert "create_table" not in service.calls


def test_a_creation_that_never_arrived_is_asked_for_again(settings: LockTableSettings) -> None:
    service = Service({"create_table": {1}})

    def lose(**_: Any) -> dict[str, Any]:
        raise LOST

    real, service.create_table = service.create_table, lose  # type: ignore[method-assign]
    with pytest.raises(TryAgainError):
        ensure_table(service, settings, PLACE)
    service.create_table = real  # type: ignore[method-assign]
    ensure_table(service, settings, PLACE)
    assert (service.looks, service.expires) == (3, True)


def test_a_service_that_tells_nothing_any_more_is_given_up(settings: LockTableSettings) -> None:
    service = Service({"describe_table": set(range(2, 100))})
    with pytest.raises(TryAgainError):
        ensure_table(service, settings, PLACE)
    assert service.calls.count("describe_table") == 1 + 5
