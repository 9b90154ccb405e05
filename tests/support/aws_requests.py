"""The requests to AWS that stores make, counted, and stopped at one of them."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores.s3.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@contextlib.contextmanager
def watching(*clients: Any, before: Callable[[int], None] | None = None) -> Iterator[list[str]]:
    """Note the requests of clients while the block runs: `s3 PutObject`, `dynamodb Query`.

    Those that the store signs and sends beside a client count as the client's.

    Args:
        clients: of boto3.
        before: called before each request with its number, from 0; what it raises ends the request
            before it is sent.
    """
    seen: list[str] = []
    drafting = threading.local()

    def tell(request: str) -> None:
        seen.append(request)
        if before is not None:
            before(len(seen) - 1)

    def note(model: Any, **_: Any) -> None:
        if not getattr(drafting, "now", False):
            tell(f"{model.service_model.service_name} {model.name}")

    drafted, sent = Wire._draft, Wire.get

    def draft(wire: Wire, always: Mapping[str, Any]) -> Any:
        drafting.now = True
        try:
            return drafted(wire, always)
        finally:
            drafting.now = False

    def get(wire: Wire, key: str, always: Mapping[str, Any]) -> Any:
        bucket = always["Bucket"]
        if bucket not in wire._drafts:
            wire._drafts[bucket] = wire._draft(always)
        if wire.client in clients and key and wire._drafts[bucket] is not None:
            tell("s3 GetObject")
        return sent(wire, key, always)

    for client in clients:
        client.meta.events.register("before-call", note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Wire, "_draft", draft)
            patch.setattr(Wire, "get", get)
            yield seen
    finally:
        for client in clients:
            client.meta.events.unregister("before-call", note)
