"""Doubt is told from refusal by all that an error says, whatever its class is called."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import SetTransaction
from lakelog.core.errors import CommitOutcomeUnknownError
from lakelog.logstores import LocalLogStore
from lakelog.logstores.errors import StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class RpcFailure(Exception):  # noqa: N818  # a name that says nothing
    """No `OSError`, as those of many SDKs."""


class ReadTimeoutError(Exception):
    """urllib3's is no `OSError` either."""


def _coded(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _from(error: OSError, *chain: BaseException) -> OSError:
    outer: BaseException = error
    for each in chain:
        outer.__cause__ = each
        outer = each
    return error


def _within(error: OSError, *chain: BaseException) -> OSError:
    outer: BaseException = error
    for each in chain:
        outer.__context__ = each
        outer.__suppress_context__ = True
        outer = each
    return error


LINES = [
    *(errno.EIO, errno.ESTALE, errno.ENETRESET, errno.ECONNRESET, errno.ETIMEDOUT),
    *(errno.EPIPE, errno.ENETUNREACH),
]
TEXTS = [
    "When completing multiple part upload for key 't/1.json' in bucket 'b': AWS Error "
    "NETWORK_CONNECTION during PutObject operation: curlCode: 28, Timeout was reached",
    "When uploading part: AWS Error UNKNOWN (HTTP status 503) during PutObject operation",
    "google::cloud::Status(UNAVAILABLE: Connection reset by peer)",
    "HDFS write failed, errno: 5 (Input/output error)",
    "Azure: the request timed out",
    "[Errno 32] Broken pipe",
    "Server disconnected without sending a response.",
]
DOUBT: dict[str, OSError] = {
    **{errno.errorcode[code]: _coded(code) for code in LINES},
    **{text: OSError(text) for text in TEXTS},
    **{f"from {errno.errorcode[code]}": _from(OSError("no"), _coded(code)) for code in LINES},
    "from a time-out of no OSError": _from(OSError("put failed"), ReadTimeoutError("x")),
    "three deep": _from(OSError("put failed"), RpcFailure(), RpcFailure(), _coded(errno.EPIPE)),
    "in the context": _within(OSError("put failed"), RpcFailure(), TimeoutError()),
    "in a text below": _from(OSError("put failed"), pa.ArrowInvalid("curlCode: 56, recv failure")),
}
REFUSED: dict[str, OSError] = {
    **{errno.errorcode[c]: _coded(c) for c in (errno.ENOSPC, errno.EACCES, errno.EROFS)},
    "a text": OSError("AWS Error ACCESS_DENIED during PutObject operation"),
    "a port": ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    "a name": _from(OSError("no host"), socket.gaierror(socket.EAI_NONAME, "unknown")),
    "a certificate": ssl.SSLCertVerificationError("not trusted"),
    "a store that knows": _from(StorageUnavailableError("nothing was done"), TimeoutError()),
}


def _commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> tuple[bool, BaseException]:
    """Commit to a store that takes everything and raises this; whether the mark is set after."""
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.table({"id": [1]}), mode="append")

    def write(_: LocalLogStore, __: str, lines: Iterable[str], **___: object) -> None:
        list(lines)
        raise error

    monkeypatch.setattr(LocalLogStore, "write", write)
    conf = {"spark.databricks.delta.maxNonConflictCommitAttempts": "1"}
    txn = DeltaLog.for_table(uri, conf).start_transaction()
    with pytest.raises((OSError, CommitOutcomeUnknownError)) as caught:
        txn.commit([SetTransaction(app_id="a", version=1)], Operation(name="WRITE"))
    return txn.may_be_committed, caught.value


@pytest.mark.parametrize("which", DOUBT)
def test_a_line_that_went_dead_is_doubt_and_never_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    in_doubt, raised = _commit(tmp_path, monkeypatch, DOUBT[which])
    assert in_doubt
    assert isinstance(raised, CommitOutcomeUnknownError)


@pytest.mark.parametrize("which", REFUSED)
def test_a_refusal_is_no_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    in_doubt, raised = _commit(tmp_path, monkeypatch, REFUSED[which])
    assert not in_doubt
    assert raised is REFUSED[which]


def test_what_the_caller_is_still_handling_is_not_doubt_about_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        raise TimeoutError("some other request, a moment ago")
    except TimeoutError:
        in_doubt, _ = _commit(tmp_path, monkeypatch, OSError(errno.ENOSPC, "full"))
    assert not in_doubt
