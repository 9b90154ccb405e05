"""deltalake's writer in a process of its own, for data that may bring it down.

A panic in its Rust code aborts the whole process, and a pytest worker with it.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Self

import deltalake
from deltalake.exceptions import DeltaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class PeerCrashedError(Exception):
    """The writer's process is gone; what it left of the table is nobody's."""


class PeerRefusedError(Exception):
    """What deltalake raised: its own exceptions do not go from process to process."""


class DeltalakeWriter:
    """Calls `write_deltalake` elsewhere; the process is made when it is needed, and made again."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pool: ProcessPoolExecutor | None = None

    def write(
        self,
        path: str,
        parts: Sequence[pa.Table],
        partition_by: Sequence[str],
        *,
        checkpointed: bool = False,
    ) -> None:
        """Write a new table, one commit a part, and a checkpoint of the last where it is wanted.

        Raises:
            PeerCrashedError: the process ended.
            PeerRefusedError: with what it said.
        """
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context)
        try:
            given = path, list(parts), list(partition_by), checkpointed
            self._pool.submit(_write, *given).result(timeout=120)
        except BrokenProcessPool:
            self.close()
            raise PeerCrashedError(path) from None

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write(path: str, parts: list[pa.Table], partition_by: list[str], checkpointed: bool) -> None:
    try:
        for number, part in enumerate(parts):
            if number:
                deltalake.write_deltalake(path, part, mode="append")
            else:
                deltalake.write_deltalake(path, part, partition_by=partition_by or None)
        if checkpointed:
            deltalake.DeltaTable(path).create_checkpoint()
    except DeltaError as exc:
        raise PeerRefusedError(str(exc)) from None
