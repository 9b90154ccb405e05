"""What a table's metadata may have Spark run for it: arithmetic, and nothing that reaches out."""

from __future__ import annotations

import pytest

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions import function_names
from lakelog.core.expressions.stored_sql import check_stored

CONF = DeltaConf.from_mapping({})
TRUSTED = DeltaConf.from_mapping({"spark.lakelog.unsafe.storedExpressions": "true"})

REFUSED = {
    "java_method('java.lang.System', 'getenv')": "the function java_method",
    "a = REFLECT('java.lang.System', 'getenv', 'HOME')": "the function REFLECT",
    "try_reflect('x', 'y') IS NULL": "the function try_reflect",
    "transform(b, x -> java_method(x, 'y'))": "the function java_method",
    "`java_method`('x', 'y')": "the function java_method",
    "\"java_method\"('x', 'y')": "the function java_method",
    "identifier('java' || '_method')('x', 'y')": "the function identifier",
    "system.builtin.upper(a)": r"the function \(…\)\.upper",
    "spark_catalog . `default` . my_udf(a)": r"the function \(…\)\.my_udf",
    "my_udf(a)": "the function my_udf",
    "java_method/* */ -- (\n ('x', 'y')": "the function java_method",
    # What ends a string here ends it for Spark: no call hides in one, and none is seen in one.
    r"r'\' || java_method('x') || r'\'": "the function java_method",
    r"'\\' || java_method('x', 'y') || ''": "the function java_method",
    "'it''s' || java_method('x', 'y')": "the function java_method",
    "a -- '\n || java_method('x', 'y') -- '": "a quote in a comment",
    "a /* /* */ ' */ || java_method('x') /* ' */": "outside a string",
    "a -- \\\n ' || java_method('x') -- '": "a quote in a comment",
    "'unfinished": "outside a string",
    "$$a$$": "outside a string",
    "'${env:AWS_SECRET_ACCESS_KEY}'": "a variable",
    "`${system:user.home}`": "a variable",
    "a IN (SELECT x FROM parquet.`/etc`)": "a subquery",
    "exists ( /* */ select 1)": "a subquery",
    "(WITH t AS (SELECT 1) SELECT * FROM t)": "a subquery",
    "a IN (TABLE secrets)": "a subquery",
    "(FROM secrets SELECT x)": "a subquery",
    "(FROM (VALUES 1))": "a subquery",
    "(VALUES (1))": "a subquery",
    "(VALUES -1)": "a subquery",
    "(VALUES is null UNION TABLE secrets)": "a subquery",
    "(FROM is null SELECT x)": "a subquery",
    "(TABLE is)": "a subquery",
    "(MAP a USING 'sh' AS b FROM t)": "a subquery|a script",
    "(MAP(a) USING 'sh' AS b FROM t)": "a script",
    "from_xml(a, 'x int', map('rowValidationXSDPath', '/etc/x'))": "the function from_xml",
    "from_protobuf(a, 'M', '/etc/x')": "the function from_protobuf",
    "rand() < 1": "the function rand",
    "input_file_name() = a": "the function input_file_name",
    "sum(a) OVER ()": "the function sum",
}

KEPT = [
    "a > 0 AND b IN (1, (2), -3) OR NOT (c BETWEEN (1) AND (2))",
    "CAST(a AS DECIMAL(9, 2)) * (1 + b)",
    "CASE WHEN (a) THEN (b) ELSE (c) END",
    "extract(DAY FROM (a)) = date_part('day', a)",
    "trim(BOTH 'x' FROM a) || position('a' IN b) || substring(a FROM 1 FOR 2)",
    "transform(a, (x, i) -> x + i)[0] = element_at(b, 1).c",
    "map('a', 1)['a'] = (map_from_arrays(a, b))['x']",
    "exists(a, x -> x > 0)",
    "s = 'java_method(1)' AND `reflect(` > 0 AND t = \"select (\"",
    "(values > 3) AND (table = 1) AND (map.x)",
    "(from IS NOT NULL AND (values is null)) OR (map IS TRUE)",
    "a LIKE ANY ('x', 'y') AND a RLIKE ('z')",
    "from_json(a, 'x struct<y: int>').x.y",
    "timestampadd(DAY, (1), a) > DATE'2020-01-01' + INTERVAL (1) DAY",
    "a -- the key\n > 0 /* positive */",
    "r'x(y' = a AND X'00' = b",
    "1.5BD < a",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_reaches_beyond_its_arguments_is_refused_by_name(sql: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=REFUSED[sql]) as caught:
        check_stored(sql, "the CHECK constraint c of /lake/t", CONF)
    message = str(caught.value)
    assert "the CHECK constraint c of /lake/t" in message
    assert "spark.lakelog.unsafe.storedExpressions=true" in message
    check_stored(sql, "the CHECK constraint c of /lake/t", TRUSTED)


@pytest.mark.parametrize("sql", KEPT)
def test_what_computes_is_kept(sql: str) -> None:
    check_stored(sql, "the CHECK constraint c", CONF)
    check_stored(sql, "the generated column g", CONF, context=False)


@pytest.mark.parametrize("sql", ["a <= current_timestamp()", "a = now()", "a = current_user()"])
def test_a_rule_may_ask_for_the_time_and_a_generated_column_may_not(sql: str) -> None:
    check_stored(sql, "the DEFAULT of a", CONF)
    with pytest.raises(DeltaAnalysisError, match="has the function"):
        check_stored(sql, "the generated column g", CONF, context=False)


def test_no_function_that_reaches_out_is_among_those_that_compute() -> None:
    known = function_names
    computing = known.SCALARS - known.READS_FILES
    assert not computing & (known.AGGREGATES | known.NOT_DETERMINISTIC | known.OTHERS)
    assert known.CONTEXT < known.NOT_DETERMINISTIC
    assert not known.CONTEXT & {"java_method", "reflect", "try_reflect", "input_file_name"}
