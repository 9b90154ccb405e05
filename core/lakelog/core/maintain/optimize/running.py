"""A run of OPTIMIZE or REORG: plan, rewrite and commit in batches, and count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from lakelog.core.maintain.optimize.committing import Committed, OptimizeBatch
from lakelog.core.maintain.optimize.plan import Bin, Strategy, planned_bins
from lakelog.core.maintain.optimize.run_metrics import FileSizes, OptimizeMetrics
from lakelog.core.progress import Progress
from lakelog.core.shown.notebook import ShownFields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
    from lakelog.core.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeProgress(Progress):
    """How far a run is: `done` of `total` bytes of files are rewritten."""

    bins: int
    """Groups of files that there are to rewrite."""
    bins_done: int
    version: int | None = None
    """The last commit; `None` before the first."""


GivenOptimizeProgress: TypeAlias = "Callable[[OptimizeProgress], object] | Literal['auto'] | None"
"""The argument `progress` of `optimize`."""


@dataclass(frozen=True, slots=True)
class Optimized(ShownFields):
    """What `optimize` did, or in a dry run would do."""

    versions: tuple[int, ...] = ()
    """The commits, in order; empty where there was nothing to do, and in a dry run."""
    metrics: OptimizeMetrics = field(default_factory=OptimizeMetrics)
    """Over all commits. A dry run knows what would be removed, and not what would be added."""

    @property
    def version(self) -> int | None:
        """The last commit; `None` where nothing was committed."""
        return self.versions[-1] if self.versions else None


class Run:
    """One run of OPTIMIZE or REORG over some files of a version."""

    def __init__(
        self,
        log: DeltaLog,
        snapshot: Snapshot,
        strategy: Strategy,
        settings: OptimizeSettings,
        user_metadata: str | None = None,
        report: Callable[[OptimizeProgress], object] | None = None,
    ) -> None:
        """Prepare; nothing is read or written yet."""
        self._log = log
        self._snapshot = snapshot
        self._strategy = strategy
        self._settings = settings
        self._user_metadata = user_metadata
        self._report = report or (lambda _: None)

    def rewrite(
        self, name: str, parameters: Mapping[str, Any], files: pa.Table, *, dry_run: bool
    ) -> Optimized:
        """Plan, and unless it is a dry run rewrite and commit.

        Args:
            name: of the operation.
            parameters: of the operation.
            files: rows of `FILE_SCHEMA` that may be rewritten.
            dry_run: stop after the plan.
        """
        began = self._log.clock.now_ms()
        zone = self._log.conf.session_tz
        bins = planned_bins(self._snapshot, files, self._strategy, session_tz=zone)
        if dry_run:
            done = [Committed(-1, bins, ())] if bins else []
            return Optimized((), self._metrics(done, files, began))
        done = self._commits(name, parameters, bins)
        versions = tuple(each.version for each in done)
        return Optimized(versions, self._metrics(done, files, began))

    def _commits(
        self, name: str, parameters: Mapping[str, Any], bins: Sequence[Bin]
    ) -> list[Committed]:
        batch = OptimizeBatch(
            self._log,
            self._strategy,
            name=name,
            parameters=parameters,
            threads=self._settings.threads,
            user_metadata=self._user_metadata,
            run_bins=self._log.run_bins,
        )
        progress = _RunProgress(self._report, bins)
        progress()
        done: list[Committed] = []
        try:
            for each in _batches(bins, self._settings.batch_size):
                committed = batch.run(each, progress.bin_done)
                if committed is not None:
                    done.append(committed)
                    progress.committed(committed.version)
        except BaseException as exc:
            if done:
                versions = ", ".join(str(each.version) for each in done)
                exc.add_note(
                    f"{name} of {self._log.table} had committed these versions before: {versions}."
                )
            raise
        return done

    def _metrics(self, done: Iterable[Committed], files: pa.Table, began: int) -> OptimizeMetrics:
        done = list(done)
        bins = [each for commit in done for each in commit.bins]
        removed = [file for commit in done for file in commit.removed]
        vectors = [file.deletion_vector for file in removed if file.deletion_vector is not None]
        columns = len(self._snapshot.schema)
        indexed = self._snapshot.properties.num_indexed_cols
        return OptimizeMetrics(
            files_added=FileSizes.measured(file for commit in done for file in commit.added),
            files_removed=FileSizes.measured(removed),
            partitions_optimized=len({each.partition for each in bins}),
            num_bins=len(bins),
            # Delta counts the one that has nothing to do.
            num_batches=len(done) if self._settings.batch_size else 1,
            total_considered_files=files.num_rows,
            total_files_skipped=files.num_rows - len(removed),
            num_deletion_vectors_removed=len(vectors),
            num_deletion_vector_rows_removed=sum(each.cardinality for each in vectors),
            num_table_columns=columns,
            num_table_columns_with_stats=columns if indexed < 0 else min(indexed, columns),
            start_time_ms=began,
            end_time_ms=self._log.clock.now_ms(),
            parallelism=self._settings.threads,
            **self._strategy.stats(files, bins),
        )


class _RunProgress:
    """Calls the caller's function with how far the run is."""

    def __init__(self, report: Callable[[OptimizeProgress], object], bins: Sequence[Bin]) -> None:
        self._report = report
        self._bins, self._bytes = len(bins), sum(each.size for each in bins)
        self._bins_done = self._bytes_done = 0
        self._version: int | None = None

    def __call__(self) -> None:
        self._report(
            OptimizeProgress(
                text="rewriting",
                done=self._bytes_done,
                total=self._bytes,
                unit="bytes",
                bins=self._bins,
                bins_done=self._bins_done,
                version=self._version,
            )
        )

    def bin_done(self, each: Bin) -> None:
        self._bins_done += 1
        self._bytes_done += each.size
        self()

    def committed(self, version: int) -> None:
        self._version = version
        self()


def _batches(bins: Sequence[Bin], most: int | None) -> list[list[Bin]]:
    """The bins of each commit: at most so many bytes, or one bin."""
    if most is None:
        return [list(bins)] if bins else []
    batches: list[list[Bin]] = []
    room = 0
    for each in bins:
        if not batches or each.size > room:
            batches.append([])
            room = most
        batches[-1].append(each)
        room -= each.size
    return batches
