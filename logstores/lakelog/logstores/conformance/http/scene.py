"""The setup of a fault check: a store behind the proxy, one that bypasses it, and a folder."""

from __future__ import annotations

import threading
import traceback
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from lakelog.logstores.conformance.checks.expect import (
    PromiseBrokenError,
    expect,
    names,
    read_all,
    read_or_none,
)
from lakelog.logstores.conformance.fault_proxy import FaultProxy
from lakelog.logstores.errors import LogStoreError
from lakelog.logstores.settings import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.conformance.http_dialects import HttpDialect
    from lakelog.logstores.contract import LogStore

_T = TypeVar("_T")

ALWAYS = 100_000
"""More requests than any store makes before it gives up."""
TRIES = 5
"""How often operations that are not under test are tried before their error fails the check."""
SHORTEST_SECRET = 6
"""Characters: a shorter value occurs in any text."""


class Scene:
    """What a check works with. Files are numbered, so that no fault meets another's file."""

    def __init__(
        self,
        proxy: FaultProxy,
        store: LogStore,
        direct: LogStore,
        folder: str,
        dialect: HttpDialect,
        patience: float,
    ) -> None:
        self.proxy = proxy
        self.store = store
        """The store under test, which sees the service through the proxy."""
        self.direct = direct
        """The same on the service itself: it shows what became of a file."""
        self.folder = folder
        self._dialect = dialect
        self._patience = patience
        self._count = 0

    def path(self) -> str:
        """A file that was never used."""
        self._count += 1
        return f"{self.folder}/{self._count:020d}.json"

    def harm_create(self, fault: str, path: str, times: int = 1) -> None:
        """Arm a fault for the request that makes the file."""
        self._arm(self._dialect.create, fault, path, times)

    def harm_read(self, fault: str, path: str, times: int = 1) -> None:
        """Arm a fault for the request that reads the file."""
        self._arm(self._dialect.read, fault, path, times)

    def harm_listing(self, fault: str, times: int = 1) -> None:
        """Arm a fault for the request of a page."""
        self._arm(self._dialect.listing, fault, self.folder + "/x", times)

    def attempt(self, action: Callable[[], Any]) -> Any:
        """What an operation returned, or the exception that it raised, in bounded time."""
        (outcome,) = self.attempt_all([action])
        return outcome

    def attempt_all(self, actions: list[Callable[[], Any]]) -> list[Any]:
        """The same for several at once."""
        outcomes: list[Any] = [None] * len(actions)

        def run(number: int) -> None:
            try:
                outcomes[number] = actions[number]()
            except Exception as error:  # noqa: BLE001, RUF100  # the check judges it
                outcomes[number] = error

        threads = [
            threading.Thread(target=run, args=(number,), daemon=True)
            for number in range(len(actions))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self._patience)
        if any(thread.is_alive() for thread in threads):
            raise PromiseBrokenError(
                f"an operation still hangs after {self._patience:g} s; requests so far: "
                f"{self.proxy.requests[-5:]}"
            )
        return outcomes

    def write(self, path: str, lines: list[str], *, overwrite: bool = False) -> Any:
        """What became of a write: `None` or an exception."""
        return self.attempt(lambda: self.store.write(path, lines, overwrite=overwrite))

    def read(self, path: str) -> Any:
        """The lines, or an exception."""
        return self.attempt(lambda: read_all(self.store, path))

    def names(self) -> Any:
        """The names of the log's files, or an exception. From "0": stores may keep drafts."""
        return self.attempt(lambda: names(self.store, self.folder + "/0"))

    def put(self, path: str, lines: list[str]) -> None:
        """Make a file bypassing the proxy, as another writer does."""
        _patiently(lambda: self.direct.write(path, lines, overwrite=True))

    def truth(self, path: str) -> list[str] | None:
        """The lines that the service has."""
        return _patiently(lambda: read_or_none(self.direct, path))

    def happened(self, fault: str) -> None:
        """Raise unless the fault met a request, and forget all that are still armed."""
        self.proxy.disarm()
        fired, self.proxy.fired[:] = list(self.proxy.fired), []
        expect(
            fault in fired,
            f"no request met {fault}; does `dialect` fit this service? "
            f"requests: {self.proxy.requests[-8:]}",
        )

    def _arm(self, request: str, fault: str, path: str, times: int) -> None:
        self.proxy.arm(fault, self._dialect.pattern(request, path), times)


@contextmanager
def set_scene(
    behind: Callable[[str], LogStore],
    endpoint: str,
    root: str,
    dialect: HttpDialect,
    patience: float,
) -> Iterator[Scene]:
    """Build up and take down."""
    direct = behind(endpoint)
    folder = f"{root.rstrip('/')}/{uuid.uuid4().hex}"
    direct.create_folder(folder)
    with FaultProxy(endpoint) as proxy:
        store = behind(proxy.url)
        try:
            # Clients are loaded and new endpoints probed at the first use; no fault is for that.
            _patiently(lambda: store.write(f"{folder}/.{uuid.uuid4().hex}", ["x"]))
            yield Scene(proxy, store, direct, folder, dialect, patience)
        finally:
            for each in (store, direct):
                with suppress(OSError):
                    each.close()


def _patiently(action: Callable[[], _T]) -> _T:
    """Repeat a preparation of the check: the store gives up early, and servers stall."""
    for _ in range(TRIES):
        try:
            return action()
        except (FileNotFoundError, FileExistsError, PromiseBrokenError):
            raise
        except (OSError, LogStoreError):
            continue
    return action()


def secrets_shown(store: LogStore, error: BaseException) -> list[str]:
    """The keys of the conf whose secret values are in what an error shows, causes included."""
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(store)
    return [
        key
        for key, value in store.conf.items()
        if len(value) >= SHORTEST_SECRET and masked(key, value) != value and value in shown
    ]
