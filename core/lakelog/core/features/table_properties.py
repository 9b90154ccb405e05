"""The properties of a table: `metaData.configuration`, typed, checked and given defaults.

Names and defaults are Delta's; the table of them is `KNOWN`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lakelog.core import keys
from lakelog.core.arguments import check_texts
from lakelog.core.conf import DELTA_PREFIX, DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.property_table import FEATURE_STATES, KNOWN, OLD_NAMES, parse_value
from lakelog.core.schema.column_paths import split_path

if TYPE_CHECKING:
    from collections.abc import Mapping

CONSTRAINT_PREFIX = "delta.constraints."
"""What follows is the name of a CHECK constraint; the value is its SQL."""

FEATURE_PREFIX = "delta.feature."
"""What follows is a table feature to enable; never stored (`lakelog.core.features.protocol`)."""

PSEUDO_PROPERTIES = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.ignoreProtocolDefaults",
)
"""They set the protocol's versions; never stored either."""

DEFAULTS_PREFIX = DELTA_PREFIX + "properties.defaults."
"""Confs that give properties to new tables."""

ICEBERG_COMPAT = {version: f"delta.enableIcebergCompatV{version}" for version in (1, 2)}
"""Version of IcebergCompat -> the property that promises it."""

_BY_LOWER = {name.lower(): name for name in KNOWN}

_BY_LOWER |= {old.lower(): name for name, old in OLD_NAMES.items()}

_logger = logging.getLogger("lakelog.properties")


class TableProperties:
    """A table's properties as values, Delta's default where the table sets none.

    Reading an attribute whose stored text is invalid raises `DeltaAnalysisError`; nothing is
    checked before, so that a table with one bad property can still be read.
    """

    __slots__ = ("_configuration",)

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self._configuration = configuration

    def __repr__(self) -> str:
        """`TableProperties({'delta.appendOnly': 'true'})`: those that the table sets."""
        return f"TableProperties({dict(self._configuration)!r})"

    def _repr_html_(self) -> str:
        from lakelog.core.shown.notebook import html_page

        return html_page(self._html_table())

    def _html_table(self) -> str:
        from lakelog.core.shown.notebook import html_table

        return html_table("Properties", ("name", "value"), sorted(self._configuration.items()))

    def get(self, name: str) -> Any:
        """The value of any property in `KNOWN`, parsed; its default where it is not set.

        Raises:
            DeltaAnalysisError: the stored text is not such a value.
        """
        text = self._configuration.get(name)
        if text is None and name in OLD_NAMES:
            text = self._configuration.get(OLD_NAMES[name])
        if text is None:
            text = KNOWN[name].default
        return None if text is None else _parse(name, text)

    @property
    def checkpoint_interval(self) -> int:
        """Commits from one checkpoint to the next."""
        return int(self.get("delta.checkpointInterval"))

    @property
    def isolation_level(self) -> str:
        """`Serializable`, `WriteSerializable` or `SnapshotIsolation`."""
        return str(self.get("delta.isolationLevel"))

    @property
    def append_only(self) -> bool:
        """Whether commits may not remove rows."""
        return bool(self.get("delta.appendOnly"))

    @property
    def deleted_file_retention_ms(self) -> int:
        """Milliseconds for which a removed file's tombstone and data stay."""
        return int(self.get("delta.deletedFileRetentionDuration"))

    @property
    def log_retention_ms(self) -> int:
        """Milliseconds for which commits stay readable."""
        return int(self.get("delta.logRetentionDuration"))

    @property
    def enable_expired_log_cleanup(self) -> bool:
        """Whether checkpointing deletes commits beyond the retention."""
        return bool(self.get("delta.enableExpiredLogCleanup"))

    @property
    def num_indexed_cols(self) -> int:
        """Leaf columns with statistics, in schema order; -1 for all."""
        return int(self.get("delta.dataSkippingNumIndexedCols"))

    @property
    def stats_columns(self) -> list[tuple[str, ...]] | None:
        """Paths of the columns with statistics where the table lists them; else `None`."""
        return self.get("delta.dataSkippingStatsColumns")  # type: ignore[no-any-return]  # its parser's type

    @property
    def string_prefix_length(self) -> int | None:
        """Characters of a string that statistics keep; `None`: as the session says."""
        return self.get("delta.dataSkippingStringPrefixLength")  # type: ignore[no-any-return]  # see above

    @property
    def set_transaction_retention_ms(self) -> int | None:
        """Milliseconds for which an application's progress is kept; `None` forever."""
        return self.get("delta.setTransactionRetentionDuration")  # type: ignore[no-any-return]  # see above

    @property
    def write_stats_as_json(self) -> bool:
        """Whether checkpoints carry statistics as JSON text."""
        return bool(self.get("delta.checkpoint.writeStatsAsJson"))

    @property
    def write_stats_as_struct(self) -> bool:
        """Whether checkpoints carry statistics as typed columns."""
        return bool(self.get("delta.checkpoint.writeStatsAsStruct"))

    @property
    def in_commit_timestamps(self) -> bool:
        """Whether every commit carries its time inside."""
        return bool(self.get("delta.enableInCommitTimestamps"))

    @property
    def deletion_vectors(self) -> bool:
        """Whether rows may be deleted by deletion vectors, if the protocol has them too."""
        return bool(self.get("delta.enableDeletionVectors"))

    @property
    def symlink_manifest(self) -> bool:
        """Whether commits keep lists of files for readers that know no log."""
        return bool(self.get("delta.compatibility.symlinkFormatManifest.enabled"))

    @property
    def change_data_feed(self) -> bool:
        """Whether commits say which rows they changed."""
        return bool(self.get("delta.enableChangeDataFeed"))

    @property
    def iceberg_compat(self) -> int | None:
        """Which version of IcebergCompat the table promises, 1 or 2; `None` for neither.

        Raises:
            DeltaAnalysisError: both.
        """
        found = [version for version, flag in ICEBERG_COMPAT.items() if self.get(flag)]
        if len(found) > 1:
            raise DeltaAnalysisError(
                "[DELTA_ICEBERG_COMPAT_VIOLATION.VERSION_MUTUAL_EXCLUSIVE] The validation of "
                "IcebergCompatV1 has failed. Only one IcebergCompat version can be enabled: set "
                f"{ICEBERG_COMPAT[1]} to false.",
                version=1,
            )
        return found[0] if found else None

    @property
    def column_mapping_mode(self) -> str:
        """`none`, `name` or `id`."""
        return str(self.get("delta.columnMapping.mode"))

    @property
    def type_widening(self) -> bool:
        """Whether columns may get wider types."""
        return bool(self.get("delta.enableTypeWidening"))

    @property
    def randomize_file_prefixes(self) -> bool:
        """Whether a random folder stands in for partition folders."""
        return bool(self.get("delta.randomizeFilePrefixes"))

    @property
    def random_prefix_length(self) -> int:
        """Characters of that folder's name."""
        return int(self.get("delta.randomPrefixLength"))

    @property
    def constraints(self) -> dict[str, str]:
        """Name -> SQL of the CHECK constraints, sorted by name."""
        prefix = len(CONSTRAINT_PREFIX)
        found = {
            key[prefix:]: sql
            for key, sql in self._configuration.items()
            if key.lower().startswith(CONSTRAINT_PREFIX)
        }
        return dict(sorted(found.items()))


def validate_properties(
    properties: Mapping[str, str], conf: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The properties that a user gives for a table, checked and in canonical spelling.

    Names are matched ignoring case. Those without `delta.` are the user's own and pass, as does
    everything under `delta.constraints.`; the values of the others must parse.

    Args:
        properties: as given.
        conf: with `spark.databricks.delta.allowArbitraryProperties.enabled`, unknown names pass.

    Raises:
        DeltaAnalysisError: an unknown name that starts with `delta.` (the message suggests the
            nearest), a bad value, or one name twice in two spellings.
    """
    check_texts(properties, "properties")
    lenient = DeltaConf.from_mapping(conf).read(keys.ARBITRARY)
    out: dict[str, str] = {}
    for given, value in properties.items():
        name = _canonical(given, lenient=lenient)
        if name in out and out[name] != value:
            raise DeltaAnalysisError(
                f"Table property {name} is given twice, as {out[name]!r} and as {value!r}.",
                property=name,
            )
        if name in KNOWN:
            _parse(name, value)
            _check_settable(name, value)
        elif name.startswith(FEATURE_PREFIX) and value.lower() not in FEATURE_STATES:
            raise _bad_value(name, value, "'supported' or 'enabled'")
        out[name] = value
    return out


def defaults_from_conf(conf: Mapping[str, str] | None) -> dict[str, str]:
    """The properties that the session gives to every new table.

    They are the confs under `spark.databricks.delta.properties.defaults.`, protocol versions and
    features included. Unknown ones are logged and left out, as in Delta: a conf is shared by
    clients of many versions. So are constraints, which belong to one table.

    Raises:
        DeltaAnalysisError: a bad value; names the conf key.
    """
    out: dict[str, str] = {}
    for key, value in DeltaConf.from_mapping(conf).items():
        if not key.startswith(DEFAULTS_PREFIX):
            continue
        given = "delta." + key.removeprefix(DEFAULTS_PREFIX)
        try:
            name = _canonical(given, lenient=False)
        except DeltaAnalysisError as exc:
            _logger.warning("ignoring the conf %s: %s", key, exc)
            continue
        if name.startswith(CONSTRAINT_PREFIX):
            _logger.warning("ignoring the conf %s: a constraint belongs to one table", key)
            continue
        try:
            out |= validate_properties({name: value}, conf)
        except DeltaAnalysisError as exc:
            raise DeltaAnalysisError(
                f"The conf {key}, a default for new tables, can't be used: {exc}",
                **{**exc.fields, "key": key},
            ) from None
    return out


def _canonical(given: str, *, lenient: bool | None) -> str:
    lowered = given.lower()
    if known := _BY_LOWER.get(lowered):
        return known
    for prefix in (CONSTRAINT_PREFIX, FEATURE_PREFIX):
        if lowered.startswith(prefix):
            return prefix + given[len(prefix) :]
    if lenient or not lowered.startswith("delta."):
        return given
    import difflib

    near = difflib.get_close_matches(lowered, _BY_LOWER, n=1, cutoff=0.6)
    hint = f" Did you mean {_BY_LOWER[near[0]]}?" if near else ""
    raise DeltaAnalysisError(
        f"[DELTA_UNKNOWN_CONFIGURATION] Unknown table property {given}.{hint} To store it anyway, "
        f"set {DELTA_PREFIX}allowArbitraryProperties.enabled=true.",
        property=given,
    )


def _check_settable(name: str, value: str) -> None:
    # Snapshot isolation is what single commits are lowered to; as the level of a table it would let
    # two writers overwrite each other's work unnoticed.
    if name == "delta.isolationLevel" and value.lower() == "snapshotisolation":
        raise _bad_value(name, value, "'Serializable' or 'WriteSerializable'")


def _parse(name: str, text: str) -> Any:
    try:
        if name == "delta.dataSkippingStatsColumns":
            return _columns(text)
        return parse_value(name, text)
    except ValueError as exc:
        raise _bad_value(name, text, str(exc)) from None


def _columns(text: str) -> list[tuple[str, ...]]:
    """A list with commas; commas inside backticks belong to a name."""
    if text.count("`") % 2:
        raise ValueError("a list of columns such as 'a,b.c' (a backtick is not closed)")
    parts: list[str] = []
    for index, piece in enumerate(text.split("`")):
        # Odd pieces stood between backticks.
        if index % 2:
            parts[-1] += f"`{piece}`"
        else:
            first, *more = piece.split(",")
            parts = [*parts[:-1], (parts[-1] if parts else "") + first, *more]
    try:
        return [split_path(part.strip()) for part in parts if part.strip()]
    except ValueError as exc:
        raise ValueError(f"a list of columns such as 'a,b.c' ({exc})") from None


def _bad_value(name: str, value: str, expected: str) -> DeltaAnalysisError:
    # Delta has a condition of its own for this one alone.
    condition = "[DELTA_INVALID_ISOLATION_LEVEL] " if name == "delta.isolationLevel" else ""
    return DeltaAnalysisError(
        f"{condition}Table property {name} must be {expected}, but it is {value!r}.",
        property=name,
        value=value,
    )
