"""The lines of a commit on their way into a staged file, and what a catalog has to know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from lakelog.core.catalogs.contract import MetadataChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WANTED: Final = ('{"commitInfo"', '{"metaData"', '{"protocol"', '{"domainMetadata"')
"""What lakelog's own lines of these actions begin with: each line is one action."""


class StagedLines:
    """Lines that a store may go through as often as it likes; what was seen is of the last time."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Look at nothing yet."""
        self._lines = lines
        self.size: int = 0
        """Bytes of the file."""
        self._actions: dict[str, list[dict[str, Any]]] = {}

    def __iter__(self) -> Iterator[str]:
        self.size, self._actions = 0, {}
        for line in self._lines:
            self.size += len(line.encode()) + 1
            if line.startswith(_WANTED):
                (kind, action), *_ = orjson.loads(line).items()
                self._actions.setdefault(kind, []).append(action)
            yield line

    @property
    def timestamp(self) -> int | None:
        """The inCommitTimestamp; None where the commit has none."""
        found: int | None = self._last("commitInfo").get("inCommitTimestamp")
        return found

    @property
    def change(self) -> MetadataChange | None:
        """What changes beside files; None for nothing."""
        domains = tuple(self._actions.get("domainMetadata", ()))
        metadata, protocol = self._last("metaData") or None, self._last("protocol") or None
        if metadata is None and protocol is None and not domains:
            return None
        return MetadataChange(metadata=metadata, protocol=protocol, domains=domains)

    def _last(self, kind: str) -> dict[str, Any]:
        return self._actions.get(kind, [{}])[-1]
