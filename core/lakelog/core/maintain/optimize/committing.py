"""One commit of OPTIMIZE: bins are rewritten, and take the place of their files.

Other writers are not disturbed: rows that they add stay where they are, and so do files that they
change of which nothing is rewritten here. Where a file of the bins itself was changed meanwhile,
the commit is refused, and what was written for it is deleted.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from lakelog.core.actions.file_table import from_add_files, to_add_files
from lakelog.core.actions.operation import Operation
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaConcurrentModificationException
from lakelog.core.maintain.optimize.bin_rewriting import BinRewriter, Rewritten
from lakelog.core.maintain.optimize.plan import Bin
from lakelog.core.maintain.optimize.run_metrics import operation_metrics
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.command_commit import commit_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.optimize.plan import Strategy
    from lakelog.core.maintain.optimize.rewrite_tasks import RunBins
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction


class Committed:
    """What one commit did, or would do."""

    def __init__(self, version: int, bins: Sequence[Bin], added: Sequence[AddFile]) -> None:
        """Take the version, its bins and what they became."""
        self.version = version
        self.bins = bins
        self.added = added
        self.removed: list[AddFile] = [file for each in bins for file in each.files]


class OptimizeBatch:
    """Rewrites bins and commits them."""

    def __init__(
        self,
        log: DeltaLog,
        strategy: Strategy,
        *,
        name: str,
        parameters: Mapping[str, Any],
        threads: int,
        user_metadata: str | None = None,
        run_bins: RunBins | None = None,
        row_group_rows: int | None = None,
    ) -> None:
        """Prepare; `run` does it, for any number of batches.

        Args:
            log: the table.
            strategy: packs and tags files.
            name: `OPTIMIZE` or `REORG`.
            parameters: of the operation.
            threads: bins that are rewritten at once.
            user_metadata: a note for the table's history.
            run_bins: an engine that may rewrite them instead of threads.
            row_group_rows: as `BinRewriter` has it.
        """
        self._row_group_rows = row_group_rows
        self._log = log
        self._run_bins = run_bins
        self._strategy = strategy
        self._name = name
        self._parameters = parameters
        self._threads = threads
        self._user_metadata = user_metadata

    def run(self, bins: Sequence[Bin], on_bin: Callable[[Bin], object]) -> Committed | None:
        """Rewrite bins and commit them; `None` where none of their files is still there.

        Args:
            bins: of an older version, or this one.
            on_bin: called with each bin that is rewritten, before the commit.

        Raises:
            DeltaConcurrentModificationException: another writer changed some of the files, or the
                table's schema or properties. Nothing was committed.
            DataFileMissingError: the storage does not have a file that the log names.
            DataFileError: a damaged file or deletion vector.
            CommitOutcomeUnknownError: the storage never confirmed the commit; the files are kept.
            OSError: the storage refused.
        """
        txn = self._log.start_transaction()
        assert txn.snapshot is not None
        bins = self._still_there(txn.snapshot, bins)
        if not bins:
            return None
        threads = min(self._threads, len(bins))
        rewriter = BinRewriter(
            txn,
            self._strategy,
            threads=threads,
            run_bins=self._run_bins,
            row_group_rows=self._row_group_rows,
        )
        done: list[Rewritten] = []
        while True:
            owner = _Owner(rewriter)
            txn.reads.track_files_read(_table(each.files for each in bins))
            with AttemptFiles(txn) as files:
                files.own(owner)
                # Once: where only the commit lost, the same files are committed again.
                if not done:
                    with closing(rewriter.rewrite(bins)) as results:
                        for each in results:
                            done.append(each)
                            on_bin(each.bin)
                    done.sort(key=lambda each: bins.index(each.bin))
                outcome = self._commit(txn, bins, done, rewriter)
                if isinstance(outcome, int):
                    return _committed(outcome, done)
                owner.hand_over()
            txn = outcome

    def _commit(
        self,
        txn: OptimisticTransaction,
        bins: Sequence[Bin],
        done: Sequence[Rewritten],
        rewriter: BinRewriter,
    ) -> int | OptimisticTransaction:
        """Commit; give the version, or the transaction in which to try once more."""
        now = txn.delta_log.clock.now_ms()
        committed = _committed(-1, done)
        removes = [file.remove(now, data_change=False) for file in committed.removed]
        metrics = operation_metrics(committed.added, committed.removed)
        operation = Operation(self._name, self._parameters, metrics, self._user_metadata)
        actions: list[Action] = [*committed.added, *removes]
        kept = rewriter.keeps_row_ids
        try:
            version = commit_command(txn, actions, operation, keeps_row_ids=kept).version
            assert version is not None  # no bin is without a file
            return version
        except DeltaConcurrentModificationException:
            again = self._next(txn, bins)
            if again is None:
                raise
            return again

    def _still_there(self, snapshot: Snapshot, bins: Sequence[Bin]) -> list[Bin]:
        """The bins without the files that were removed or changed since they were planned."""
        live = _live(snapshot, bins)
        found = []
        for each in bins:
            left = [file for file in each.files if _same(file, live.get(file.path))]
            if len(left) == len(each.files):
                found.append(each)
            else:
                found += [Bin(each.partition, tuple(b)) for b in self._strategy.bins(left)]
        return found

    def _next(
        self, txn: OptimisticTransaction, bins: Sequence[Bin]
    ) -> OptimisticTransaction | None:
        """Another transaction in which the same commit is right; `None` where there is none.

        It is right where the files are as they were, and what was written fits the table still.
        """
        old, again = txn.snapshot, self._log.start_transaction()
        new = again.snapshot
        if old is None or new is None:
            return None
        if (old.metadata, old.protocol) != (new.metadata, new.protocol):
            return None
        live = _live(new, bins)
        same = all(_same(file, live.get(file.path)) for each in bins for file in each.files)
        return again if same else None


def _committed(version: int, done: Sequence[Rewritten]) -> Committed:
    return Committed(version, [each.bin for each in done], [a for each in done for a in each.adds])


class _Owner:
    """Owns the files of a rewriter until another transaction takes them over."""

    def __init__(self, rewriter: BinRewriter) -> None:
        self._rewriter: BinRewriter | None = rewriter

    def hand_over(self) -> None:
        self._rewriter = None

    def abort(self) -> None:
        if self._rewriter is not None:
            self._rewriter.abort()


def _table(groups: Iterable[Iterable[AddFile]]) -> pa.Table:
    return from_add_files([file for group in groups for file in group])


def _live(snapshot: Snapshot, bins: Sequence[Bin]) -> dict[str, AddFile]:
    """The files of bins that a version has, by their paths."""
    import pyarrow as pa

    paths = array_of([file.path for each in bins for file in each.files], pa.string())
    table = snapshot.file_table
    return {
        file.path: file
        for file in to_add_files(table.filter(pc.is_in(table["path"], value_set=paths)))
    }


def _same(file: AddFile, other: AddFile | None) -> bool:
    # With another vector rows that were deleted since would come back; with another first id the
    # new file's rows would have ids that are not theirs.
    return (
        other is not None
        and file.deletion_vector == other.deletion_vector
        and file.base_row_id == other.base_row_id
    )
