"""Writing the new rows of a MERGE, and its change feed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.core import keys
from lakelog.core.engine.merge import takes_many_matches
from lakelog.core.engine.rows import identity_of
from lakelog.core.engine.write import CHANGE_TYPE, FileLayout, IdentityBounds, write_plan
from lakelog.core.schema import StructType
from lakelog.spark.dml.merge.changed_rows import CLAUSE
from lakelog.spark.dml.merge.placed_target import IDS
from lakelog.spark.reading.row_positions import FILE, ROW
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.writing.balanced import is_balanced
from lakelog.spark.writing.filled_columns import FilledColumns
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.projection import conform_sql
from lakelog.spark.writing.stored import null_of
from lakelog.spark.writing.write_files import TableFileWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import AttemptFiles, DeltaLog, OptimisticTransaction
    from lakelog.core.actions import AddCDCFile, AddFile
    from lakelog.core.engine.rows import MovedRowIds
    from lakelog.core.engine.write import WritePlan
    from lakelog.logstores import LogStore
    from lakelog.spark.dml.merge.changed_positions import Places
    from lakelog.spark.dml.merge.changed_rows import MergeRows


@dataclass(frozen=True, slots=True)
class Changed:
    """The rows of the table that match, or that a clause applies to; evaluated."""

    df: DataFrame
    """See `MergeRows.changed`."""
    places: Places | None
    """Where they are; `None` where the MERGE only inserts."""
    updates: bool
    """Whether a clause that updates applies to any."""
    deletes: bool


@dataclass(frozen=True, slots=True)
class Inserted:
    """The rows that are inserted; evaluated."""

    complete: DataFrame | None = None
    """With all of the table's columns."""
    numbered: DataFrame | None = None
    """The same, but for those whose identity columns this MERGE has numbered."""
    rows: int = 0
    identities: tuple[str, ...] = ()

    @property
    def frames(self) -> list[DataFrame]:
        """Both."""
        return [each for each in (self.complete, self.numbered) if each is not None]


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a MERGE."""

    adds: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _WithIds(FileLayout):
    """The layout of files with row ids, which no statistics are about."""

    ids: MovedRowIds | None = None

    def plan(self, store: LogStore, table: str, **options: Any) -> WritePlan:
        schema = self.schema if self.ids is None else self.ids.add_id_columns(self.schema)
        chosen = {**self.options, **options}
        return write_plan(store, table, schema, self.partition_columns, **chosen)


@dataclass(frozen=True, slots=True)
class MergeWrites:
    """Writes the files of one MERGE."""

    txn: OptimisticTransaction
    log: DeltaLog
    spark: SparkSession
    rows: MergeRows
    attempt: AttemptFiles
    ids: MovedRowIds | None
    files: pa.Table
    """Rows of the file table: those that were read."""

    def _writer(self, *, with_ids: bool = False, bounds: Any = None) -> TableFileWriter:
        log, layout = self.log, self.txn.changes.file_layout
        if with_ids and self.ids is not None:
            layout = _WithIds(
                layout.schema, layout.partition_columns, layout.stats, layout.options, self.ids
            )
        options = WriteOptions.from_options("append", None, {}, log.conf)
        return TableFileWriter(
            log,
            layout,
            options,
            self.attempt,
            bounds,
            shuffles=is_balanced(options, log.conf, self.txn.metadata.configuration),
            repartitions=log.conf.read(keys.MERGE_REPARTITION),
        )

    @property
    def _names(self) -> list[str]:
        return self.txn.changes.file_layout.schema.names

    def _own(self, frame: DataFrame) -> DataFrame:
        return frame.select(*(sf.col(quoted(name)) for name in self._names))

    def inserted(self, frame: DataFrame) -> Inserted:
        """Number and evaluate the rows that are inserted.

        Args:
            frame: of `MergeRows.inserted`.
        """
        target = StructType.from_json(self.txn.metadata.schema_string)
        columns = [f.name for f in target if identity_of(f) is not None]
        left = {name: self.rows.numbered(name) for name in columns}
        numbers = sorted({number for each in left.values() for number in each})
        if not numbers:
            kept = frame.localCheckpoint()
            return Inserted(complete=self._own(kept), rows=kept.count())
        data = StructType(tuple(f for f in target if not left.get(f.name)))
        filled = FilledColumns.from_schemas(
            data, target, self.txn.changes.protocol, self.log.table, self.log.conf
        )
        mine = frame.where(sf.col(CLAUSE).isin(numbers)).select(
            *(sf.col(quoted(f.name)) for f in data)
        )
        numbered = filled.rows(mine).localCheckpoint()
        rows = numbered.count()
        others = self.rows.numbers("not matched")
        if set(others) == set(numbers):
            return Inserted(None, self._own(numbered), rows, tuple(filled.identities))
        rest = frame.where(~sf.col(CLAUSE).isin(numbers)).localCheckpoint()
        rows += rest.count()
        return Inserted(self._own(rest), self._own(numbered), rows, tuple(filled.identities))

    def write(self, changed: Changed | None, inserted: Inserted) -> Written:
        """Write new rows and the change feed; identity columns are advanced."""
        adds: list[AddFile] = []
        frames = []
        if changed is not None and changed.updates:
            frames.append(self._updated(changed.df))
        if inserted.complete is not None:
            frames.append(self._with_ids(inserted.complete))
        if frames:
            whole = reduce(lambda a, b: a.union(b), frames)
            adds += self._writer(with_ids=True).write(whole)
        if inserted.numbered is not None:
            schema = StructType.from_json(self.txn.metadata.schema_string)
            sequences = {
                f.name: found
                for f in schema
                if f.name in inserted.identities and (found := identity_of(f)) is not None
            }
            bounds = IdentityBounds(schema, sequences)
            adds += self._writer(bounds=bounds).write(inserted.numbered)
            self.txn.changes.advance_identity_columns(bounds.marks())
        return Written(adds, self._changes(changed, inserted))

    def _with_ids(self, frame: DataFrame) -> DataFrame:
        if self.ids is None:
            return frame
        hidden = [sf.lit(None).cast("bigint").alias(name) for name in self._id_names()]
        return frame.select("*", *hidden)

    def _id_names(self) -> list[str]:
        assert self.ids is not None
        return self.ids.add_id_columns(StructType()).names

    def _updated(self, df: DataFrame) -> DataFrame:
        """Updated rows with their row ids, which they keep; the version is that of the commit."""
        df = df.where(sf.col(CLAUSE).isin(self.rows.updating))
        own = [sf.col(quoted(name)) for name in self._names]
        if self.ids is None:
            return df.select(*own)
        row_id, version = self._id_names()
        first = self._first_ids()
        df = df.join(sf.broadcast(first), FILE, "left")
        kept = sf.coalesce(sf.col(IDS[0]), sf.col("__lakelog_first") + sf.col(ROW))
        none = sf.lit(None).cast("bigint")
        return df.select(*own, kept.alias(row_id), none.alias(version))

    def _first_ids(self) -> DataFrame:
        from lakelog.core.engine.log import to_add_files

        adds = to_add_files(self.files)
        rows = [(key, adds[at].base_row_id) for key, at in self.rows.target.numbers.items()]
        return self.spark.createDataFrame(rows, f"{FILE} string, __lakelog_first bigint")

    def _changes(self, changed: Changed | None, inserted: Inserted) -> list[AddCDCFile]:
        """Change files, unless the files that come and go say it all: where nothing goes."""
        snapshot = self.txn.snapshot
        assert snapshot is not None
        if not snapshot.properties.change_data_feed or changed is None:
            return []
        if not changed.updates and not changed.deletes:
            return []
        rows = changed.df
        if takes_many_matches([row.clause for row in self.rows.plan.rows]):
            rows = rows.dropDuplicates([FILE, ROW])
        updating = sf.col(CLAUSE).isin(self.rows.updating)
        deleting = ~updating & (sf.col(CLAUSE) >= 0)
        frames = []
        if changed.deletes:
            frames.append(_marked(rows.where(deleting), self._old(), "delete"))
        if changed.updates:
            new = [sf.col(quoted(name)) for name in self._names]
            frames.append(_marked(rows.where(updating), self._old(), "update_preimage"))
            frames.append(_marked(rows.where(updating), new, "update_postimage"))
        for each in inserted.frames:
            frames.append(_marked(each, [sf.col(quoted(name)) for name in self._names], "insert"))
        return self._writer().write_changes(reduce(lambda a, b: a.union(b), frames))

    def _old(self) -> list[Column]:
        """The columns of a row as it was, in the types of the table as it will be."""
        found = []
        target = self.rows.target
        for new in self.txn.changes.file_layout.schema:
            old = target.schema.get(new.name)
            if old is None:
                found.append(null_of(new.data_type).alias(new.name))
                continue
            at = target.schema.names.index(old.name)
            sql = conform_sql(f"__lakelog_t{at}", old.data_type, new.data_type)
            found.append(sf.expr(sql).alias(new.name))
        return found


def _marked(frame: DataFrame, columns: list[Column], change: str) -> DataFrame:
    return frame.select(*columns, sf.lit(change).alias(CHANGE_TYPE))
