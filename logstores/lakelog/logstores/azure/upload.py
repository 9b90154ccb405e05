"""Large files for Azure: blocks under names that no other upload has, then one list of them.

A block is staged at a blob's name under an id, and what two uploads stage under one id is one
block: the later. The SDK numbers its blocks, so of two writers that upload a checkpoint of one name
at once, one may publish some of the other's blocks as its own. Random ids can't collide. The
list of the slower one then names blocks that the faster one's list has discarded, is refused, and
the upload starts again.
"""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Final

from lakelog.logstores.threads import BLOCKS, at_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from azure.storage.blob import BlobClient

ONE_PUT: Final = 32 << 20
"""Bytes up to which a file is sent by a single request."""
_BLOCK: Final = 16 << 20
"""Bytes of a block, of which there may be 50 000."""


def stage_blocks(
    blob: BlobClient, source: Path, attempt: Callable[[Callable[[], object]], object]
) -> list[str]:
    """Send a file's blocks, some at once; they are not visible yet.

    Args:
        blob: where.
        source: the file.
        attempt: makes one request, and repeats it where that helps.
    """
    length = source.stat().st_size
    upload = uuid.uuid4().hex
    starts = range(0, length, _BLOCK)
    # Azure requires all block ids of a blob to have the same length.
    ids = [f"{upload}-{number:06d}" for number in range(len(starts))]
    with source.open("rb") as file:
        lock = threading.Lock()

        def send(block: tuple[str, int]) -> None:
            block_id, start = block
            with lock:
                file.seek(start)
                data = file.read(_BLOCK)
            attempt(lambda: blob.stage_block(block_id, data, length=len(data)))

        at_once(send, list(zip(ids, starts, strict=True)), BLOCKS, "lakelog-blocks")
    return ids


def commit_blocks(blob: BlobClient, ids: list[str]) -> None:
    """Make the blob of these blocks, whole, in place of what was there."""
    from azure.storage.blob import BlobBlock

    blob.commit_block_list([BlobBlock(block_id) for block_id in ids])
