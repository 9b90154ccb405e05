"""The requests that boto3's clients make, counted, and stopped at one of them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["watching"]


@contextlib.contextmanager
def watching(*clients: Any, before: Callable[[int], None] | None = None) -> Iterator[list[str]]:
    """Note the requests that clients make while the block runs: `s3 PutObject`, `dynamodb Query`.

    Args:
        clients: of boto3.
        before: called before each request with its number, from 0; what it raises ends the request
            before it is sent.
    """
    seen: list[str] = []

    def note(model: Any, **_: Any) -> None:
        seen.append(f"{model.service_model.service_name} {model.name}")
        if before is not None:
            before(len(seen) - 1)

    for client in clients:
        client.meta.events.register("before-call", note)
    try:
        yield seen
    finally:
        for client in clients:
            client.meta.events.unregister("before-call", note)
