"""One HDFS through hdfs-native: one request a method, each bounded in time.

hdfs-native has no timeout of its own: a NameNode that accepts and never answers would hold the
caller forever. So each call runs in a thread that is abandoned when its time is up.

A fork does not copy the threads of hdfs-native. A client that is dropped in the child would wait
for them forever, so the child keeps what it inherited, unused, and makes its own clients. The
connections to DataNodes are kept by hdfs-native for all clients of a process; it takes none that
is older than three seconds (`DATANODE_CACHE_EXPIRY` in its connection.rs), so the child lets that
time pass before it reads or writes data: these are still its parent's.
"""

from __future__ import annotations

import ctypes
import io
import sys
import threading
import time
import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lakelog.logstores.errors import LogStoreConfError, MissingExtraError
from lakelog.logstores.hdfs.errors import raise_translated
from lakelog.logstores.object_store.store import TryAgainError
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Callable

    from hdfs_native import Client, FileReader, FileStatus, FileWriter

    from lakelog.logstores.hdfs.conf import HadoopConf, NameService
    from lakelog.logstores.object_store.store import RetryPolicy

CHUNK: Final = 1 << 20
"""Bytes that are read or written by one call."""
_PAGE: Final = 1000
_MODE: Final = 0o755
_PROVIDER: Final = "dfs.client.failover.proxy.provider"
_ACTIVE_ONLY: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"

_T = TypeVar("_T")

_LIVE: Final[weakref.WeakSet[HdfsClient]] = weakref.WeakSet()
_EXPIRY: Final = 3.2
"""Seconds after which hdfs-native uses no kept connection to a DataNode."""


class _Fork:
    """What a forked child has to observe."""

    data_from = 0.0
    """`time.monotonic()` from which on data may be read and written."""

    @classmethod
    def happened(cls) -> None:
        """In the child."""
        for each in list(_LIVE):
            each.forget()
        if "hdfs_native" in sys.modules:
            cls.data_from = time.monotonic() + _EXPIRY

    @classmethod
    def wait(cls) -> None:
        """Let the parent's connections expire."""
        left = cls.data_from - time.monotonic()
        if left > 0:
            time.sleep(left)


after_fork(_Fork.happened)


class HdfsClient:
    """The NameNode (or its standby) and the DataNodes behind it.

    Methods raise `TryAgainError` for failures that may pass, `OSError` for the rest.
    """

    def __init__(
        self, service: NameService, hadoop: HadoopConf, policy: RetryPolicy, timeout: float
    ) -> None:
        """Keep the settings; connect at the first use.

        Args:
            service: where the NameNodes are.
            hadoop: all settings of Hadoop.
            policy: how long `again` repeats.
            timeout: seconds for one call.
        """
        self.service = service
        self._hadoop = hadoop
        self._policy = policy
        self._timeout = timeout
        self._lock = threading.Lock()
        self._made: Client | None = None
        _LIVE.add(self)

    @property
    def where(self) -> str:
        """The addresses, for messages."""
        names = ", ".join(self.service.namenodes)
        alone = self.service.namenodes == (self.service.authority,)
        return names if alone else f"{self.service.authority} ({names})"

    def status(self, path: str) -> FileStatus | None:
        """What is at a path, if anything."""
        try:
            return self._ask(path, lambda client: client.get_file_info(path))
        except FileNotFoundError:
            return None

    def entries(self, path: str) -> list[FileStatus]:
        """What is in a folder, in the server's order.

        Raises:
            FileNotFoundError: no such folder.
            NotADirectoryError: it is a file.
        """
        listing = self._ask(path, lambda client: client.list_status(path))
        found: list[FileStatus] = []
        while page := self._ask(path, lambda _: list(islice(listing, _PAGE))):
            found += page
        if len(found) == 1 and found[0].path == path.rstrip("/") and not found[0].isdir:
            raise NotADirectoryError(20, "Not a directory", path)
        return found

    def reader(self, path: str) -> FileReader:
        """Open a file; read it by `piece`."""
        _Fork.wait()
        return self._ask(path, lambda client: client.read(path))

    def writer(self, path: str, *, overwrite: bool, create_parent: bool) -> FileWriter:
        """Make a file that others see at once, empty; write to it, and close it, by `call`.

        One that is not closed stays as it is, and its lease runs out on the NameNode.
        """
        _Fork.wait()

        def create(client: Client) -> FileWriter:
            from hdfs_native import WriteOptions

            options = WriteOptions(overwrite=overwrite, create_parent=create_parent)
            made = client.create(path, options)
            # Python closes a stream that is not closed when it frees it: a call of the network
            # without a limit of time, in whichever thread collects garbage.
            io.RawIOBase.close(made)
            return made

        return self._ask(path, create)

    def call(self, path: str, work: Callable[[], _T]) -> _T:
        """Do a piece of work with a reader or writer, bounded in time."""
        return self._ask(path, lambda _: work())

    def piece(self, path: str, reader: FileReader, at: int, count: int) -> bytes:
        """Bytes of an open file, all `count` of them."""
        data = bytes(self.call(path, lambda: reader.read_range(at, count)))
        if len(data) != count:
            raise TryAgainError(f"{path}: {len(data)} of {count} bytes came", may_have_landed=False)
        return data

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Give a file or folder another name, in one step on the NameNode.

        Raises:
            FileExistsError: not `overwrite`, and the name is taken.
            FileNotFoundError: no source, or no folder to move to.
        """
        self._ask(target, lambda client: client.rename(source, target, overwrite))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete; return whether something was there."""
        return self._ask(path, lambda client: client.delete(path, recursive))

    def confirm(self, path: str, status: FileStatus) -> None:
        """Return once all that the NameNode showed until now is safe in its log.

        It shows an edit before that, and an edit that finds nothing to do waits for nothing. The
        file's own mode, set once more, is logged after whatever came before.
        """
        self._ask(path, lambda client: client.set_permission(path, status.permission & 0o777))

    def make_folder(self, path: str, *, parents: bool) -> None:
        """Make a folder; an existing one is not an error."""
        self._ask(path, lambda client: client.mkdirs(path, _MODE, parents))

    def again(self, path: str, request: Callable[[], _T]) -> _T:
        """Repeat what may be repeated, within the budget.

        Raises:
            OSError: every try failed.
        """
        patience = self._policy.start()
        while True:
            try:
                return request()
            except TryAgainError as error:
                if not patience.pause_after(error):
                    raise patience.spent(f"{path}: {error}") from error

    def close(self) -> None:
        """Let go of the connections."""
        with self._lock:
            self._made = None

    def forget(self) -> None:
        """In a forked child: keep the parent's client without ever using it."""
        self._lock = threading.Lock()
        if self._made is not None:
            # One reference too many, so that not even the end of the process drops it.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._made))
            self._made = None

    def _client(self) -> Client:
        with self._lock:
            if self._made is None:
                self._made = self._new()
            return self._made

    def _new(self) -> Client:
        try:
            from hdfs_native import Client
        except ImportError as error:
            raise MissingExtraError("hdfs", "the store for HDFS") from error
        service, settings = self.service, dict(self._hadoop.settings)
        url = f"hdfs://{service.authority}"
        if len(service.namenodes) == 1:
            url = f"hdfs://{service.namenodes[0]}"
        else:  # hdfs-native takes the names as they stand, blanks and all
            names = [f"nn{number}" for number in range(len(service.namenodes))]
            settings[f"dfs.ha.namenodes.{service.authority}"] = ",".join(names)
            for name, address in zip(names, service.namenodes, strict=True):
                settings[f"dfs.namenode.rpc-address.{service.authority}.{name}"] = address
            # An observer may lag behind what another client wrote; the active one never does.
            settings[f"{_PROVIDER}.{service.authority}"] = _ACTIVE_ONLY
        # Each NameNode is asked once a call; waiting and repeating is done here, with a budget.
        settings["dfs.client.failover.max.attempts"] = str(len(service.namenodes) - 1)
        kerberos: dict[str, Any] = {}  # without them: the ticket cache
        if self._hadoop.principal:
            kerberos["kerberos_principal"] = self._hadoop.principal
        if self._hadoop.principal and self._hadoop.keytab:
            kerberos["kerberos_keytab"] = self._hadoop.keytab
        try:
            return Client(url, settings, **kerberos)
        except ValueError as error:
            raise LogStoreConfError(f"no client for {self.where}: {error}") from error

    def _ask(self, path: str, request: Callable[[Client], _T]) -> _T:
        answers: list[_T] = []
        errors: list[BaseException] = []
        used: list[Client] = []

        def run() -> None:
            try:
                used.append(self._client())
                answers.append(request(used[0]))
            except BaseException as error:  # noqa: BLE001, RUF100  # handed to the caller
                errors.append(error)

        thread = threading.Thread(target=run, name="lakelog-hdfs", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if answers:
            return answers[0]
        if not errors:
            self._drop(used)  # the next call must not wait for this one
            raise TryAgainError(
                f"NameNode {self.where}: no answer in {self._timeout:g} s", may_have_landed=True
            )
        error = errors[0]
        if isinstance(error, TryAgainError | LogStoreConfError | MissingExtraError):
            raise error
        if not isinstance(error, OSError | RuntimeError | NotImplementedError):
            raise error
        try:
            raise_translated(error, path, self.where)
        except TryAgainError as again:
            if isinstance(error, OSError) and again.may_have_landed:
                self._drop(used)  # it may take the broken connection for the next call too
            raise

    def _drop(self, used: list[Client]) -> None:
        """Let go of a client, where another call has not put a new one in its place."""
        with self._lock:
            if not used or self._made is used[0]:
                self._made = None
