"""A bucket of Google Cloud Storage, one request at a time.

A create is an upload with `ifGenerationMatch=0`, which succeeds only while the name has no live
object: https://cloud.google.com/storage/docs/request-preconditions. It goes out in one request of
any size, because the SDK would split what is above 8 MiB into a resumable session of several.
"""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from lakelog.logstores._gcs_conf import GOOGLE
from lakelog.logstores._gcs_connection import connection_of
from lakelog.logstores._gcs_errors import ForeignReplyError, translated
from lakelog.logstores._objects import (
    TOKEN_NAME,
    KeyTakenError,
    ObjectClient,
    ObjectEntry,
    Owner,
    PreparedRequest,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.logstores._gcs_conf import GCSSettings
    from lakelog.logstores._gcs_connection import GCSConnection
    from lakelog.logstores._gcs_pace import Pace

__all__ = ["GCSClient"]

_CONTENT_TYPE: Final = "application/octet-stream"
_FIELDS: Final = "items(name,size,updated),prefixes,nextPageToken"
_PAGE: Final = 1000


class GCSClient(ObjectClient):
    """The requests that a log needs, on one bucket. The SDK's retries are off in all of them."""

    def __init__(self, settings: GCSSettings, bucket: str, pace: Pace) -> None:
        """Connect at the first request.

        Args:
            settings: endpoint, credentials and the rest.
            bucket: its name.
            pace: makes a name that is written again wait for its turn.
        """
        self._settings = settings
        self._bucket = bucket
        self._pace = pace

    @property
    def endpoint(self) -> str:
        return f"{self._settings.root_url}/{self._bucket}"

    @property
    def is_known(self) -> bool:
        host = urlsplit(self._settings.root_url).hostname or ""
        return self._settings.root_url == GOOGLE or host.endswith(".googleapis.com")

    def prepared_create(self, key: str, body: bytes, token: str) -> PreparedRequest | None:
        session = self._connection.session
        url, kind, data = self._upload(key, body, token, once=True)
        parts = urlsplit(url)
        headers = {"Content-Type": kind, "Content-Length": str(len(data)), "Host": parts.netloc}
        with translated(self._uri(key), "storage.objects.create"):
            session.credentials.before_request(_auth_request(session), "POST", url, headers)
        lines = [f"POST {parts.path}?{parts.query} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines) + "\r\n\r\n"
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        return PreparedRequest(parts.hostname or "", port, tls, head.encode() + data)

    def create(self, key: str, body: bytes, token: str) -> None:
        self._pace.wait(self._bucket, key)
        try:
            self._send(key, body, token, once=True)
        except (KeyTakenError, PermissionError, FileNotFoundError):
            self._pace.forget(self._bucket, key)
            raise

    def put(self, key: str, body: bytes) -> None:
        self._pace.wait(self._bucket, key)
        self._send(key, body, None, once=False)

    def get(self, key: str) -> bytes:
        with translated(self._uri(key), "storage.objects.get"):
            blob = self._bucket_object.blob(key)
            data: bytes = blob.download_as_bytes(
                client=self._connection.client, retry=None, timeout=self._timeouts
            )
            if blob.generation is None and blob.crc32c is None:
                raise ForeignReplyError(
                    "the reply has none of Google's headers, so something in between made it. "
                    "Check fs.gs.storage.root.url, fs.gs.proxy.address and HTTPS_PROXY"
                )
            return data

    def owner(self, key: str) -> Owner | None:
        blob = self._bucket_object.blob(key)
        try:
            with translated(self._uri(key), "storage.objects.get"):
                blob.reload(
                    client=self._connection.client,
                    projection="noAcl",
                    retry=None,
                    timeout=self._timeouts,
                )
        except FileNotFoundError:
            return None
        return Owner((blob.metadata or {}).get(TOKEN_NAME))

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        with translated(self._uri(prefix), "storage.objects.list"):
            found = self._connection.client.list_blobs(
                self._bucket_object,
                prefix=prefix or None,
                delimiter="/",
                start_offset=prefix + start if start else None,
                page_token=continuation,
                page_size=min(limit or _PAGE, _PAGE),
                fields=_FIELDS,
                retry=None,
                timeout=self._timeouts,
            )
            page = next(iter(found.pages), None)
            if page is None:
                return [], None
            entries = [
                ObjectEntry(
                    blob.name[len(prefix) :],
                    int(blob.size or 0),
                    int(blob.updated.timestamp() * 1000) if blob.updated else 0,
                )
                for blob in page
            ]
            folders = sorted(name[len(prefix) :].rstrip("/") for name in page.prefixes)
            entries += [ObjectEntry(name, 0, 0, is_prefix=True) for name in folders]
            return entries, found.next_page_token

    def delete(self, key: str) -> None:
        try:
            with translated(self._uri(key), "storage.objects.delete", changes=True):
                self._bucket_object.blob(key).delete(
                    client=self._connection.client, retry=None, timeout=self._timeouts
                )
        except FileNotFoundError as error:
            if "bucket" in str(error):
                raise

    def upload(self, key: str, source: Path) -> None:
        # Above 8 MiB this is a resumable session: nothing is visible before its last request, and
        # a session that is left alone vanishes within a week.
        self._pace.wait(self._bucket, key)
        with translated(self._uri(key), "storage.objects.create", changes=True):
            self._bucket_object.blob(key).upload_from_filename(
                str(source),
                content_type=_CONTENT_TYPE,
                client=self._connection.client,
                retry=None,
                timeout=self._timeouts,
            )

    @property
    def _connection(self) -> GCSConnection:
        return connection_of(self._settings)

    @property
    def _bucket_object(self) -> Any:
        return self._connection.bucket(self._bucket)

    @property
    def _timeouts(self) -> tuple[float, float]:
        return (self._settings.timeout, self._settings.timeout)

    def _uri(self, key: str) -> str:
        return f"gs://{self._bucket}/{key}"

    def _send(self, key: str, body: bytes, token: str | None, *, once: bool) -> None:
        from google.api_core.exceptions import from_http_response

        url, kind, data = self._upload(key, body, token, once=once)
        permission = "storage.objects.create" + ("" if once else " or storage.objects.delete")
        with translated(self._uri(key), permission, changes=True):
            reply = self._connection.session.post(
                url,
                data=data,
                headers={"Content-Type": kind},
                timeout=self._timeouts,
                allow_redirects=False,
            )
            if reply.status_code != 200:
                raise from_http_response(reply)
            _check_named(reply, key)

    def _upload(
        self, key: str, body: bytes, token: str | None, *, once: bool
    ) -> tuple[str, str, bytes]:
        """URL, content type and body of an upload in one request, with metadata and checksum."""
        query = {"uploadType": "multipart"}
        if once:
            query["ifGenerationMatch"] = "0"
        payer = self._settings.payer(self._bucket)
        if payer:
            query["userProject"] = payer
        path = f"/upload/storage/v1/b/{quote(self._bucket, safe='')}/o"
        about: dict[str, object] = {"name": key, "crc32c": _crc32c(body)}
        if token is not None:
            about["metadata"] = {TOKEN_NAME: token}
        boundary = uuid.uuid4().hex.encode()
        data = b"\r\n".join(
            (
                b"--" + boundary,
                b"Content-Type: application/json; charset=UTF-8",
                b"",
                json.dumps(about).encode(),
                b"--" + boundary,
                b"Content-Type: " + _CONTENT_TYPE.encode(),
                b"",
                body,
                b"--" + boundary + b"--",
                b"",
            )
        )
        url = f"{self._settings.root_url}{path}?{urlencode(query)}"
        return url, f"multipart/related; boundary={boundary.decode()}", data


def _check_named(reply: Any, key: str) -> None:
    """Believe a success only if it names the object: a proxy's page may have status 200, too."""
    try:
        named = reply.json()["name"] == key
    except (ValueError, KeyError, TypeError):
        named = False
    if not named:
        raise ForeignReplyError(
            "the reply of success does not name the object, so something in between made it. "
            "Check fs.gs.storage.root.url, fs.gs.proxy.address and HTTPS_PROXY"
        )


def _crc32c(body: bytes) -> str:
    import google_crc32c

    return base64.b64encode(google_crc32c.Checksum(body).digest()).decode()


def _auth_request(session: Any) -> Any:
    from google.auth.transport.requests import Request

    return Request(session)
