"""The lock table itself: checked once per process, created where the conf says so."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.limits import seconds_left
from lakelog.logstores.object_store.client import TryAgainError
from lakelog.logstores.s3_dynamodb.errors import LockTableError
from lakelog.logstores.s3_dynamodb.replies import check_reply, speaking_dynamodb

if TYPE_CHECKING:
    from lakelog.logstores.s3_dynamodb.conf import LockTableSettings
    from lakelog.logstores.s3_dynamodb.replies import TablePlace

TTL_ATTRIBUTE: Final = "expireTime"
_log = logging.getLogger("lakelog")
_KEYS: Final = (("tablePath", "HASH"), ("fileName", "RANGE"))
_LONGEST_CREATION: Final = 60.0
"""Seconds; Delta waits for 20 and then goes on."""
_MOST_FAILURES: Final = 5
"""`DescribeTable` requests that may fail while the table is being made."""


def ensure_table(sdk: Any, settings: LockTableSettings, place: TablePlace) -> None:
    """Make sure that the table can hold commits.

    Without permission to describe it, its keys are checked by a `GetItem`, which a table with
    other keys refuses.

    Raises:
        LockTableError: it is missing and must not be created, or it has other keys.
        TryAgainError: it is being made and was not ready in time, or the service is out of reach.
    """
    try:
        found = describe(sdk, place)
    except PermissionError:
        _try_keys(sdk, place)
        return
    if found is None:
        if not settings.create:
            raise LockTableError(place.missing())
        found = _create(sdk, settings, place)
    elif found.get("TableStatus") == "CREATING":  # by another writer, or by a try of ours before
        found = _wait(sdk, place, None)
        if settings.create:
            _enable_expiry(sdk, place)
    keys = tuple((each["AttributeName"], each["KeyType"]) for each in found["KeySchema"])
    types = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    if keys != _KEYS or any(types.get(name) != "S" for name, _ in _KEYS):
        shown = ", ".join(f"{name} {types.get(name)} {kind}" for name, kind in keys)
        raise LockTableError(place.wrong_keys(f"its keys are {shown}"))


def describe(sdk: Any, place: TablePlace) -> dict[str, Any] | None:
    """The table's description; `None` if there is none."""
    try:
        with speaking_dynamodb("DescribeTable", place):
            reply = sdk.describe_table(TableName=place.table)
    except LockTableError as error:
        if _code(error) == "ResourceNotFoundException":
            return None
        raise
    check_reply(reply, place)
    found: dict[str, Any] = reply["Table"]
    return found


def time_to_live(sdk: Any, place: TablePlace) -> str | None:
    """The attribute by which rows expire; `None` if they don't."""
    with speaking_dynamodb("DescribeTimeToLive", place):
        reply = sdk.describe_time_to_live(TableName=place.table)
    check_reply(reply, place)
    setting = reply.get("TimeToLiveDescription", {})
    if setting.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        return str(setting.get("AttributeName"))
    return None


def _try_keys(sdk: Any, place: TablePlace) -> None:
    key = {name: {"S": "lakelog"} for name, _ in _KEYS}
    with speaking_dynamodb("GetItem", place):
        reply = sdk.get_item(TableName=place.table, Key=key)
    check_reply(reply, place)


def _create(sdk: Any, settings: LockTableSettings, place: TablePlace) -> dict[str, Any]:
    lost: TryAgainError | None = None
    try:
        with speaking_dynamodb("CreateTable", place):
            sdk.create_table(
                TableName=place.table,
                KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in _KEYS],
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"} for name, _ in _KEYS
                ],
                ProvisionedThroughput={
                    "ReadCapacityUnits": settings.rcu,
                    "WriteCapacityUnits": settings.wcu,
                },
            )
    except TryAgainError as error:
        if _code(error) != "ResourceInUseException":  # another writer is creating it right now
            if not error.may_have_landed:
                raise
            lost = error
    found = _wait(sdk, place, lost)
    _enable_expiry(sdk, place)
    return found


def _enable_expiry(sdk: Any, place: TablePlace) -> None:
    """Let rows expire. The table works without, so a refusal is only logged."""
    try:
        if time_to_live(sdk, place) is not None:
            return
        with speaking_dynamodb("UpdateTimeToLive", place):
            sdk.update_time_to_live(
                TableName=place.table,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE},
            )
    except (OSError, LockTableError, TryAgainError) as error:
        if _code(error) == "ValidationException":  # another writer has just enabled it
            return
        _log.warning("%s keeps its rows forever: enabling expiry failed: %s", place, error)


def _wait(sdk: Any, place: TablePlace, lost: TryAgainError | None) -> dict[str, Any]:
    """The description of a table that is being made, once it is ready.

    A new table may be unknown to `DescribeTable` for a moment.

    Raises:
        TryAgainError: it is not ready in time, or the service stops answering; or `lost`, the
            answer to its creation that did not come, where there is no table.
    """
    deadline = time.monotonic() + min(_LONGEST_CREATION, seconds_left())
    failures = 0
    while True:
        found = None
        try:
            found = describe(sdk, place)
        except TryAgainError:
            # After an error here the next call would find the table ready, and enable no expiry.
            failures += 1
            if failures == _MOST_FAILURES:
                raise
        else:
            if found is not None and found["TableStatus"] == "ACTIVE":
                return found
            if found is None and lost is not None:
                failures += 1
                if failures == _MOST_FAILURES:
                    raise lost
        if time.monotonic() > deadline:
            raise TryAgainError(f"{place} is still being made", may_have_landed=False)
        time.sleep(0.5)


def _code(error: Exception) -> str:
    # Errors of the connection also have the attribute, with nothing in it.
    reply: Any = getattr(error.__cause__, "response", None) or {}
    return str(reply.get("Error", {}).get("Code", ""))
