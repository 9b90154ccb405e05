"""The keys of Delta and of Spark that the core and the Spark layer read.

With `lakelog.logstores.keys`, which has lakelog's own, this is all that a conf can say here.
"""

from __future__ import annotations

from typing import Final

from lakelog.logstores.keys import LAKELOG_KEYS, Key, flag, text, whole

DELTA_PREFIX: Final = "spark.databricks.delta."
"""Where Delta's own keys live."""

_D = DELTA_PREFIX

MAX_ATTEMPTS: Final = whole(
    f"{_D}maxCommitAttempts", 10_000_000, "Retries of a commit after the first try."
)
MAX_UNKNOWN: Final = whole(
    f"{_D}maxNonConflictCommitAttempts",
    10,
    "Retries of a write whose outcome the storage did not report.",
)
COMMIT_LOCK: Final[Key[bool | None]] = Key(
    f"{_D}commitLock.enabled",
    "flag",
    None,
    "Whether commits take a lock of the process or the host; what the store needs where not set.",
)
CHECK_DUPLICATES: Final = flag(
    f"{_D}duplicateActionCheck.enabled", True, "Refuses a commit that names one file twice."
)
CHECK_PARTITIONS: Final = flag(
    f"{_D}commitValidation.enabled", True, "Refuses files without the table's partition columns."
)
CHECK_VECTORS: Final = flag(
    f"{_D}deletionVectors.skipCommitCheck",
    True,
    "Checks deletion vectors of a commit, in spite of its name, which is Delta's.",
)
DATA_CHANGE: Final = text(
    f"{_D}commitValidation.consistentDataChange.mode",
    "log",
    "How to treat a mixture of `dataChange` in one commit: `off`, `log` or `fatal`.",
)
EMPTY_FILES: Final = flag(
    f"{_D}emptyFileCheck.throwEnabled", False, "A file of no bytes is an error, not a warning."
)
NULL_PARTITIONS: Final = flag(
    f"{_D}nullPartitionCheck.throwEnabled",
    False,
    "A null for a NOT NULL partition column is an error, not a warning.",
)
COMMIT_INFO: Final = flag(
    f"{_D}commitInfo.enabled", True, "Whether history says more of a commit than its name."
)
USER_METADATA: Final[Key[str | None]] = Key(
    f"{_D}commitInfo.userMetadata", "text", None, "The note of commits that have none of their own."
)
METRICS: Final = flag(f"{_D}history.metricsEnabled", True, "Whether history has metrics.")
SKIP_EMPTY: Final = flag(
    f"{_D}skipRecordingEmptyCommits", True, "Whether `commit_if_needed` may write nothing."
)
PARTITIONING: Final = text(
    f"{_D}partitionColumnChangeCheck",
    "true",
    "What a change of the partition columns is: refused (`true`), logged (`log-only`), `false`.",
)
REDIRECTS: Final = flag(
    f"{_D}skipRedirectFeature", False, "Lets a commit to a table pass that is being moved."
)
STRICT_UPGRADES: Final = flag(
    f"{_D}conflictChecker.enforceConcurrentFeatureEnablement.enabled",
    False,
    "A winner that adds a feature which writers must have known is a conflict.",
)
ENABLEMENT: Final = flag(
    f"{_D}featureEnablement.conflictResolution.enabled",
    True,
    "A winner that only switches features on is not a conflict.",
)
RESTORE_DOWNGRADE: Final = flag(
    f"{_D}restore.protocolDowngradeAllowed", False, "RESTORE may take features away."
)
RETENTION_OF_VERSIONS: Final = flag(
    f"{_D}vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
    True,
    "Refuses RESTORE and CLONE of a version older than `delta.deletedFileRetentionDuration`.",
)
IGNORE_MISSING: Final = flag(
    "spark.sql.files.ignoreMissingFiles",
    False,
    "RESTORE leaves files out that the storage no longer has, instead of refusing.",
)
REPLACE_DOWNGRADE: Final = flag(
    f"{_D}replace.protocolDowngradeAllowed", False, "REPLACE TABLE may take features away."
)
ARBITRARY: Final = flag(
    f"{_D}allowArbitraryProperties.enabled", False, "Unknown `delta.` properties are stored."
)
CONSTRAINT_PROPERTIES: Final = flag(
    f"{_D}tablePropertyConstraintsCheck.enabled",
    True,
    "Checks that properties do not contradict each other.",
)
TYPE_CHECK: Final = flag(
    f"{_D}schema.typeCheck.enabled",
    True,
    "Refuses new columns of types that many clients can't read: intervals.",
)
NOT_NULL: Final = flag(
    f"{_D}constraints.allowUnenforcedNotNull.enabled",
    False,
    "Takes NOT NULL within arrays and maps, which delta-spark does not enforce there.",
)
THROW: Final = flag(
    f"{_D}postCommitHook.throwOnError", False, "A hook's failure is raised, not only logged."
)
CHECKSUMS: Final[Key[bool | None]] = Key(
    f"{_D}writeChecksumFile.enabled",
    "flag",
    None,
    "Whether commits write checksums; on near storage where not set.",
)
CHECKSUM_FATAL: Final = flag(
    f"{_D}checksum.mismatch.fatal", False, "A checksum that does not match is an error."
)
COMPACTION: Final = flag(
    f"{_D}deltaLog.minorCompaction.useForReads", True, "Whether log compactions are read."
)
PART_SIZE: Final[Key[int | None]] = Key(
    f"{_D}checkpoint.partSize", "whole", None, "The most actions in one file of a checkpoint."
)
TOP_FORMAT: Final = text(
    f"{_D}checkpointV2.topLevelFileFormat", "json", "The top file of a V2 checkpoint: or `parquet`."
)
RETENTION_CHECK: Final = flag(
    f"{_D}retentionDurationCheck.enabled",
    True,
    "Refuses a VACUUM with less retention than the table's.",
)
VACUUM_LOGGING: Final[Key[bool | None]] = Key(
    f"{_D}vacuum.logging.enabled",
    "flag",
    None,
    "Whether history shows VACUUM; on local disks, HDFS, Azure and GCS where not set, as Delta.",
)
STATS: Final = flag(f"{_D}stats.collect", True, "Whether written files get statistics.")
STRING_PREFIX: Final = whole(
    "spark.databricks.io.skipping.stringPrefixLength",
    32,
    "Characters of a text that statistics keep.",
)
VECTOR_FILE_SIZE: Final = whole(
    f"{_D}deletionVectors.packing.targetSize", 2 << 20, "The bytes of a file of deletion vectors."
)
DELETE_VECTORS: Final = flag(
    f"{_D}delete.deletionVectors.persistent", True, "Whether DELETE makes deletion vectors."
)
UPDATE_VECTORS: Final = flag(
    f"{_D}update.deletionVectors.persistent", True, "Whether UPDATE makes deletion vectors."
)
MERGE_VECTORS: Final = flag(
    f"{_D}merge.deletionVectors.persistent", True, "Whether MERGE makes deletion vectors."
)
FEED_LENIENT: Final = flag(
    f"{_D}changeDataFeed.timestampOutOfRange.enabled",
    False,
    "A range of changes may begin after the last version.",
)
ALLOW_RENAME: Final[Key[str | None]] = Key(
    f"{_D}streaming.allowSourceColumnRename",
    "text",
    None,
    "`always`: streams that track their columns go past renamed ones. With `.ckpt_<number>` after "
    "it, of one checkpoint: `always`, or the version of the change.",
    is_prefix=True,
)
ALLOW_DROP: Final[Key[str | None]] = Key(
    f"{_D}streaming.allowSourceColumnDrop",
    "text",
    None,
    "The same for dropped columns.",
    is_prefix=True,
)
ALLOW_RENAME_AND_DROP: Final[Key[str | None]] = Key(
    f"{_D}streaming.allowSourceColumnRenameAndDrop",
    "text",
    None,
    "The same for both.",
    is_prefix=True,
)
ALLOW_TYPE_CHANGE: Final[Key[str | None]] = Key(
    f"{_D}streaming.allowSourceColumnTypeChange",
    "text",
    None,
    "The same for wider types.",
    is_prefix=True,
)
BACKFILL: Final = flag(
    f"{_D}rowTracking.backfill.enabled", True, "Whether existing files get row ids."
)
BACKFILL_FILES: Final = whole(
    f"{_D}rowTracking.backfill.maxNumFiles", 22_000, "Files of one commit of that."
)
OPTIMIZE_MIN_SIZE: Final[Key[str | None]] = Key(
    f"{_D}optimize.minFileSize",
    "text",
    None,
    "OPTIMIZE rewrites files below this size, as `64m`; those below its target where not set.",
)
OPTIMIZE_MAX_SIZE: Final[Key[str | None]] = Key(
    f"{_D}optimize.maxFileSize",
    "text",
    None,
    "The size of files that OPTIMIZE aims at; where not set `delta.targetFileSize`, or 1 GiB.",
)
OPTIMIZE_DELETED: Final[Key[float]] = Key(
    f"{_D}optimize.maxDeletedRowsRatio",
    "number",
    0.05,
    "OPTIMIZE rewrites a file of which a larger share of rows is deleted.",
)
OPTIMIZE_BATCH: Final[Key[str | None]] = Key(
    f"{_D}optimize.batchSize",
    "text",
    None,
    "OPTIMIZE commits each time it has rewritten this many bytes; if not set, once at the end.",
)
OPTIMIZE_THREADS: Final = whole(
    f"{_D}optimize.maxThreads", 15, "Files that OPTIMIZE writes at once, at most one a processor."
)
AUTO_COMPACT: Final[Key[str | None]] = Key(
    f"{_D}autoCompact.enabled",
    "text",
    None,
    "Whether commits put small files together; where not set, as `delta.autoOptimize.autoCompact`.",
)
AUTO_MIN_FILES: Final = whole(
    f"{_D}autoCompact.minNumFiles", 50, "Small files of a partition from which on that is done."
)
AUTO_MAX_SIZE: Final = text(
    f"{_D}autoCompact.maxFileSize", "128m", "The size of files that it aims at."
)
AUTO_MIN_SIZE: Final[Key[str | None]] = Key(
    f"{_D}autoCompact.minFileSize",
    "text",
    None,
    "Files below this size are small; half of the largest where not set.",
)
AUTO_MAX_PARTITIONS: Final = whole(
    f"{_D}autoCompact.maxNumModifiedPartitions", 128, "The most partitions of one commit."
)
OPTIMIZE_METADATA_QUERY: Final = flag(
    f"{_D}optimizeMetadataQuery.enabled",
    True,
    "Whether `SELECT count(*)`, `min` and `max` of a whole table are answered by its statistics.",
)
OPTIMIZE_WRITE: Final[Key[bool | None]] = Key(
    f"{_D}optimizeWrite.enabled",
    "flag",
    None,
    "Whether Spark shuffles rows before it writes them, so that few files come of them; where not "
    "set, as `delta.autoOptimize.optimizeWrite`.",
)
OPTIMIZE_WRITE_BIN: Final = text(
    f"{_D}optimizeWrite.binSize", "512", "The size of a task of that, in MiB or as `512m`."
)
MERGE_REPARTITION: Final = flag(
    f"{_D}merge.repartitionBeforeWrite.enabled",
    True,
    "Whether Spark puts the rows of a partition together before MERGE writes them, where optimized "
    "writes do not shuffle them anyway.",
)
ZORDER_STATS: Final = flag(
    f"{_D}optimize.zorder.checkStatsCollection.enabled",
    True,
    "Refuses to order by columns without statistics.",
)
MIN_CUBE: Final = text(
    f"{_D}optimize.clustering.mergeStrategy.minCubeSize.threshold",
    "100g",
    "Rows of a clustered table that are ordered together are left alone from this size on.",
)
TARGET_CUBE: Final = text(
    f"{_D}optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    "150g",
    "The most bytes of a clustered table that are ordered together.",
)
MERGE_SCHEMA: Final = flag(
    f"{_D}schema.autoMerge.enabled", False, "Columns that only the data has are added."
)
DYNAMIC: Final = flag(
    f"{_D}dynamicPartitionOverwrite.enabled", True, "Whether dynamic overwrites are obeyed."
)
REPLACE_CHECK: Final = flag(
    f"{_D}replaceWhere.constraintCheck.enabled",
    True,
    "Refuses rows that the condition of `replaceWhere` does not match.",
)
PROPERTY_DEFAULTS: Final[Key[str | None]] = Key(
    f"{_D}properties.defaults",
    "text",
    None,
    "Each key below it is a property that new tables get.",
    is_prefix=True,
)
SESSION_TZ: Final = text("spark.sql.session.timeZone", "UTC", "The zone of times that name none.")
PRECISION_LOSS: Final = flag(
    "spark.sql.decimalOperations.allowPrecisionLoss",
    True,
    "Whether a decimal that would need more than 38 digits gives up some after the point.",
)
APP_NAME: Final[Key[str | None]] = Key(
    "spark.app.name", "text", None, "The application, for records and redirects."
)
APP_ID: Final[Key[str | None]] = Key("spark.app.id", "text", None, "Its id, for records.")
CODEC: Final[Key[str | None]] = Key(
    "spark.sql.parquet.compression.codec", "text", None, "The codec of written files."
)
MAX_ROWS: Final[Key[int | None]] = Key(
    "spark.sql.files.maxRecordsPerFile", "whole", None, "The most rows of a file; 0 for no limit."
)
OVERWRITE_MODE: Final = text(
    "spark.sql.sources.partitionOverwriteMode",
    "static",
    "What `overwrite` replaces: the table, or (`dynamic`) the partitions that the data has.",
)

DELTA_KEYS: Final[tuple[Key[object], ...]] = tuple(
    sorted((each for each in globals().values() if isinstance(each, Key)), key=lambda key: key.name)
)
"""Those of Delta and Spark."""

ALL_KEYS: Final[dict[str, Key[object]]] = {key.name: key for key in (*LAKELOG_KEYS, *DELTA_KEYS)}
"""Each key by its name."""
