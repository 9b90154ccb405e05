"""Write docs/enabled-methods.md from what `enable` wraps, or report that it is out of date.

python scripts/enabled_methods_page.py            # writes the page
python scripts/enabled_methods_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path

from written_page import write_or_compare

from lakelog.spark.format.enable import WRAPPERS
from lakelog.spark.sql_statements.commands.dispatch import STATEMENTS

PAGE = Path(__file__).parents[1] / "docs" / "enabled-methods.md"
COMMAND = "python scripts/enabled_methods_page.py"

_WRITES = "csv jdbc json orc parquet text xml"
SPARKS_OWN = {
    "SparkSession": """
        Builder Hook active addArtifact addArtifacts addTag builder catalog clearProgressHandlers
        clearTags client cloneSession conf copyFromLocalToFs createDataFrame dataSource
        emptyDataFrame getActiveSession getTags interruptAll interruptOperation interruptTag
        is_stopped newSession profile range read readStream registerProgressHandler
        removeProgressHandler removeTag session_id sparkContext stop streams tvf udf udtf version
    """,
    "DataFrame": """
        agg approxQuantile asTable cache checkpoint coalesce colRegex collect columns corr
        count cov crossJoin crosstab cube describe distinct drop dropDuplicates
        dropDuplicatesWithinWatermark drop_duplicates dropna dtypes exceptAll executionInfo exists
        explain fillna filter first foreach foreachPartition freqItems groupBy groupby groupingSets
        head hint inputFiles intersect intersectAll is_cached isEmpty isLocal isStreaming join
        lateralJoin limit localCheckpoint mapInArrow mapInPandas melt metadataColumn na
        nearestByJoin observe offset orderBy pandas_api persist plot printSchema randomSplit rdd
        repartition repartitionById repartitionByRange replace rollup sameSemantics sample sampleBy
        scalar schema select selectExpr semanticHash show sort sortWithinPartitions sparkSession
        sql_ctx stat storageLevel subtract summary tail take to toArrow toDF toJSON toLocalIterator
        toPandas transform transpose union unionAll unionByName unpersist unpivot where withColumn
        withColumnRenamed withColumns withColumnsRenamed withMetadata withWatermark write
        writeStream zip zipWithIndex
    """,
    "DataFrameReader": _WRITES,
    "DataFrameWriter": _WRITES,
    "DataFrameWriterV2": "",
    "DataStreamReader": "csv json name orc parquet text xml",
    "DataStreamWriter": "",
    "Catalog": """
        analyzeTable functionExists getCreateTableString getDatabase getFunction
        getTableProperties listFunctions listPartitions listViews refreshByPath registerFunction
    """,
}
"""Class -> its methods that `enable` leaves alone. One that is neither here nor wrapped fails a
test: a new PySpark has it, and somebody has to say what it means for Delta tables."""

DIFFERS = {
    "SparkSession.sql": "[which statements](sql.md)",
    "SparkSession.table": "reads the version that is the newest when it is called; of views too",
    "DataFrame.alias": "works; a view of it means the table that the DataFrame is read from",
    "DataFrame.mergeInto": "gives an object with the methods of `MergeIntoWriter`, all of which "
    "work but `whenNotMatchedBySource().updateAll()`, which has no row to take values from",
    "DataFrameReader.schema": "compared with the table's, and refused where it differs",
    "DataFrameWriter.bucketBy": "refused: Delta tables have no buckets; `partitionBy`",
    "DataFrameWriter.sortBy": "refused: `df.sortWithinPartitions`",
    "DataFrameWriter.clusterBy": "works; history calls the write that makes the table "
    "`CREATE TABLE AS SELECT`",
    "DataFrameWriter.saveAsTable": "a `path` that is not the table's, and a name of a table of "
    "another format, are refused; delta-spark passes the one over and replaces the other. "
    "Without a format a Delta table stays one",
    "DataFrameWriterV2.overwrite": "rewrites all files, unless for partition columns alone; "
    "`replaceWhere` skips by statistics",
    "DataFrameWriterV2.partitionedBy": "columns alone; expressions such as `years(…)` are refused",
    "DataStreamWriter.clusterBy": "works; a new table is made when the query starts",
    "DataStreamWriter.outputMode": "`append`, `complete`; `update` is refused, as by delta-spark",
    "DataStreamWriter.foreach": "Spark's own; it takes the place of a format",
    "DataStreamWriter.foreachBatch": "Spark's own; it takes the place of a format",
    "DataFrameReader.changes": 'refused: `option("readChangeFeed", "true")` and `table(name)`',
    "DataStreamReader.changes": 'refused: `option("readChangeFeed", "true")` and `table(name)`',
    "Catalog.cacheTable": "works; a newer version is cached again at its first use, where "
    "delta-spark may show the old one",
    **{
        f"Catalog.{name}": f"Spark's own; while Unity Catalog's is the current one, use `{instead}`"
        for name, instead in {
            "databaseExists": "SHOW SCHEMAS",
            "getTable": "DESCRIBE DETAIL",
            "listDatabases": "SHOW SCHEMAS",
            "listTables": "SHOW TABLES",
        }.items()
    },
    "Catalog.recoverPartitions": "refused: the log has the partitions",
}
"""What a row of the page says where it does not say "works"."""

STATEMENT_NOTES = {
    "DELETE FROM": "no subqueries in the condition: `MERGE`",
    "UPDATE": "no subqueries in the condition: `MERGE`",
    "MERGE INTO": "works",
    "MERGE WITH": "works: `MERGE WITH SCHEMA EVOLUTION`",
    "INSERT": "works; `IF NOT EXISTS`, `REPLACE ON` and `REPLACE USING` are refused, as by "
    "delta-spark",
    "TRUNCATE TABLE": "works; no partitions, as with delta-spark",
    "OPTIMIZE": "works",
    "REORG TABLE": "`APPLY (PURGE)`; `UPGRADE UNIFORM` is refused",
    "VACUUM": "works",
    "FSCK REPAIR TABLE": "works, also `DRY RUN`; delta-spark has none",
    "GENERATE": "works",
    "RESTORE": "works",
    "CONVERT TO DELTA": "works, of Parquet",
    "DESCRIBE HISTORY": "works",
    "DESCRIBE DETAIL": "works",
    "DESCRIBE": "works; `AS JSON` is refused, as by delta-spark",
    "CREATE": "tables: works; views: a persistent one reads tables by name only",
    "REPLACE TABLE": "works",
    "ALTER TABLE": "works; statements about partitions are refused, as by delta-spark",
    "ALTER VIEW": "works",
    "COMMENT ON TABLE": "works",
    "COMMENT ON COLUMN": "works",
    "EXPLAIN": "of a change the plan of the query that finds its rows",
    "CACHE": "works; never stale, where delta-spark may show rows of an older version",
    "UNCACHE TABLE": "works",
    "CLEAR CACHE": "works",
    "DROP TABLE": "Spark's own, but of tables in Unity Catalog; what is cached of the table is let "
    "go",
    "DROP VIEW": "Spark's own; what is cached of the view is let go",
    "SHOW COLUMNS": "works",
    "SHOW TBLPROPERTIES": "works",
    "SHOW PARTITIONS": "works",
    "SHOW CREATE TABLE": "works",
    "SHOW CATALOGS": "Spark's own, with Unity Catalog's of the conf",
    "SHOW SCHEMAS": "Spark's own, but of Unity Catalog",
    "SHOW DATABASES": "as `SHOW SCHEMAS`",
    "SHOW NAMESPACES": "as `SHOW SCHEMAS`",
    "SHOW TABLES": "Spark's own, but of Unity Catalog",
    "SHOW CURRENT": "Spark's own, but where Unity Catalog is the current one",
    "USE": "Spark's own, but of Unity Catalog, whose names are then "
    "[short](unity-catalog.md#short-names)",
    "SET CATALOG": "as `USE`",
}
"""First words of each statement that is recognised -> what it does. `DESC` is `DESCRIBE`."""

NOTES = {
    "Catalog": "`getTable`, `getTableProperties` and `getCreateTableString` show what the "
    "catalog's entry has, which is neither columns nor properties: `DESCRIBE DETAIL`, "
    "`SHOW TBLPROPERTIES` and `SHOW CREATE TABLE` show those of the table.",
    "DataFrame": "The four methods that make views, and `registerTempTable`, are Spark's own; "
    "names are looked up again after them. A view of a DataFrame stays at its version until rows "
    "are [changed by way of it](sql.md#changes-by-way-of-a-view); one that "
    "[SQL makes](sql.md#views) shows the newest.",
}

HEAD = f"""\
# What enable does, method by method

Every public method of the classes of PySpark that read, write and name tables, and what it does
with Delta tables after `lakelog.spark.enable(spark)`. The page is written from the code
(`{COMMAND}`); a test fails where they differ, and where a new PySpark
has a method that is not here. Tables of other formats are Spark's own, whatever the method.

*Works*: as with delta-spark. Anything else is said. The statements of `spark.sql` are
[at the end](#statements), the methods of `DeltaTable` in
[delta.tables, method by method](delta-tables.md).
"""


def page() -> str:
    """The page as the code says."""
    parts = [HEAD]
    for name, wrappers in WRAPPERS.items():
        parts.append(f"\n## {name}\n\n| Method | With Delta tables |\n|---|---|\n")
        for method in sorted(wrappers):
            state = DIFFERS.get(f"{name}.{method}", "works")
            parts.append(f"| `{method}` | {state} |\n")
        own = SPARKS_OWN[name].split()
        if own:
            listed = ", ".join(f"`{each}`" for each in sorted(own))
            parts.append(f"\nSpark's own: {listed}.\n")
        if name in NOTES:
            parts.append(f"\n{NOTES[name]}\n")
    parts.append(
        "\n## Statements\n\nWhat `spark.sql` recognises by its first words where it names a Delta "
        "table; tables in queries are read in any statement. [SQL](sql.md) has the clauses and "
        "examples.\n\n| Statement | With Delta tables |\n|---|---|\n"
    )
    parts += [f"| `{each}` | {STATEMENT_NOTES[each]} |\n" for each in sorted(statements())]
    return "".join(parts)


def statements() -> set[str]:
    """The first words of every statement that is recognised."""
    found = {" ".join(words) for readers in STATEMENTS.values() for words, _ in readers}
    return {each for each in found if each.partition(" ")[0] != "DESC"}


if __name__ == "__main__":
    sys.exit(write_or_compare(PAGE, page(), COMMAND))
