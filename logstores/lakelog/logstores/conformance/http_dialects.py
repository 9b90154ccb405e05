"""The HTTP protocols of object stores, as far as the fault checks need them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpDialect:
    """Which requests are which, and how the service refuses.

    A pattern is searched for in the head of a request (request line and headers, CRLF between
    them), so `^` is its beginning. `{name}` in it stands for the last part of the path. An answer
    is written `<status>:<code>`, as the fault proxy takes it.
    """

    create: str
    """The request that makes a file, also the one that replaces it."""
    read: str
    """The request that gets the bytes of a file."""
    listing: str
    """The request for a page of a listing."""
    page: int
    """Entries of a page of a listing, at most."""
    busy: tuple[str, ...]
    """Answers after which the same request, repeated, may succeed."""
    refused: tuple[str, ...]
    """Answers that say that nothing was done, for certain."""
    expired: tuple[str, ...]
    """Answers to credentials that are no longer valid."""

    def pattern(self, request: str, path: str) -> re.Pattern[bytes]:
        """The pattern `request` of this dialect, for a path."""
        name = re.escape(path.rpartition("/")[2])
        return re.compile(request.replace("{name}", name).encode())


S3: Final = HttpDialect(
    create=r"^PUT /[^? ]*{name}[? ]",
    read=r"^GET /[^? ]*{name}[? ]",
    listing=r"^GET /[^ ]*[?&]list-type=2",
    page=1000,
    busy=("409:ConditionalRequestConflict", "500:InternalError", "503:SlowDown"),
    refused=("409:ConditionalRequestConflict", "429:TooManyRequests"),
    expired=("400:ExpiredToken", "403:InvalidAccessKeyId"),
)
"""Amazon's S3 and what is compatible: docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html.
The 409 comes while another conditional request for the key is in flight, and says: again."""

AZURE: Final = HttpDialect(
    # Leases and metadata are PUTs of the same path, with `comp=`.
    create=r"^PUT /[^? ]*{name}(\?(?![^ ]*comp=)[^ ]*)? ",
    read=r"^GET /[^? ]*{name}(\?(?![^ ]*comp=)[^ ]*)? ",
    listing=r"^GET /[^ ]*[?&]comp=list",
    page=5000,
    busy=("429:TooManyRequests", "500:OperationTimedOut", "503:ServerBusy"),
    refused=("429:TooManyRequests", "403:AuthorizationPermissionMismatch"),
    expired=("401:InvalidAuthenticationInfo", "403:AuthenticationFailed"),
)
"""Azure Blob Storage: learn.microsoft.com/rest/api/storageservices/blob-service-error-codes.
Its 409 says that the blob exists, and is nothing to be repeated."""

GCS: Final = HttpDialect(
    # The object's name is in the query (media upload) or in the body (multipart upload).
    create=r"^POST /upload/storage/v1/b/",
    read=r"^GET /(download/)?storage/v1/b/[^/ ]+/o/[^ ]*[?&]alt=media",
    listing=r"^GET /storage/v1/b/[^/ ]+/o(\?| )",
    page=1000,
    busy=("429:rateLimitExceeded", "500:internalError", "503:backendError"),
    refused=("429:rateLimitExceeded", "403:forbidden"),
    expired=("401:authError",),
)
"""Google's JSON API: cloud.google.com/storage/docs/json_api/v1/status-codes."""
