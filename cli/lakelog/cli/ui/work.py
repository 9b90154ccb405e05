"""Work that a page may have to wait for: done once, in a thread of its own, and bounded."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager

T = TypeVar("T")


class Work(Generic[T]):
    """A value that is being computed."""

    def __init__(
        self,
        do: Callable[[Callable[[str], None]], T],
        gate: AbstractContextManager[Any] | None = None,
    ) -> None:
        """Begin.

        Args:
            do: computes the value; it is given what to call with what is being done.
            gate: lets so much work through at a time; all of it if None.
        """
        self._do, self._gate = do, gate or nullcontext()
        self._done = threading.Event()
        self._value: T | None = None
        self.error: BaseException | None = None
        """What the computation raised."""
        self.doing: str = "waiting for other tables"
        """What is being done, in words."""
        threading.Thread(target=self._run, name="lakelog-ui-work", daemon=True).start()

    def _run(self) -> None:
        try:
            with self._gate:
                self._value = self._do(self._tell)
        except BaseException as error:  # raised where the value is asked for
            self.error = error
        finally:
            self._done.set()

    def _tell(self, text: str) -> None:
        self.doing = text

    def is_done(self, seconds: float = 0.0) -> bool:
        """Whether there is a value, after some seconds at most."""
        return self._done.wait(seconds)

    def value(self) -> T:
        """The value, once it is there.

        Raises:
            BaseException: what the computation raised.
        """
        self._done.wait()
        if self.error is not None:
            raise self.error
        value: Any = self._value
        return value  # type: ignore[no-any-return]


class Shelf(Generic[T]):
    """The values that were used last, each of one weight or more. Safe for threads."""

    def __init__(self, most: int) -> None:
        """Hold nothing yet.

        Args:
            most: the sum of weights that is kept; the newest value is kept whatever it weighs.
        """
        self._most = most
        self._held: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """The value of a key, if it is still held."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: T, weight: int = 1) -> None:
        """Hold a value, and let go of those that were not used for longest."""
        with self._lock:
            self._held[key] = value, weight
            self._held.move_to_end(key)
            while len(self._held) > 1 and sum(each for _, each in self._held.values()) > self._most:
                self._held.popitem(last=False)
