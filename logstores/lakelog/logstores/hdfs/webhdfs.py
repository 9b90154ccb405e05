"""New files by WebHDFS: the NameNode names a DataNode, which takes the bytes in one request.

hdfs-native waits half a second to close a file (`COMPLETE_RETRY_DELAY_MS` in its file.rs); a
DataNode that writes on our behalf mostly doesn't. Only a draft under a unique name is written
this way, so a request of unknown outcome does no harm: the draft is not used, and another is made.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

if TYPE_CHECKING:
    from lakelog.logstores.hdfs.conf import NameService

_LOG = logging.getLogger("lakelog.logstores.hdfs")
_REST: Final = 60.0
"""Seconds without a try after a failure, so that not every commit pays for it."""
_CREATE: Final = {
    "op": "CREATE",
    "overwrite": "false",
    "createparent": "false",
    # The DataNodes flush the block to their disks before they acknowledge it.
    "createflag": "CREATE,SYNC_BLOCK",
}

_KEPT: Final = "=&%,:"
"""What of a query is kept as it is."""


class WebHdfsError(Exception):
    """WebHDFS can't be used for this file; whether a part of it was written is unknown."""


class _NextNameNodeError(Exception):
    """This NameNode can't help, and has not made the file."""


class WebHdfs:
    """Creates files through the NameNodes' HTTP servers."""

    def __init__(self, service: NameService, user: str, timeout: float) -> None:
        """Connect to nothing yet.

        Args:
            service: with the addresses, or the reason why there are none.
            user: as whom to write.
            timeout: seconds to connect, and between two bytes of a reply.
        """
        self._service = service
        self._user = user
        self._timeout = timeout
        self._idle: list[tuple[int, str, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()
        self._resting_until = 0.0
        self._active = 0
        self._logged: set[str] = set()

    @property
    def is_usable(self) -> bool:
        """Whether to try it now. The first time it is not, the reason is logged."""
        if not self._service.web:
            self._log_once(self._service.why_no_web)
            return False
        return time.monotonic() >= self._resting_until

    def create(self, path: str, body: bytes) -> None:
        """Make a file under a name that no other process uses.

        Raises:
            FileNotFoundError: its folder does not exist.
            WebHdfsError: anything else.
        """
        reason = "no NameNode"
        for address in self._service.web[self._active :] + self._service.web[: self._active]:
            try:
                self._send(self._datanode(address, path), body)
            except _NextNameNodeError as error:
                reason = str(error)
            except FileNotFoundError:
                raise
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise WebHdfsError(f"{type(error).__name__}: {error}") from error
            else:
                self._active = self._service.web.index(address)
                return
        raise WebHdfsError(reason)

    def rest(self, reason: str) -> None:
        """Stop using it for a while, because of `reason`."""
        self._resting_until = time.monotonic() + _REST
        self._log_once(reason)

    def forget_lock(self) -> None:
        """In a forked child, whose connections are its own: no thread holds it."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, _, connection in idle:
            connection.close()

    def _log_once(self, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            _LOG.warning(
                "commits to hdfs://%s don't use WebHDFS, and take half a second longer each: %s",
                self._service.authority,
                reason,
            )

    def _datanode(self, address: str, path: str) -> str:
        """Where to send the bytes, by a NameNode. A standby answers as the active one does."""
        query = urlencode({**_CREATE, "user.name": self._user, "noredirect": "true"})
        try:
            status, reply, location = self._ask(address, f"/webhdfs/v1{quote(path)}?{query}")
        except (OSError, http.client.HTTPException) as error:
            raise _NextNameNodeError(f"{address}: {error}") from error
        if status == 200:
            location = str(_json(reply).get("Location", ""))
        place, slash, rest = location.removeprefix("http://").partition("/")
        if status in (200, 307) and location.startswith("http://") and slash:
            # The path comes back decoded, in part or whole, so ours is sent again.
            return f"http://{place}/webhdfs/v1{quote(path)}?{quote(rest.rpartition('?')[2], _KEPT)}"
        raise _NextNameNodeError(f"{address}: {_refusal_text(status, reply, path)}")

    def _ask(self, address: str, target: str) -> tuple[int, bytes, str]:
        """One request to a NameNode, on a connection that is kept.

        It changes nothing, so it is repeated where a kept connection turns out to be closed.
        """
        while True:
            kept = self._take(address)
            connection = kept or _connection(address, self._timeout)
            try:
                connection.request("PUT", target)
                answer = connection.getresponse()
                reply = answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if kept is None:
                    raise
                continue
            except BaseException:
                connection.close()
                raise
            with self._lock:
                self._idle.append((os.getpid(), address, connection))
            return answer.status, reply, answer.headers.get("Location", "")

    def _take(self, address: str) -> http.client.HTTPConnection | None:
        with self._lock:
            for number, (process, theirs, connection) in enumerate(self._idle):
                if theirs == address and process == os.getpid():
                    del self._idle[number]
                    return connection
        return None

    def _send(self, location: str, body: bytes) -> None:
        parts = urlsplit(location)
        connection = _connection(parts.netloc, self._timeout)
        with contextlib.closing(connection):
            connection.request("PUT", f"{parts.path}?{parts.query}", body)
            answer = connection.getresponse()
            reply = answer.read()
            if answer.status != 201:
                path = unquote(parts.path).removeprefix("/webhdfs/v1")
                refusal = f"{parts.netloc}: {_refusal_text(answer.status, reply, path)}"
                # The DataNode asked the NameNode that sent us, and that one is no longer, or not
                # yet, the active one: nothing was made.
                raise _NextNameNodeError(refusal) if "Standby" in refusal else WebHdfsError(refusal)


class _Connection(http.client.HTTPConnection):
    """A connection whose small packets leave at once, and that closes when it is forgotten."""

    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __del__(self) -> None:
        self.close()


def _connection(address: str, timeout: float) -> http.client.HTTPConnection:
    return _Connection(address, timeout=timeout)


def _json(reply: bytes) -> dict[str, Any]:
    try:
        found = json.loads(reply)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refusal_text(status: int, reply: bytes, path: str) -> str:
    """A server's refusal, in one line.

    Raises:
        FileNotFoundError: it said that the folder does not exist.
    """
    remote = _json(reply).get("RemoteException", {})
    kind = str(remote.get("exception", "")) if isinstance(remote, dict) else ""
    if status == 404 and kind == "FileNotFoundException":
        raise FileNotFoundError(2, "its folder does not exist", path)
    return f"HTTP {status} {kind}".rstrip()
