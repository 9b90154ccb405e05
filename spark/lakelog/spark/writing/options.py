"""The options of a write, read once, with Delta's names and its rules about combinations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lakelog.core import keys
from lakelog.core.engine.tables import checked_progress, illegal_option, option
from lakelog.core.engine.write import (
    WriteRequest,
    file_settings,
    overwrites_dynamically,
    parquet_codec,
    rows_per_file,
)
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores.keys import Key, flag
from lakelog.spark.session.option_names import check_option_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from lakelog.core import DeltaConf
    from lakelog.core.engine.write import SaveMode

_OPTIMIZE_WRITE: Final[Key[bool | None]] = Key("optimizeWrite", "flag", None, "")
_TXN_VERSION: Final[Key[int | None]] = Key("txnVersion", "whole", None, "")
_MAX_RECORDS: Final[Key[int | None]] = Key("maxRecordsPerFile", "whole", None, "")

_MODES: dict[str, SaveMode] = {
    "append": "append",
    "overwrite": "overwrite",
    "error": "error",
    "errorifexists": "error",
    "default": "error",
    "ignore": "ignore",
}


def save_mode(text: str) -> SaveMode:
    """A save mode by any of Spark's spellings, in any case.

    Raises:
        DeltaAnalysisError: no such mode.
    """
    try:
        return _MODES[text.strip().lower()]
    except KeyError:
        raise DeltaAnalysisError(
            f"unknown save mode {text!r}: use one of append, overwrite, error (or errorifexists), "
            "ignore",
            mode=text,
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """What `CREATE TABLE … AS SELECT` says of its table, besides the query."""

    operation: str
    """As history names it."""
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_by: Sequence[str] = ()
    description: str | None = None
    managed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(WriteRequest):
    """What the caller asked for, besides the data and the path."""

    replace_where: str | None = None
    max_records_per_file: int = 0
    """0 means no limit."""
    compression: str | None = None
    """`None` leaves it to the table's property, and then to the conf."""
    optimize_write: bool | None = None
    """`None` leaves it to the conf, and then to the table's property."""
    replace_column: Column | None = None
    """The condition in place of `replace_where`, from callers that have it as a Column."""
    definition: TableDefinition | None = None
    """Where the write makes a new table, whatever was there before."""
    read_version: int | None = None
    """The version that the rows were made from; another one must not be replaced by them."""
    casts: bool = False
    """Whether values are cast to the types of the table's columns, as by INSERT."""

    @property
    def predicate(self) -> str | None:
        """The condition of an overwrite as people know it."""
        if self.replace_column is not None:
            return str(self.replace_column)[len("Column<'") : -len("'>")]
        return self.replace_where

    def file_options(self) -> dict[str, Any]:
        """The fields of `WritePlan` that the options set."""
        chosen = {"compression": self.compression} if self.compression else {}
        return {**chosen, "max_rows_per_file": self.max_records_per_file}

    @classmethod
    def from_options(
        cls,
        mode: SaveMode,
        partition_by: Sequence[str] | None,
        options: Mapping[str, str],
        conf: DeltaConf,
    ) -> WriteOptions:
        """Read the options; where one is not given the session's conf is used.

        Args:
            mode: the save mode.
            partition_by: the partition columns, `None` for none named.
            options: names in any case -> values as Spark passes them.
            conf: the session's conf.

        Raises:
            DeltaAnalysisError: a value that can't be read, options that exclude each other, or a
                misspelt one.
        """
        check_option_names(options)
        given = {key.lower(): value for key, value in options.items()}
        made = cls(
            mode=mode,
            partition_by=None if partition_by is None else tuple(partition_by),
            merge_schema=option(given, flag("mergeSchema", conf.read(keys.MERGE_SCHEMA))),
            overwrite_schema=option(given, flag("overwriteSchema", False)),
            replace_where=given.get("replacewhere"),
            dynamic_overwrite=_dynamic(mode, given, conf),
            batch=_transaction(given),
            user_metadata=given.get("usermetadata") or conf.read(keys.USER_METADATA),
            data_change=option(given, flag("dataChange", True)),
            max_records_per_file=_limit(given, conf),
            compression=_codec(given, conf),
            optimize_write=option(given, _OPTIMIZE_WRITE),
            properties={k: v for k, v in options.items() if k.lower().startswith("delta.")},
        )
        made._check(given)
        return made

    def _check(self, given: Mapping[str, str]) -> None:
        if self.replace_where is not None and not self.replace_where.strip():
            raise DeltaAnalysisError(
                "replaceWhere is empty, so it does not say what to replace; to replace the whole "
                "table, leave it out",
                predicate=self.replace_where,
            )
        if self.replace_where and self.mode != "overwrite":
            raise DeltaAnalysisError(
                f"replaceWhere works with mode('overwrite') only; the mode is {self.mode}",
                predicate=self.replace_where,
            )
        if self.replace_where and given.get("partitionoverwritemode", "").lower() == "dynamic":
            raise DeltaAnalysisError(
                "replaceWhere and partitionOverwriteMode=dynamic both say what to overwrite: "
                "give only one of them",
                predicate=self.replace_where,
            )
        if self.overwrite_schema and self.replace_where:
            raise DeltaAnalysisError(
                "overwriteSchema replaces the schema of the whole table, and replaceWhere keeps "
                "part of its rows: give only one of them (mergeSchema adds columns with "
                "replaceWhere)",
                predicate=self.replace_where,
            )


def _transaction(given: Mapping[str, str]) -> tuple[str, int] | None:
    version = option(given, _TXN_VERSION)
    return checked_progress(given.get("txnappid"), version, ("txnAppId", "txnVersion"))


def _dynamic(mode: SaveMode, given: Mapping[str, str], conf: DeltaConf) -> bool:
    """Whether only the partitions met in the data are replaced; an option overrides the conf."""
    if mode != "overwrite":
        return False
    of_conf = overwrites_dynamically(conf)
    if not conf.read(keys.DYNAMIC):
        return False
    name = "partitionOverwriteMode"
    words = {"dynamic": True, "static": False}
    if name.lower() in given:
        text = given[name.lower()]
        if text.strip().lower() not in words:
            raise illegal_option(name, text, "static or dynamic")
        return words[text.strip().lower()]
    if given.get("replacewhere"):
        return False
    return of_conf


def _limit(given: Mapping[str, str], conf: DeltaConf) -> int:
    given_limit = option(given, _MAX_RECORDS)
    return rows_per_file(conf) if given_limit is None else max(0, given_limit)


def _codec(given: Mapping[str, str], conf: DeltaConf) -> str | None:
    file_settings(conf)  # refuses an unknown codec before anything is planned
    if given.get("compression"):
        return parquet_codec(given["compression"], "compression")
    return None
