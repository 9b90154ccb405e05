"""Which files OPTIMIZE rewrites, and which of them together.

Files of one partition are packed by size into bins, and a bin becomes one file. What is done is
left alone: a file that is large enough and has few deleted rows, and a bin of files that an
earlier run made for this size or a larger one, and could not make larger.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.compute import pc
from lakelog.core.data.partition_keys import partition_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.maintain.optimize.ordering import RowOrder
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
    from lakelog.core.state.snapshot import Snapshot

TARGET_TAG = "OPTIMIZE_TARGET_SIZE"
"""The tag of a file with the size that an OPTIMIZE was to give it."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are rewritten together."""

    partition: tuple[Any, ...]
    """The typed values of the partition columns."""
    files: tuple[AddFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class Strategy(Protocol):
    """What a kind of OPTIMIZE makes of the files of a table."""

    order: RowOrder | None
    """What the rows of a bin are ordered by; `None` keeps the order that they have."""

    def candidates(self, files: pa.Table) -> pa.Table:
        """Those of some rows of `FILE_SCHEMA` that may have to be rewritten."""
        ...

    def bins(self, files: Sequence[AddFile]) -> Iterable[Sequence[AddFile]]:
        """The files of one partition that are rewritten, in bins."""
        ...

    def outputs(self, size: int) -> int:
        """How many files a bin of so many bytes becomes."""
        ...

    def stats(self, considered: pa.Table, done: Sequence[Bin]) -> dict[str, Any]:
        """Fields of `OptimizeMetrics` that only this kind has.

        Args:
            considered: rows of `FILE_SCHEMA` that the caller chose.
            done: what was rewritten.
        """
        ...

    def tagged(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """The files that one bin became, as the log is to have them."""
        ...


def planned_bins(
    snapshot: Snapshot, files: pa.Table, strategy: Strategy, *, session_tz: str
) -> list[Bin]:
    """All that there is to rewrite.

    Args:
        snapshot: the version.
        files: rows of `FILE_SCHEMA` that the caller chose.
        strategy: selects among them, and packs them.
        session_tz: the zone of partition values that name none.
    """
    chosen = to_add_files(strategy.candidates(files))
    groups = split_by_partition(snapshot, chosen, session_tz=session_tz)
    return [Bin(key, tuple(each)) for key, group in groups for each in strategy.bins(group)]


def split_by_partition(
    snapshot: Snapshot, files: Iterable[AddFile], *, session_tz: str
) -> Iterator[tuple[tuple[Any, ...], list[AddFile]]]:
    """Files by partition; different spellings of a value are one partition."""
    schema = snapshot.partition_schema
    keys: dict[tuple[tuple[str, str | None], ...], tuple[Any, ...]] = {}
    groups: dict[tuple[Any, ...], list[AddFile]] = defaultdict(list)
    for file in files:
        texts = tuple(sorted(file.partition_values.items()))
        if texts not in keys:
            keys[texts] = partition_key(file.partition_values, schema, session_tz=session_tz)
        groups[keys[texts]].append(file)
    yield from groups.items()


def deleted_share(file: AddFile) -> float:
    """The share of a file's rows that its deletion vector has; 1.0 where it is not known."""
    if file.deletion_vector is None:
        return 0.0
    rows = file.num_records
    return file.deletion_vector.cardinality / rows if rows else 1.0


def packed(files: Iterable[AddFile], most: int) -> list[list[AddFile]]:
    """Files in bins of at most `most` bytes, or of one larger file, in the order given."""
    bins: list[list[AddFile]] = []
    room = 0
    for file in files:
        if not bins or file.size > room:
            bins.append([])
            room = most
        bins[-1].append(file)
        room -= file.size
    return bins


class Compaction:
    """Small files, and those with many deleted rows, become files of the target's size."""

    def __init__(self, settings: OptimizeSettings, tags: Mapping[str, str] | None = None) -> None:
        """Take the limits, and tags that the new files get as well."""
        self._settings = settings
        self._tags = tags or {}
        self.order: RowOrder | None = None

    def outputs(self, size: int) -> int:
        """One file, whatever the size."""
        del size
        return 1

    def candidates(self, files: pa.Table) -> pa.Table:
        """Small files, and those with a deletion vector that may be large."""
        small = pc.less(pc.fill_null(files["size"], 0), self._settings.min_size)
        return files.filter(pc.or_(small, pc.is_valid(files["deletion_vector"])))

    def bins(self, files: Sequence[AddFile]) -> Iterator[list[AddFile]]:
        """Bins of which something is gained."""
        chosen = [
            file for file in files if file.size < self._settings.min_size or self._is_worn(file)
        ]
        chosen.sort(key=lambda file: file.size)
        made = [file.modification_time for file in files if self._is_made(file)]
        for each in packed(chosen, self._settings.target_size):
            if any(map(self._is_worn, each)) or (len(each) > 1 and not self._is_done(each, made)):
                yield each

    def stats(self, considered: pa.Table, done: Sequence[Bin]) -> dict[str, Any]:
        """Nothing besides what every kind counts."""
        del considered, done
        return {}

    def tagged(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """With the size that they were to get."""
        from dataclasses import replace

        tag = {TARGET_TAG: str(self._settings.target_size), **self._tags}
        return [replace(add, tags={**(add.tags or {}), **tag}) for add in adds]

    def _is_worn(self, file: AddFile) -> bool:
        return deleted_share(file) > self._settings.max_deleted_ratio

    def _is_made(self, file: AddFile) -> bool:
        """Whether an earlier run gave it this size, or tried to."""
        made_for = (file.tags or {}).get(TARGET_TAG) or ""
        return made_for.isdecimal() and int(made_for) >= self._settings.target_size

    def _is_done(self, files: Iterable[AddFile], made: Sequence[int]) -> bool:
        """Whether an earlier run made the files, or left one of them alone because it fitted none.

        What is encoded again gets smaller, so that files which filled a bin may fit with others
        now; to rewrite them for that in every run would never end.
        """
        others = [file for file in files if not self._is_made(file)]
        if not made or len(others) > 1:
            return False
        return all(file.modification_time < max(made) for file in others)
