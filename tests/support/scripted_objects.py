"""A bucket in memory whose network does what a script says, request by request.

What can happen to a create, beside `OK`:

    LOST_REPLY    done; the writer hears of a broken connection
    LOST_REQUEST  never done; the writer hears the same
    LATE          the writer hears the same, and it is done later: see `Bucket.land`
    TWICE         done twice at once; the writer hears the second answer
    ECHO          done, and answered; a copy of it arrives later
    GATEWAY       done; something between answers in the service's place
    WALL          never done; the same answer
    BUSY          refused (409, 429), and said so
    UNREACHED     no connection
    FORBIDDEN     refused for good

Owners can be looked up `OK`, `BUSY` or `FORBIDDEN`.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.logstores.object_store.store import (
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    Owner,
    TryAgainError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


class Fate(enum.Enum):
    """What becomes of a request."""

    OK = enum.auto()
    LOST_REPLY = enum.auto()
    LOST_REQUEST = enum.auto()
    LATE = enum.auto()
    TWICE = enum.auto()
    ECHO = enum.auto()
    GATEWAY = enum.auto()
    WALL = enum.auto()
    BUSY = enum.auto()
    UNREACHED = enum.auto()
    FORBIDDEN = enum.auto()


@dataclass
class FakeTime:
    """A clock that goes on only when somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Bucket:
    """The objects, by key: the token of their maker, and their bytes."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str | None, bytes]] = {}
        self.in_flight: list[tuple[str, str, bytes]] = []
        self.stored: list[tuple[str, str]] = []
        """Key and token of every create that was carried out, in order."""

    def create(self, key: str, token: str, body: bytes) -> bool:
        if key in self.objects:
            return False
        self.objects[key] = (token, body)
        self.stored.append((key, token))
        return True

    def land(self, number: int = 0) -> None:
        """Let one of the requests on their way arrive."""
        key, token, body = self.in_flight.pop(number % len(self.in_flight))
        self.create(key, token, body)


class ScriptedClient(ObjectClient):
    """A writer's way to the bucket. A script that has ended leaves everything `OK`."""

    def __init__(
        self,
        bucket: Bucket,
        creates: Iterable[Fate] = (),
        looks: Iterable[Fate] = (),
        before: Callable[[], None] = lambda: None,
        retry_after: float | None = None,
    ) -> None:
        """Write to a bucket.

        Args:
            bucket: the truth.
            creates: what happens to each `create`, and to each `put`, `get` and `page`.
            looks: what happens to each `owner`.
            before: called before each request.
            retry_after: seconds that a busy service asks for.
        """
        self.bucket = bucket
        self.tokens: set[str] = set()
        self.requests: list[str] = []
        self.page_size = 1000
        self._creates = deque(creates)
        self._looks = deque(looks)
        self.before = before
        self._retry_after = retry_after

    @property
    def endpoint(self) -> str:
        return "memory"

    @property
    def is_known(self) -> bool:
        return True

    def create(self, key: str, body: bytes, token: str) -> None:
        self.tokens.add(token)
        fate = self._begin("create", self._creates)
        if fate in (Fate.LATE, Fate.ECHO):
            self.bucket.in_flight.append((key, token, body))
        if fate in (Fate.LATE, Fate.LOST_REQUEST):
            raise TryAgainError(fate.name, may_have_landed=True)
        if fate is Fate.WALL:
            raise NotTheServiceError("a sign-in page")
        done = self.bucket.create(key, token, body)
        if fate is Fate.TWICE:
            done = self.bucket.create(key, token, body)
        if fate is Fate.LOST_REPLY:
            raise TryAgainError(fate.name, may_have_landed=True)
        if fate is Fate.GATEWAY:
            raise NotTheServiceError("a sign-in page")
        if not done:
            raise KeyTakenError("412")

    def put(self, key: str, body: bytes) -> None:
        fate = self._begin("put", self._creates)
        if fate is not Fate.LOST_REQUEST:
            self.bucket.objects[key] = (None, body)
        if fate is not Fate.OK:
            raise TryAgainError(fate.name, may_have_landed=True)

    def get(self, key: str) -> bytes:
        if self._begin("get", self._creates) is not Fate.OK:
            raise TryAgainError("the reply was cut short", may_have_landed=True)
        if key not in self.bucket.objects:
            raise FileNotFoundError(key)
        return self.bucket.objects[key][1]

    def owner(self, key: str) -> Owner | None:
        self._begin("owner", self._looks)
        found = self.bucket.objects.get(key)
        return Owner(found[0]) if found else None

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        if self._begin("page", self._creates) is not Fate.OK:
            raise TryAgainError("the reply was cut short", may_have_landed=True)
        rests = [key[len(prefix) :] for key in self.bucket.objects if key.startswith(prefix)]
        found = {(rest.partition("/")[0], "/" in rest) for rest in rests}
        # Not in the order of names, as S3 Express has it.
        names = sorted((pair for pair in found if pair[0] >= start), reverse=True)
        begin = int(continuation or 0)
        end = begin + (limit or self.page_size)
        entries = [ObjectEntry(name, 0, 0, is_prefix) for name, is_prefix in names[begin:end]]
        return entries, str(end) if end < len(names) else None

    def delete(self, key: str) -> None:
        self._begin("delete", deque())
        self.bucket.objects.pop(key, None)

    def upload(self, key: str, source: Path) -> None:
        self.put(key, source.read_bytes())

    def _begin(self, request: str, script: deque[Fate]) -> Fate:
        self.before()
        self.requests.append(request)
        fate = script.popleft() if script else Fate.OK
        if fate is Fate.FORBIDDEN:
            raise PermissionError(f"{request} is forbidden")
        if fate in (Fate.BUSY, Fate.UNREACHED):
            raise TryAgainError(
                fate.name,
                may_have_landed=False,
                retry_after=self._retry_after,
                unreached=fate is Fate.UNREACHED,
            )
        return fate
