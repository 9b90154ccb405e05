# Everything runs from here, from nothing to done: `make demo` and `make test` set up what they
# need. The virtual environment is made once; a stamp file per dependency group says so.

SHELL := /bin/bash
# With it each of the hundreds of programs that tests start would compile all that it imports, and
# each process of pytest would rewrite the asserts of all tests.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# On two cores one process more than cores: the tests of servers mostly wait, and Spark's are in few
# of the processes (tests/support/groups.py).
JOBS ?= 3
PYTEST_ARGS ?=
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --max-worker-restart 0
# At night a test has five times its limit, and no worker is killed before (tests/support/days.py).
NIGHT = --nightly -o faulthandler_timeout=0
# What `make soak` takes: how long, which seed to begin with, and more for pytest.
MINUTES ?= 30
SEED ?=
SOAK_ARGS ?=
# What `make quick` runs: of each kind of test with a server, a peer or a JVM the one that says most.
QUICK := $(addprefix tests/, \
	backends/test_azure_storage.py backends/test_gcs_commits.py backends/test_manifests.py \
	backends/test_s3_table.py \
	conformance/test_hdfs.py conformance/test_local.py \
	integration/test_backends.py integration/test_column_mapping_writes.py \
	integration/test_datasource.py integration/test_delta_table.py integration/test_enable.py \
	integration/test_filled_columns.py integration/test_reader.py integration/test_sql.py \
	integration/test_stream_sink.py integration/test_stream_source.py integration/test_views.py \
	integration/test_write_modes.py integration/test_write_ways.py \
	interop/test_bounds_with_peers.py interop/test_cli_delta_spark.py \
	interop/test_core_with_deltalake.py interop/test_lakelog_spark_and_peers.py \
	interop/test_merge_with_peers.py interop/test_streams_with_delta_spark.py \
	interop/test_three_writers.py)
# What `make release` is told: where the repository is, and more that scripts/release.py explains.
URL ?=
FILES ?=
DOCS ?=
PYTHONS ?=
# Where `make coverage` leaves what each process reached.
COVERAGE ?= .coverage

.DEFAULT_GOAL := help
# With -j, an install would begin before the check for Java has spoken.
.NOTPARALLEL:
.PHONY: help demo test unit quick soak coverage programs check lint types mypy pyright user-types imports docs check-matrix check-floors check-dbt cluster recipes judges appenders kit longer nightly release bench bench-quick clean java jar

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

java:
	@sh scripts/java_check.sh

demo: java $(VENV)/.demo ## Run the main job on real data: five writers, one table
	$(BIN)/python examples/flights/main.py $(DEMO_ARGS)

test: java $(VENV)/.test ## Run every test, with the real peers and servers that they need
	$(PYTEST) $(PYTEST_ARGS)

unit: $(VENV)/.test ## Run the tests that need no server, no peer and no JVM
	$(PYTEST) --no-programs $(if $(PYTEST_ARGS),$(PYTEST_ARGS),tests/unit)

quick: java $(VENV)/.test ## Run the most telling tests of each kind, in ten minutes
	$(PYTEST) $(QUICK) $(PYTEST_ARGS)

soak: java $(VENV)/.test ## Draw random tests anew for MINUTES=30, from SEED=; a failure tells its seed and story
	$(BIN)/python tests/support/soak.py --minutes $(MINUTES) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) -- $(SOAK_ARGS)

programs: java $(VENV)/.test ## Build the servers and peers of the tests, once; `make test` builds those that it needs
	$(BIN)/python -m pytest -n 0 -q -s --programs-only $(if $(PYTEST_ARGS),$(PYTEST_ARGS),tests)

coverage: java $(VENV)/.test ## Run every test, and tell what lines and branches of ours they reach
	PYTHONPATH="$(CURDIR)/tests" LAKELOG_COVERAGE="$(COVERAGE)" $(PYTEST) -p support.covered $(PYTEST_ARGS) || true
	$(BIN)/python tests/support/coverage_report.py "$(COVERAGE)"

# Two at a time, the longest first; what is installed is there before, as two would install at once.
check: $(VENV)/.check $(VENV)/.docs ## Lint, types, import contracts, and the docs' build
	printf '%s\n' pyright user-types mypy docs lint imports | xargs -P 2 -I{} $(MAKE) --no-print-directory {}

lint: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/hadolint docker/*.Dockerfile

types: mypy pyright user-types

mypy: $(VENV)/.check
	$(BIN)/mypy

pyright: $(VENV)/.check
	$(BIN)/pyright

user-types: $(VENV)/.check
	$(BIN)/python scripts/user_types.py

imports: $(VENV)/.check
	$(BIN)/lint-imports

docs: $(VENV)/.docs ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check-matrix: java $(VENV)/.release ## Test each Python, PySpark and pyarrow that is supported
	$(BIN)/python scripts/check_matrix.py $(if $(PYTHONS),--pythons "$(PYTHONS)")

check-floors: java ## Test the lowest releases of all dependencies together, and the newest, on every backend
	sh scripts/check_floors.sh

cluster: java $(VENV)/.release ## Run each kind of command on a standalone cluster whose workers are killed
	$(BIN)/python -m pytest -n 0 $(NIGHT) -m nightly $(if $(PYTEST_ARGS),$(PYTEST_ARGS),tests/integration)

recipes: $(VENV)/.test ## Run the examples for Airflow, Dagster, pandera, Great Expectations and SQLMesh by the real packages
	$(BIN)/python -m pytest -n 0 $(NIGHT) tests/integration/test_recipes.py tests/interop/test_checks_before_a_write.py

judges: java $(VENV)/.test ## Commit to one table of Unity Catalog by lakelog and other clients, at length
	$(BIN)/python -m pytest -n 0 $(NIGHT) tests/interop/test_one_unity_catalog.py tests/interop/test_unity_catalog_judges.py

appenders: $(VENV)/.test ## Kill each role of appenders and of those who commit as one 50 times on each storage; run 64 producers
	$(BIN)/python -m pytest -n 0 $(NIGHT) -m nightly tests/backends

kit: java $(VENV)/.test ## Ask every store all of the conformance kit's questions in full, and race processes for longer
	LAKELOG_KIT=full $(BIN)/python -m pytest -n 0 $(NIGHT) tests/conformance tests/backends/test_bridge_conformance.py

longer: java $(VENV)/.test ## Run what CI leaves to other days, and longer forms of other tests
	$(PYTEST) $(NIGHT) -m nightly $(if $(PYTEST_ARGS),$(PYTEST_ARGS),tests \
	  $(addprefix --ignore=tests/,integration backends conformance interop/test_one_unity_catalog.py interop/test_unity_catalog_judges.py))

check-dbt: java $(VENV)/.test ## Run dbt's own tests of adapters on lakelog, and compare with what is known to differ
	cd tests && ../$(BIN)/python -m support.dbt_judge

nightly: java $(VENV)/.release ## Run what is too long for CI, with a soak of MINUTES=30, and print one table
	$(BIN)/python scripts/nightly.py --minutes $(MINUTES)

release: java $(VENV)/.release ## Build, check and try all that a release is, but for the upload: URL=https://…
	$(BIN)/python scripts/release.py $(if $(URL),--url $(URL)) $(if $(FILES),--files $(FILES)) $(if $(DOCS),--docs $(DOCS)) $(if $(PYTHONS),--pythons "$(PYTHONS)")

bench: java $(VENV)/.test $(VENV)/.bench ## Measure against deltalake and delta-spark; rewrites benchmarks/RESULTS.md
	$(BIN)/python benchmarks/run.py

bench-quick: java $(VENV)/.test ## Measure ratios in two minutes; fails if one is 1.5 times that of benchmarks/ratios.json
	$(BIN)/python benchmarks/quick.py

jar: java $(VENV)/.test ## Compile the Java half of the bridge to delta-spark into the package
	$(BIN)/python scripts/bridge_jar.py

clean: ## Remove what make made, but for the downloads in .cache
	rm -rf $(VENV) site .demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# `python -m pip` and not `pip`, so that the shebang's length limit never matters.
$(VENV)/.base:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"lakelog needs Python 3.11 or later, and {sys.executable} is {v.major}.{v.minor}. Name another: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo $(VENV)/.test $(VENV)/.bench $(VENV)/.docs $(VENV)/.check $(VENV)/.release: $(VENV)/.%: $(VENV)/.base pyproject.toml
	@echo "installing lakelog and the packages of its group '$*' into $(VENV)"
	$(BIN)/python -m pip install --quiet --editable . --group $*
	@touch $@
