"""A sound store that can't be forked as soon as a process has it."""

from __future__ import annotations

import threading
from typing import Any

from lakelog.logstores import LocalLogStore


class HasAThread(LocalLogStore):
    """Begins one where it is unpickled, as a storage client with a pool might."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (dict(self.conf),)


def _unpickled(conf: dict[str, str]) -> HasAThread:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return HasAThread(conf)
