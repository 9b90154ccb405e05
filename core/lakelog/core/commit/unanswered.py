"""Whether an error of a write leaves it open that the request arrived, or may still arrive.

By contract an `OSError` means that nothing was written. A user's store, and the libraries that it
passes errors on from, are less exact: a time-out is an `OSError` for many of them, and so is a
connection that broke after the last byte. What looks like that counts as doubt and costs a read;
the opposite mistake would cost the files of a commit that landed.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import StorageUnavailableError
from lakelog.logstores.unreachable import NEVER_CONNECTED, causes

if TYPE_CHECKING:
    from collections.abc import Iterable

_CODES: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EIO", "ESTALE", "ETIMEDOUT", "EPIPE", "EINTR", "ECANCELED", "ECONNRESET"),
        *("ECONNABORTED", "ENETRESET", "ENETDOWN", "ENETUNREACH", "EHOSTUNREACH", "EHOSTDOWN"),
        *("ENOTCONN", "ESHUTDOWN", "ECOMM", "ENOLINK", "EPROTO"),
    )
    if hasattr(errno, name)
)
"""Of a connection, or of a disk behind one: what was sent may be there."""
_NAMES: Final = (
    *("Timeout", "TimedOut", "DeadlineExceeded", "Connection", "Disconnected", "SSL", "Chunked"),
    *("IncompleteRead", "ReadError", "WriteError", "ProtocolError", "NetworkError", "Transport"),
    *("BadStatusLine", "PayloadError", "InternalServerError", "ServiceUnavailable", "BadGateway"),
)
"""In the names that HTTP libraries and SDKs give to their errors."""
_WORDS: Final = re.compile(
    r"timed[ -]?out|time-?out (was reached|expired|exceeded)|\b(request|operation|read) time-?out"
    r"|deadline exceeded|connection (was )?(\w+ )?(reset|closed|aborted|lost|broken|interrupted)"
    r"|broken pipe|reset by peer|network is (unreachable|down)|no route to host"
    r"|input/output error|stale (NFS )?file handle|server (disconnected|returned nothing)"
    r"|unexpected (eof|end of)|end of file before|(send|recv)\w* failure|got no bytes"
    r"|AWS Error (NETWORK_CONNECTION|REQUEST_TIMEOUT|INTERNAL_FAILURE|SERVICE_UNAVAILABLE|SLOW_DOWN"
    r"|UNKNOWN)|HTTP status(?: code)?:? (408|5\d\d)|curlCode: (16|18|28|35|52|55|56|92|95)\b",
    re.IGNORECASE,
)
"""In the texts of pyarrow's file systems, which raise a bare `OSError` for everything."""


def is_unanswered(failure: BaseException, outer: BaseException | None) -> bool:
    """Whether, for all the error says, a request may have arrived or may still arrive.

    Args:
        failure: what a store raised, with its causes.
        outer: `sys.exception()` where the write began; see `causes`.
    """
    if isinstance(failure, StorageUnavailableError):
        return False  # it means that nothing was done
    return _leaves_open(list(causes(failure, outer)))


def _leaves_open(chain: Iterable[BaseException]) -> bool:
    return any(_is_on_the_way(each) for each in chain)


def _is_on_the_way(error: BaseException) -> bool:
    names = {each.__name__ for each in type(error).__mro__}
    unsent = (ConnectionRefusedError, ssl.SSLCertVerificationError, socket.gaierror)
    if isinstance(error, unsent) or names & NEVER_CONNECTED:
        return False
    if isinstance(error, TimeoutError | ConnectionError | InterruptedError):
        return True
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _CODES or _is_named(names)
    return _is_named(names) or (isinstance(error, Exception) and bool(_WORDS.search(str(error))))


def _is_named(names: Iterable[str]) -> bool:
    return any(part in name for name in names for part in _NAMES)
