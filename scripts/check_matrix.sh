#!/bin/sh
# Run a subset of the tests with the lowest and the highest PySpark (and pyarrow) that we support,
# each in an environment of its own under .cache.
set -eu

PYTHON=${PYTHON:-python3}
CACHE=${LAKELOG_CACHE:-.cache}
TESTS="tests/unit tests/conformance/test_local.py tests/integration/test_reader.py tests/integration/test_write_modes.py tests/integration/test_datasource.py"

run_with() {
    venv=$CACHE/venv-matrix-pyspark-$1
    shift
    [ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$venv/bin/python" -m pip install --quiet --editable . --group test "$@"
    "$venv/bin/python" -m pip list 2>/dev/null | grep -iE '^(pyspark|pyarrow|pandas) '
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pytest -q $TESTS
}

echo "lowest: PySpark 4.0.0"
run_with 4.0.0 'pyspark[connect]==4.0.0' 'pyarrow==17.0.0' 'numpy<2.3'
echo "highest: the newest PySpark 4"
run_with newest --upgrade --upgrade-strategy eager
