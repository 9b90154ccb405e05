"""What the checks share: expectations with messages, and bounded ways to look at a store."""

from __future__ import annotations

import itertools
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import FileStatus, LogStore

LIMIT = 100_000
"""No listing and no file of the checks is longer, so anything longer would never end."""


class PromiseBrokenError(AssertionError):
    """A store did not do what the contract promises."""


class CheckNotRunError(RuntimeError):
    """A check lacks something unrelated to the store; the text says what."""


def expect(held: object, message: str) -> None:
    """Raise unless `held`. (`assert` would vanish under `python -O`.)"""
    if not held:
        raise PromiseBrokenError(message)


def expect_equal(found: object, wanted: object, what: str) -> None:
    """Raise unless the two are equal, showing both, cut short."""
    if found != wanted:
        raise PromiseBrokenError(f"{what}: found {_short(found)}, wanted {_short(wanted)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:290]}… ({len(text)} characters)"


@contextmanager
def refusal(kind: type[Exception], what: str) -> Iterator[None]:
    """Expect an exception of that class (or below it) from the block."""
    try:
        yield
    except kind:
        return
    except Exception as error:
        raise PromiseBrokenError(
            f"{what}: wanted {kind.__name__}, got {type(error).__name__}: {error}"
        ) from error
    raise PromiseBrokenError(f"{what}: wanted {kind.__name__}, nothing was raised")


def fresh_folder(store: LogStore, root: str) -> str:
    """Make a folder that was never used before."""
    folder = f"{root.rstrip('/')}/{uuid.uuid4().hex}"
    store.create_folder(folder)
    return folder


def read_all(store: LogStore, path: str) -> list[str]:
    """All lines of a file."""
    lines = list(itertools.islice(store.read(path), LIMIT))
    expect(len(lines) < LIMIT, f"reading {path} does not end")
    return lines


def read_or_none(store: LogStore, path: str) -> list[str] | None:
    """All lines of a file, or `None` where there is none."""
    try:
        return read_all(store, path)
    except FileNotFoundError:
        return None


def listing(store: LogStore, path: str) -> list[FileStatus]:
    """All that `list_from` yields."""
    found = list(itertools.islice(store.list_from(path), LIMIT))
    expect(len(found) < LIMIT, f"listing from {path} does not end")
    return found


def names(store: LogStore, path: str) -> list[str]:
    """The names that `list_from` yields."""
    return [status.name for status in listing(store, path)]


def names_or_none(store: LogStore, folder: str) -> list[str]:
    """The names in a folder; none where it is missing, as an object store's empty folder is."""
    try:
        return names(store, folder + "/")
    except FileNotFoundError:
        return []


def is_hidden(name: str) -> bool:
    """Whether readers of a log ignore the name, as they do with drafts."""
    return name.startswith(".") or name.endswith(".tmp")


def raw_bytes(store: LogStore, path: str) -> bytes:
    """The bytes of a file, bypassing the store's own `read`, so that a wrong `read` is caught."""
    with store.filesystem.open_input_stream(store.filesystem_path(path)) as stream:
        data: Any = stream.read()
    return bytes(data)


def raw_write(store: LogStore, path: str, data: bytes) -> None:
    """Make a file, bypassing the store's own `write`."""
    with store.filesystem.open_output_stream(store.filesystem_path(path)) as stream:
        stream.write(data)
