"""The script: every method of `delta.tables`, as steps that each begin with a table of its own.

In a step `t` is the table, `merge` begins a MERGE of the rows `s` into it by `id`, `sql` runs a
statement in which `{t}` is the table and `{at}` the folder; `at` is that folder and `path` the
table's.
"""

from __future__ import annotations

from typing import Final

from support.same_script.tables import TABLES

_ON_ALL: Final = {
    "toDF": "t.toDF()",
    "detail": 't.detail().drop("id", "createdAt", "lastModified", "sizeInBytes")',
    "update": 't.update("id = 2", {"n": "n + 1", "x": "NULL"})',
    "delete": 't.delete("id < 3")',
    "merge with every kind of clause": (
        'merge().whenMatchedUpdate("s.x IS NULL", {"name": "s.name"}).whenMatchedDelete()'
        '.whenNotMatchedInsert("s.id = 40", {"id": "s.id", "n": "s.n"})'
        '.whenNotMatchedBySourceUpdate("t.id = 8", {"name": "\'left\'"})'
        '.whenNotMatchedBySourceDelete("t.id = 1").execute()'
    ),
    "executeCompaction": "t.optimize().executeCompaction()",
}

_ALSO_ON: Final = {
    "delete all": ("t.delete()", "vectors partitioned feed"),
    "whenNotMatchedInsertAll": (
        "merge().whenNotMatchedInsertAll().execute()",
        "partitioned generated mapped tracked",
    ),
    "whenMatchedDelete": ("merge().whenMatchedDelete().execute()", "vectors feed"),
    "withSchemaEvolution": (
        """
more = s.withColumn("more", sf.lit("new")).alias("s")
b = merge(rows=more).withSchemaEvolution().whenMatchedUpdate(set={"more": "s.more"})
b.whenNotMatchedInsert(values={"id": "s.id", "more": "'in'"}).execute()
""",
        "mapped feed",
    ),
    "executeZOrderBy": (
        't.optimize().executeZOrderBy("n", "x")',
        "clustered partitioned vectors tracked",
    ),
    "vacuum": ("t.vacuum().count()", "vectors"),
    "generate": ('t.generate("symlink_format_manifest")', "vectors mapped partitioned"),
    "restoreToVersion": ("t.restoreToVersion(1)", "vectors feed tracked clustered"),
    "clone": (
        't.clone(f"{at}/new", isShallow=True)\nDeltaTable.forPath(spark, f"{at}/new").toDF()',
        "vectors mapped partitioned clustered tracked",
    ),
    "createOrReplace": (
        'DeltaTable.createOrReplace(spark).location(path).addColumn("id", "INT").execute().toDF()',
        "mapped clustered partitioned tracked vectors",
    ),
    "upgradeTableProtocol": ("t.upgradeTableProtocol(3, 7)", "mapped vectors"),
    "addFeatureSupport": ('t.addFeatureSupport("vacuumProtocolCheck")', "mapped vectors"),
    "ADD COLUMNS": (
        'sql("ALTER TABLE {t} ADD COLUMNS (after_id INT AFTER id)").count()',
        "mapped",
    ),
}
"""Name -> the step, and the kinds of tables beside a plain one where it may end otherwise."""

_ON_SOME: Final = {
    "clustered": {
        "CLUSTER BY another": 'sql("ALTER TABLE {t} CLUSTER BY (n)").count()',
        "CLUSTER BY NONE": 'sql("ALTER TABLE {t} CLUSTER BY NONE").count()',
        "optimize where": 't.optimize().where("id = 1").executeCompaction()',
        "dropFeatureSupport": 't.dropFeatureSupport("clustering")',
    },
    "partitioned": {
        "delete a partition": "t.delete(\"p = 'a'\")",
        "update a partition's column": 't.update("id = 1", {"p": "\'c\'"})',
        "optimize where": "t.optimize().where(\"p = 'a'\").executeCompaction()",
        "optimize where no column of partitions": (
            't.optimize().where("id = 1").executeCompaction()'
        ),
        "executeZOrderBy a partition": 't.optimize().executeZOrderBy("p")',
        "CLUSTER BY": 'sql("ALTER TABLE {t} CLUSTER BY (n)").count()',
        "another partition": (
            'DeltaTable.createOrReplace(spark).location(path).addColumn("id", "INT")'
            '.partitionedBy("id").execute().toDF()'
        ),
    },
    "mapped": {
        "RENAME COLUMN": (
            'sql("ALTER TABLE {t} RENAME COLUMN `odd name` TO other").count()\nt.toDF()'
        ),
        "DROP COLUMN": (
            'sql("ALTER TABLE {t} DROP COLUMN x").count()\nDeltaTable.forPath(spark, path).toDF()'
        ),
        "dropFeatureSupport": 't.dropFeatureSupport("columnMapping")',
    },
    "vectors": {
        "restore and delete": 't.restoreToVersion(2)\nt.delete("id = 4")',
        "dropFeatureSupport": 't.dropFeatureSupport("deletionVectors")',
        "dropFeatureSupport with its history": (
            't.dropFeatureSupport("deletionVectors", truncateHistory=True)'
        ),
        "PURGE": 'sql("REORG TABLE {t} APPLY (PURGE)")',
    },
    "feed": {
        "all changes": """
t.update("id = 1", {"n": "0"})
t.delete("id = 2")
merge().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
read = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
read.load(path).drop("_commit_timestamp")
""",
        "a column of the feed": 'sql("ALTER TABLE {t} ADD COLUMNS (_change_type STRING)").count()',
        "dropFeatureSupport": 't.dropFeatureSupport("changeDataFeed")',
    },
    "generated": {
        "update what is generated": 't.update("id = 1", {"g": "7"})',
        "update what is generated to the same": 't.update("id = 1", {"g": "n * 2"})',
        "whenMatchedUpdateAll": "merge().whenMatchedUpdateAll().execute()",
        "dropFeatureSupport": 't.dropFeatureSupport("generatedColumns")',
    },
    "nested": {
        "update a field": 't.update("id = 1", {"s.a": "5", "s.c.d": "s.a + 1"})',
        "update a struct": "t.update(\"id = 1\", {\"s\": \"named_struct('b', 'B', 'a', 1)\"})",
        "update an element": 't.update("id = 1", {"l.e": "5"})',
        "ADD a field": (
            'sql("ALTER TABLE {t} ADD COLUMNS (s.c.e STRING)").count()\n'
            "DeltaTable.forPath(spark, path).toDF()"
        ),
        "ADD to elements": (
            'sql("ALTER TABLE {t} ADD COLUMNS (l.element.f INT)").count()\n'
            "DeltaTable.forPath(spark, path).toDF()"
        ),
    },
    "tracked": {
        "row ids": (
            't.update("id = 2", {"n": "0"})\n'
            't.toDF().select("id", "_metadata.row_id", "_metadata.row_commit_version")'
        ),
        "dropFeatureSupport": 't.dropFeatureSupport("rowTracking")',
        "dropFeatureSupport of what it needs": 't.dropFeatureSupport("domainMetadata")',
    },
}

_ON_PLAIN: Final = {
    # What it looks like.
    "alias": 't.alias("t").toDF().select("t.id")',
    "history": """
t.update("id = 1", {"n": "0"})
t.delete("id = 2")
keys = sf.sort_array(sf.map_keys("operationParameters"))
t.history().withColumn("operationParameters", keys).drop("timestamp", "engineInfo")
""",
    "history(1)": 't.history(1).select("version", "operation")',
    "isDeltaTable": "DeltaTable.isDeltaTable(spark, path)",
    "isDeltaTable of a parent": "DeltaTable.isDeltaTable(spark, at)",
    "isDeltaTable of nothing": 'DeltaTable.isDeltaTable(spark, f"{at}/nothing")',
    "forPath": "DeltaTable.forPath(spark, path)",
    "forPath of nothing": 'DeltaTable.forPath(spark, f"{at}/nothing")',
    "forPath of a parent": "DeltaTable.forPath(spark, at)",
    "forName of a path": 'DeltaTable.forName(spark, f"delta.`{path}`").toDF().count()',
    "forName": """
sql("CREATE TABLE same_script USING delta LOCATION '{at}/t'")
found = DeltaTable.forName(spark, "same_script")
found.delete("id = 1")
told = found.detail().select("name", "numFiles").collect()
sql("DROP TABLE same_script")
str(told)
""",
    "forName of nothing": 'DeltaTable.forName(spark, "no_such_table")',
    "forName of a view": """
spark.range(1).createOrReplaceTempView("same_script_view")
DeltaTable.forName(spark, "same_script_view")
""",
    "forName of Parquet": """
spark.range(1).write.parquet(f"{at}/q")
DeltaTable.forName(spark, f"parquet.`{at}/q`")
""",
    # UPDATE.
    "update by Columns": 't.update(sf.col("id") == 2, {"n": sf.col("n") + 1, "x": sf.lit(7.5)})',
    "update by set": 't.update(set={"n": "n + 1"})',
    "update of no row": 't.update("id = 1000", {"n": "0"})',
    "update of an unknown column": 't.update("id = 1", {"nope": "1"})',
    "update where it is unknown": 't.update("nope = 1", {"n": "1"})',
    "update to what is unknown": 't.update("id = 1", {"n": "nope"})',
    "update without values": 't.update("id = 1")',
    "update with a number": 't.update("id = 1", {"n": 1})',
    "update to another type": 't.update("id = 1", {"n": "\'word\'"})',
    "update by chance": 't.update("rand() < 2", {"n": "1"})',
    "update with bad words": 't.update("id ==== 1", {"n": "1"})',
    # DELETE.
    "delete by a Column": 't.delete(sf.col("id") == 4)',
    "delete of no row": 't.delete("id = 1000")',
    "delete of a whole file": 't.delete("id < 5")',
    "delete where it is unknown": 't.delete("nope = 1")',
    "delete where it is null": 't.delete("NULL")',
    "delete with a number": "t.delete(1)",
    "delete by an alias": 't.alias("t").delete("t.id = 7")',
    "delete by chance": 't.delete("rand() < 2")',
    # MERGE.
    "whenMatchedUpdate": 'merge().whenMatchedUpdate(set={"n": "s.n"}).execute()',
    "whenNotMatchedInsert": (
        'merge().whenNotMatchedInsert(values={"id": "s.id", "n": "s.n + 1"}).execute()'
    ),
    "whenNotMatchedBySourceUpdate": (
        'merge().whenNotMatchedBySourceUpdate("t.id = 8", {"name": "\'left\'"}).execute()'
    ),
    "whenNotMatchedBySourceDelete": ('merge().whenNotMatchedBySourceDelete("t.id > 5").execute()'),
    "whenMatchedUpdate if": ('merge().whenMatchedUpdate("s.n > 20", {"x": sf.lit(1.5)}).execute()'),
    "whenMatchedUpdateAll": "merge().whenMatchedUpdateAll().execute()",
    "whenNotMatchedBySourceUpdate of all": (
        'merge().whenNotMatchedBySourceUpdate(set={"n": "0"}).execute()'
    ),
    "whenNotMatchedBySourceDelete of all": "merge().whenNotMatchedBySourceDelete().execute()",
    "merge by a Column": (
        'merge(sf.expr("t.id = s.id")).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()'
    ),
    "merge of all there is": """
b = merge().whenMatchedUpdate("s.id = 2", {"name": "s.name"}).whenMatchedDelete("s.id = 5")
b = b.whenMatchedUpdateAll().whenNotMatchedInsert("s.id = 40", {"id": "s.id"})
b = b.whenNotMatchedInsertAll().whenNotMatchedBySourceUpdate("t.id = 1", {"n": "t.n + 1"})
b.whenNotMatchedBySourceDelete("t.id = 8").execute()
""",
    "merge of nothing": 'merge("false").whenMatchedDelete().execute()',
    "merge without a clause": "merge().execute()",
    "merge with several matches": 'merge("s.id > 0").whenMatchedUpdateAll().execute()',
    "merge with an unknown column": 'merge().whenMatchedUpdate(set={"nope": "1"}).execute()',
    "merge by what is unknown": 'merge("t.nope = s.id").whenMatchedDelete().execute()',
    "merge by what is ambiguous": 'merge("id = 1").whenMatchedDelete().execute()',
    "merge with an insert of what is the table's": (
        'merge().whenNotMatchedInsert(values={"id": "t.id"}).execute()'
    ),
    "merge with a clause after one that always applies": (
        "merge().whenMatchedDelete().whenMatchedUpdateAll().execute()"
    ),
    "merge of no rows": 't.merge("rows", "1 = 1")',
    "whenMatchedUpdate without values": "merge().whenMatchedUpdate()",
    # Files.
    "executeZOrderBy a list": 't.optimize().executeZOrderBy(["id"])',
    "executeZOrderBy nothing": "t.optimize().executeZOrderBy()",
    "executeZOrderBy unknown": 't.optimize().executeZOrderBy("nope")',
    "optimize where": 't.optimize().where("id = 1").executeCompaction()',
    "vacuum(0)": "t.vacuum(0).count()",
    "vacuum(0) where that is allowed": """
spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
t.delete("id < 5")
t.vacuum(0).count()
spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
t.restoreToVersion(2)
""",
    "vacuum(-1)": "t.vacuum(-1).count()",
    "generate another": 't.generate("iceberg")',
    # Older versions.
    "restoreToVersion of this one": "t.restoreToVersion(2)",
    "restoreToVersion of none": "t.restoreToVersion(999)",
    "restoreToVersion of a text": 't.restoreToVersion("1")',
    "restoreToTimestamp": """
t.delete("id = 1")
then = t.history().where("version = 2").selectExpr("CAST(timestamp AS STRING)").collect()[0][0]
t.restoreToTimestamp(then)
""",
    "restoreToTimestamp later": 't.restoreToTimestamp("2999-01-01")',
    "restoreToTimestamp earlier": 't.restoreToTimestamp("1999-01-01")',
    "restoreToTimestamp of none": 't.restoreToTimestamp("no time")',
    "clone whole": 't.clone(f"{at}/new", False)',
    "clone over a table": """
t.clone(f"{at}/new", True)
t.clone(f"{at}/new", True)
""",
    "clone in place of a table": """
t.clone(f"{at}/new", True)
t.delete("id = 1")
t.clone(f"{at}/new", True, True)
DeltaTable.forPath(spark, f"{at}/new").toDF()
""",
    "clone with properties": """
t.clone(f"{at}/new", True, False, {"delta.appendOnly": "true"})
DeltaTable.forPath(spark, f"{at}/new").delete()
""",
    "clone with bad arguments": "t.clone(7)",
    "cloneAtVersion": (
        't.cloneAtVersion(1, f"{at}/new", True)\nDeltaTable.forPath(spark, f"{at}/new").toDF()'
    ),
    "cloneAtVersion of none": 't.cloneAtVersion(999, f"{at}/new", True)',
    "cloneAtTimestamp": """
then = t.history().where("version = 1").selectExpr("CAST(timestamp AS STRING)").collect()[0][0]
t.cloneAtTimestamp(then, f"{at}/new", True)
DeltaTable.forPath(spark, f"{at}/new").toDF()
""",
    "cloneAtTimestamp later": 't.cloneAtTimestamp("2999-01-01", f"{at}/new", True)',
    # Protocol and features.
    "upgradeTableProtocol down": "t.upgradeTableProtocol(1, 1)",
    "upgradeTableProtocol of none": "t.upgradeTableProtocol(9, 9)",
    "upgradeTableProtocol of a text": 't.upgradeTableProtocol("3", 7)',
    "upgradeTableProtocol in between": "t.upgradeTableProtocol(1, 4)",
    "addFeatureSupport again": (
        't.addFeatureSupport("vacuumProtocolCheck")\nt.addFeatureSupport("vacuumProtocolCheck")'
    ),
    "addFeatureSupport of a reader": 't.addFeatureSupport("deletionVectors")',
    "addFeatureSupport that needs another": 't.addFeatureSupport("rowTracking")',
    "addFeatureSupport of none": 't.addFeatureSupport("nope")',
    "dropFeatureSupport": (
        't.addFeatureSupport("checkConstraints")\nt.dropFeatureSupport("checkConstraints")'
    ),
    "dropFeatureSupport of a reader": (
        't.addFeatureSupport("vacuumProtocolCheck")\nt.dropFeatureSupport("vacuumProtocolCheck")'
    ),
    "dropFeatureSupport of what is not there": 't.dropFeatureSupport("vacuumProtocolCheck")',
    "dropFeatureSupport of none": 't.dropFeatureSupport("nope")',
    # ALTER TABLE, for which delta.tables has no method.
    "CHANGE COLUMN": (
        "sql(\"ALTER TABLE {t} CHANGE COLUMN n n BIGINT COMMENT 'how many' FIRST\").count()"
    ),
    "SET NOT NULL": 'sql("ALTER TABLE {t} ALTER COLUMN id SET NOT NULL").count()',
    "a default": 'sql("ALTER TABLE {t} ALTER COLUMN n SET DEFAULT 7").count()',
    "a wider type": 'sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT").count()',
    "a wider type where that is allowed": """
sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableTypeWidening = true)")
sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT").count()
DeltaTable.forPath(spark, path).toDF()
""",
    "RENAME COLUMN": 'sql("ALTER TABLE {t} RENAME COLUMN n TO m").count()',
    "DROP COLUMN": 'sql("ALTER TABLE {t} DROP COLUMN n").count()',
    "ADD COLUMNS that is there": 'sql("ALTER TABLE {t} ADD COLUMNS (n INT)").count()',
    "REPLACE COLUMNS": (
        'sql("ALTER TABLE {t} REPLACE COLUMNS (name STRING, id INT, n BIGINT, x DOUBLE, z INT)")'
        ".count()"
    ),
    "ADD CONSTRAINT": (
        'sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (n < 1000)").count()\n'
        't.update("id = 1", {"n": "1000"})'
    ),
    "ADD CONSTRAINT that is broken": (
        'sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (n < 50)").count()'
    ),
    "DROP CONSTRAINT": (
        'sql("ALTER TABLE {t} ADD CONSTRAINT low CHECK (n < 1000)")\n'
        'sql("ALTER TABLE {t} DROP CONSTRAINT low").count()'
    ),
    "DROP CONSTRAINT of none": 'sql("ALTER TABLE {t} DROP CONSTRAINT low").count()',
    "UNSET TBLPROPERTIES": (
        'sql("ALTER TABLE {t} SET TBLPROPERTIES (own = 1)")\n'
        'sql("ALTER TABLE {t} UNSET TBLPROPERTIES (own)").count()'
    ),
    "UNSET TBLPROPERTIES of none": 'sql("ALTER TABLE {t} UNSET TBLPROPERTIES (own)").count()',
    "an unknown property": ('sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.nope = 1)").count()'),
    "a property that is no number": (
        "sql(\"ALTER TABLE {t} SET TBLPROPERTIES (delta.checkpointInterval = 'x')\").count()"
    ),
    "appendOnly": (
        'sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.appendOnly = true)")\nt.delete("id = 1")'
    ),
    "CLUSTER BY": 'sql("ALTER TABLE {t} CLUSTER BY (n)").count()',
    "row tracking": (
        'sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableRowTracking = true)").count()'
    ),
    "the names of columns": (
        "sql(\"ALTER TABLE {t} SET TBLPROPERTIES (delta.columnMapping.mode = 'name')\").count()\n"
        "DeltaTable.forPath(spark, path).toDF()"
    ),
}

_COLUMNS: Final = """
def columns(builder):
    builder = builder.addColumn("id", "INT", nullable=False)
    builder = builder.addColumn("twice", "INT", generatedAlwaysAs="id * 2", comment="of them")
    own = IdentityGenerator(start=7, step=2)
    builder = builder.addColumn("no", "BIGINT", generatedByDefaultAs=own)
    builder = builder.addColumns(spark.range(1).withColumnRenamed("id", "more").schema)
    builder = builder.comment("a table").property("delta.appendOnly", "false")
    return builder.property("own", "1").location(f"{at}/new")
"""
_BUILT: Final = {
    "create": 'columns(DeltaTable.create(spark)).partitionedBy("more").execute().toDF()',
    "create with clusters": 'columns(DeltaTable.create(spark)).clusterBy("id").execute().toDF()',
    "create again": (
        "columns(DeltaTable.create(spark)).execute()\ncolumns(DeltaTable.create(spark)).execute()"
    ),
    "createIfNotExists": "columns(DeltaTable.createIfNotExists(spark)).execute()",
    "createIfNotExists again": """
columns(DeltaTable.create(spark)).execute()
DeltaTable.createIfNotExists(spark).location(f"{at}/new").addColumn("a", "INT").execute().toDF()
""",
    "createOrReplace of nothing": "columns(DeltaTable.createOrReplace(spark)).execute()",
    "createOrReplace with other columns": (
        "columns(DeltaTable.createOrReplace(spark)).location(path).execute().toDF()"
    ),
    "replace": 'columns(DeltaTable.replace(spark)).location(path).clusterBy("id").execute().toDF()',
    "replace of nothing": "columns(DeltaTable.replace(spark)).execute()",
    "create over what is there": "columns(DeltaTable.create(spark)).location(path).execute()",
    "create without a place": 'DeltaTable.create(spark).addColumn("id", "INT").execute()',
    "create without a column": 'DeltaTable.create(spark).location(f"{at}/new").execute().toDF()',
    "a name": """
builder = columns(DeltaTable.create(spark).tableName("same_script_made"))
told = builder.execute().detail().select("name").collect()
spark.sql("DROP TABLE same_script_made")
str(told)
""",
    "a type that is none": 'DeltaTable.create(spark).addColumn("id", "NOPE")',
    "a type that is a number": 'DeltaTable.create(spark).addColumn("id", 7)',
    "two ways to generate": (
        'DeltaTable.create(spark).addColumn("a", "INT", generatedAlwaysAs="1",'
        " generatedByDefaultAs=IdentityGenerator())"
    ),
    "an identity of another type": (
        'DeltaTable.create(spark).location(f"{at}/new")'
        '.addColumn("a", "INT", generatedAlwaysAs=IdentityGenerator()).execute()'
    ),
    "an identity without a step": (
        'DeltaTable.create(spark).addColumn("a", "BIGINT",'
        " generatedAlwaysAs=IdentityGenerator(step=0))"
    ),
    "a column twice": ('columns(DeltaTable.create(spark)).addColumn("ID", "INT").execute()'),
    "partitioned by what is not there": (
        'columns(DeltaTable.create(spark)).partitionedBy("nope").execute()'
    ),
    "clustered by what is not there": (
        'columns(DeltaTable.create(spark)).clusterBy("nope").execute()'
    ),
    "partitioned and clustered": (
        'columns(DeltaTable.create(spark)).partitionedBy("id").clusterBy("more").execute()'
    ),
}

_PARQUET: Final = """
frame = spark.range(4).selectExpr("id", "id % 2 AS p").coalesce(1)
frame.write.partitionBy("p").parquet(f"{at}/q")
q = f"parquet.`{at}/q`"
"""
_CONVERTED: Final = {
    "convertToDelta": 'DeltaTable.convertToDelta(spark, q, "p INT").toDF()',
    "convertToDelta by a schema": (
        'DeltaTable.convertToDelta(spark, q, spark.range(1).selectExpr("1 AS p").schema).toDF()'
    ),
    "convertToDelta without partitions": "DeltaTable.convertToDelta(spark, q)",
    "convertToDelta with other partitions": 'DeltaTable.convertToDelta(spark, q, "z INT")',
    "convertToDelta again": (
        'DeltaTable.convertToDelta(spark, q, "p INT")\n'
        'DeltaTable.convertToDelta(spark, q, "p INT").toDF()'
    ),
}
_NOT_CONVERTED: Final = {
    "convertToDelta of nothing": 'DeltaTable.convertToDelta(spark, f"parquet.`{at}/nothing`")',
    "convertToDelta of a table": 'DeltaTable.convertToDelta(spark, f"parquet.`{path}`")',
    "convertToDelta of another format": 'DeltaTable.convertToDelta(spark, f"json.`{path}`")',
}


def _steps() -> dict[tuple[str, str], str]:
    found = {(kind, name): text for kind in TABLES for name, text in _ON_ALL.items()}
    found |= {
        (kind, name): text
        for name, (text, kinds) in _ALSO_ON.items()
        for kind in ["plain", *kinds.split()]
    }
    some = {**_ON_SOME, "plain": {**_ON_PLAIN, **_NOT_CONVERTED}}
    found |= {(kind, name): text for kind in some for name, text in some[kind].items()}
    found |= {("plain", name): f"{_COLUMNS}\n{text}" for name, text in _BUILT.items()}
    return found | {("plain", name): f"{_PARQUET}\n{text}" for name, text in _CONVERTED.items()}


STEPS: Final = _steps()
"""(Kind of table, name) -> Python."""
