#!/bin/sh
# Run tests with the lowest releases of all that lakelog asks for together, and with the newest, each
# in an environment of its own under .cache: the unit tests, Spark, and every backend's contract.
#
# Usage: scripts/check_matrix.sh [lowest|newest]
set -eu

PYTHON=${PYTHON:-python3}
CACHE=${LAKELOG_CACHE:-.cache}
SPARK="tests/integration/test_reader.py tests/integration/test_write_modes.py tests/integration/test_datasource.py"
# One run for each backend: its client's floor is nothing that the unit tests reach.
STORES=""
for name in local s3 s3_dynamodb gcs azure hdfs fsspec alibaba_oss ibm_cos oracle_oci; do
    STORES="$STORES tests/conformance/test_$name.py"
done
failed=""

environment() { # NAME PIP-ARGUMENTS…: make it, and set $python
    python=$CACHE/venv-matrix-$1/bin/python
    name=$1
    shift
    [ -x "$python" ] || "$PYTHON" -m venv "$CACHE/venv-matrix-$name"
    "$python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$python" -m pip install --quiet --editable . --group test "$@"
}

run() { # NAME TESTS…: with $python; goes on after a failure
    what=$1
    shift
    echo "== $name: $what"
    "$python" -m pytest -q "$@" || failed="$failed $name:$what"
}

runs=${1:-lowest newest}
environments=""
for each in $runs; do
    case $each in
        lowest)
            "$PYTHON" scripts/floors.py >"$CACHE/floors.txt"
            environment lowest --constraint "$CACHE/floors.txt"
            ;;
        newest) environment newest --upgrade --upgrade-strategy eager ;;
        *) echo "usage: $0 [lowest|newest]" >&2 && exit 2 ;;
    esac
    environments="$environments $each=$python"
    run unit tests/unit
    # shellcheck disable=SC2086
    run spark $SPARK
    # shellcheck disable=SC2086
    for store in $STORES; do
        run "$(basename "$store" .py)" "$store"
    done
done
echo
# shellcheck disable=SC2086
"$PYTHON" scripts/floors.py --table $environments
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
