"""A bucket of Google Cloud Storage, one request at a time.

A create is an upload with `ifGenerationMatch=0`, which succeeds only while the name has no live
object: https://cloud.google.com/storage/docs/request-preconditions.

The requests go out on the SDK's authorised session, without its methods on top. Those split an
upload above 8 MiB into several requests, ask for the bucket's metadata along with a listing, and
take a reply that was cut after its first line for an empty page.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlencode, urlsplit

from lakelog.logstores.gcs.conf import GOOGLE
from lakelog.logstores.gcs.connection import connection_of
from lakelog.logstores.gcs.errors import ForeignReplyError, translated
from lakelog.logstores.gcs.replies import (
    checked_body,
    crc32c,
    json_of,
    millis,
    ranged_body,
    successful,
)
from lakelog.logstores.limits import check_declared_length
from lakelog.logstores.object_store.client import (
    TOKEN_NAME,
    KeyTakenError,
    ObjectEntry,
    ObjectInfo,
    Owner,
    PreparedRequest,
    RangedObjectClient,
)

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.logstores.gcs.conf import GCSSettings
    from lakelog.logstores.gcs.connection import GCSConnection
    from lakelog.logstores.gcs.pace import Pace

_CONTENT_TYPE: Final = "application/octet-stream"
_OBJECT: Final = "storage#object"
_ABOUT: Final = "kind,name,metadata,updated"
_INFO: Final = "kind,name,size,updated,generation"
_PAGES: Final = "kind,items(name,size,updated),prefixes,nextPageToken"
_REPLACED: Final = "{} was replaced while it was read"


class GCSClient(RangedObjectClient):
    """The requests that a table needs, on one bucket. The SDK's retries are off in all of them."""

    page_size: ClassVar[int] = 1000
    """Entries of a page of a listing at most, where nobody asks for fewer."""

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

    @property
    def lists_in_order(self) -> bool:
        """Google documents that it lists in lexicographic order."""
        return True

    def prepared_create(
        self,
        key: str,
        body: bytes,
        token: str,
        *,
        streamed: bool = False,  # noqa: ARG002  # no signature is over a body here
    ) -> PreparedRequest | None:
        connection = self._connection
        url, kind, data = self._upload(key, body, token, once=True)
        parts = urlsplit(url)
        headers = {"Content-Type": kind, "Content-Length": str(len(data)), "Host": parts.netloc}
        with translated(self._uri(key), "storage.objects.create"):
            connection.session.credentials.before_request(
                connection.auth_request, "POST", url, headers
            )
        lines = [f"POST {parts.path}?{parts.query} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(lines) + "\r\n\r\n"
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        return PreparedRequest(parts.hostname or "", port, tls, head.encode() + data)

    def create(self, key: str, body: bytes, token: str) -> None:
        # Not for a turn among those who race for the name: all but one of them would wait for a
        # refusal, a second each.
        self._pace.wait_after_doubt(self._bucket, key)
        try:
            # By `ifGenerationMatch=0`, which holds for an object that never was and for one that
            # was deleted.
            self._send(key, body, token, once=True)
        except (KeyTakenError, PermissionError, FileNotFoundError):
            # Nothing was written, so the limit on writes of one object does not count this one.
            self._pace.forget(self._bucket, key)
            raise
        except Exception:
            self._pace.note(self._bucket, key)
            raise

    def put(self, key: str, body: bytes) -> None:
        self._pace.wait(self._bucket, key)
        self._send(key, body, None, once=False)

    def get(self, key: str) -> bytes:
        with translated(self._uri(key), "storage.objects.get"):
            # Compressed on its way, the body would have neither length nor checksum to compare.
            media = {"alt": "media"}
            reply = self._ask("GET", _object(key), media, encoding="identity", stream=True)
            with contextlib.closing(reply):
                check_declared_length(reply.headers.get("Content-Length"))
                return checked_body(reply)

    def owner(self, key: str) -> Owner | None:
        try:
            with translated(self._uri(key), "storage.objects.get"):
                about = _named(self._ask("GET", _object(key), {"fields": _ABOUT}), key)
        except FileNotFoundError:
            return None
        return Owner((about.get("metadata") or {}).get(TOKEN_NAME), millis(about.get("updated")))

    def info(self, key: str) -> ObjectInfo | None:
        try:
            with translated(self._uri(key), "storage.objects.get"):
                about = _named(self._ask("GET", _object(key), {"fields": _INFO}), key)
        except FileNotFoundError:
            return None
        return ObjectInfo(
            int(about.get("size") or 0),
            millis(about.get("updated")) or 0,
            str(about.get("generation") or 0),
            key.endswith("/"),
        )

    def get_range(self, key: str, start: int, length: int, state: str) -> bytes:
        # Another generation has other bytes: better no file than half of each.
        query = {"alt": "media", "ifGenerationMatch": state}
        uri, part = self._uri(key), (start, length)
        try:
            with translated(uri, "storage.objects.get", conditional=True):
                reply = self._ask("GET", _object(key), query, encoding="identity", part=part)
                generation, data = ranged_body(reply, length)
        except KeyTakenError:
            raise OSError(_REPLACED.format(uri)) from None
        if generation != state:  # not every emulator minds the condition
            raise OSError(_REPLACED.format(uri))
        return data

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        most = min(limit or self.page_size, self.page_size)
        query = {"delimiter": "/", "maxResults": str(most)}
        if start:
            query["startOffset"] = prefix + start
        return self._listed(prefix, continuation, query)

    def flat_page(
        self, prefix: str, continuation: str | None
    ) -> tuple[list[ObjectEntry], str | None]:
        entries, following = self._listed(prefix, continuation, {"maxResults": str(self.page_size)})
        # An object whose name ends with a slash stands for a folder.
        marked = [replace(each, is_prefix=each.name.endswith("/")) for each in entries]
        return marked, following

    def _listed(
        self, prefix: str, continuation: str | None, query: dict[str, str]
    ) -> tuple[list[ObjectEntry], str | None]:
        query["fields"] = _PAGES
        if prefix:
            query["prefix"] = prefix
        if continuation:
            query["pageToken"] = continuation
        with translated(self._uri(prefix), "storage.objects.list"):
            found = json_of(self._ask("GET", "o", query), "storage#objects")
        entries = [
            ObjectEntry(
                item["name"][len(prefix) :], int(item["size"]), millis(item.get("updated")) or 0
            )
            for item in found.get("items", ())
        ]
        entries += [
            ObjectEntry(folder[len(prefix) :].rstrip("/"), 0, 0, is_prefix=True)
            for folder in found.get("prefixes", ())
        ]
        return entries, found.get("nextPageToken")

    def delete(self, key: str) -> None:
        try:
            with translated(self._uri(key), "storage.objects.delete", changes=True):
                self._ask("DELETE", _object(key), {})
        except FileNotFoundError as error:
            if "the bucket does not exist" in str(error):
                raise

    def upload(self, key: str, source: Path) -> None:
        # Above 8 MiB this is a resumable session: nothing is visible before its last request, and
        # a session that is left alone vanishes within a week.
        self._pace.wait(self._bucket, key)
        with translated(self._uri(key), "storage.objects.create", changes=True):
            self._connection.bucket(self._bucket).blob(key).upload_from_filename(
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
    def _timeouts(self) -> tuple[float, float]:
        return (self._settings.timeout, self._settings.timeout)

    def _uri(self, key: str) -> str:
        return f"gs://{self._bucket}/{key}"

    def _send(self, key: str, body: bytes, token: str | None, *, once: bool) -> None:
        url, kind, data = self._upload(key, body, token, once=once)
        permission = "storage.objects.create" + ("" if once else " or storage.objects.delete")
        with translated(self._uri(key), permission, changes=True, conditional=once):
            reply = self._connection.session.post(
                url,
                data=data,
                headers={"Content-Type": kind},
                timeout=self._timeouts,
                allow_redirects=False,
            )
            _named(reply, key)

    def _ask(
        self,
        method: str,
        what: str,
        query: dict[str, str],
        *,
        encoding: str = "gzip",
        stream: bool = False,
        part: tuple[int, int] | None = None,
    ) -> Any:
        """One request to the JSON API, below the bucket; for a part, its first byte and length."""
        headers = {"Accept-Encoding": encoding}
        if part is not None:
            headers["Range"] = f"bytes={part[0]}-{sum(part) - 1}"
        payer = self._settings.payer(self._bucket)
        reply = self._connection.session.request(
            method,
            f"{self._settings.root_url}/storage/v1/b/{quote(self._bucket, safe='')}/{what}",
            params={**query, "userProject": payer} if payer else query,
            headers=headers,
            timeout=self._timeouts,
            allow_redirects=False,
            stream=stream,
        )
        return successful(reply, in_part=part is not None)

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
        about: dict[str, object] = {"name": key, "crc32c": crc32c(body)}
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


def _object(key: str) -> str:
    return "o/" + quote(key, safe="")


def _named(reply: Any, key: str) -> dict[str, Any]:
    about = json_of(reply, _OBJECT)
    if about.get("name") != key:
        raise ForeignReplyError("a successful reply names another object")
    return about
