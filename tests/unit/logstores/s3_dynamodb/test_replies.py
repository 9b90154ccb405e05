"""What is made of a connection to DynamoDB that fails: never less doubt than there is."""

from __future__ import annotations

import pytest
from botocore import exceptions as sdk

from lakelog.logstores.object_store.client import TryAgainError
from lakelog.logstores.s3_dynamodb.replies import TablePlace, speaking_dynamodb

PLACE = TablePlace("delta_log", "us-east-1", "https://ddb.test")


@pytest.mark.parametrize(
    "error",
    [
        sdk.SSLError(
            endpoint_url="https://ddb.test", error="EOF occurred in violation of protocol"
        ),
        sdk.ConnectionClosedError(endpoint_url="https://ddb.test"),
        sdk.ReadTimeoutError(endpoint_url="https://ddb.test"),
        sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_connection_that_breaks_after_the_request_leaves_its_outcome_open(
    error: Exception,
) -> None:
    with pytest.raises(TryAgainError) as caught, speaking_dynamodb("PutItem", PLACE):
        raise error
    assert caught.value.may_have_landed


def test_a_certificate_that_is_not_trusted_is_reported_at_once() -> None:
    refused = sdk.SSLError(endpoint_url="https://ddb.test", error="CERTIFICATE_VERIFY_FAILED")
    with pytest.raises(OSError, match="AWS_CA_BUNDLE"), speaking_dynamodb("PutItem", PLACE):
        raise refused
