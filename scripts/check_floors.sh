#!/bin/sh
# Run tests with the lowest releases of all that lakelog asks for together, and with the newest, each
# in an environment of its own under .cache: the unit tests, Spark, and every backend's contract.
#
# Usage: scripts/check_floors.sh [lowest|newest]; JOBS=2 says how many processes.
set -eu

PYTHON=${PYTHON:-python3}
CACHE=${LAKELOG_CACHE:-.cache}
JOBS=${JOBS:-2}
TESTS="tests/unit tests/integration/test_reader.py tests/integration/test_write_modes.py tests/integration/test_datasource.py"
# One file for each backend: its client's floor is nothing that the unit tests reach.
for name in local s3 s3_dynamodb gcs azure hdfs fsspec alibaba_oss ibm_cos oracle_oci; do
    TESTS="$TESTS tests/conformance/test_$name.py"
done
# And data files by pyarrow's own clients.
for name in azure_storage gcs_filesystem hdfs_table s3_table; do
    TESTS="$TESTS tests/backends/test_$name.py"
done
# What is found here is another release, not a rare draw.
export LAKELOG_EXAMPLES=0.5
failed=""

environment() { # NAME PIP-ARGUMENTS…: make it, and set $python
    python=$CACHE/venv-matrix-$1/bin/python
    [ -x "$python" ] || "$PYTHON" -m venv "$CACHE/venv-matrix-$1"
    shift
    "$python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$python" -m pip install --quiet --editable . --group test "$@"
}

environments=""
for each in ${1:-lowest newest}; do
    case $each in
        lowest)
            "$PYTHON" scripts/floors.py >"$CACHE/floors.txt"
            environment lowest --constraint "$CACHE/floors.txt"
            ;;
        newest) environment newest --upgrade --upgrade-strategy eager ;;
        *) echo "usage: $0 [lowest|newest]" >&2 && exit 2 ;;
    esac
    environments="$environments $each=$python"
    echo "== $each"
    # shellcheck disable=SC2086
    "$python" -m pytest -q -n "$JOBS" --dist loadgroup --max-worker-restart 0 $TESTS ||
        failed="$failed $each"
done
echo
# shellcheck disable=SC2086
"$PYTHON" scripts/floors.py --table $environments
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
