# emberlake: build, test and measure. `make help` lists the targets.

# The pinned versions were frozen on 3.11. Any later Python works too: make PYTHON=python3.13 setup
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(if $(shell $(p) -V 2>/dev/null),$(p))) python3)

BIN := .venv/bin
# Tests start hundreds of Python processes. Each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# pip shows its progress on a terminal. A log only gets the sentences below.
QUIET := $(shell [ -t 2 ] || echo --quiet)
PIP := $(BIN)/python -m pip install $(QUIET) -c constraints.txt
FAST := not slow and not bench
# The tests that need no JVM, no peers and no network. `make quick WHAT=tests/unit/scan` runs part of them.
WHAT ?= tests/unit tests/property tests/conformance tests/architecture
BENCH ?= full
# How many processes run tests. The Spark tests all run in one of them.
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test test-all check docs interop torture bench bench-rows bench-row-changes screenshots python-version java object-stores postgres browser

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  %-12s %s\n", $$1, $$2}'

setup: .venv/.stamp .venv-peers/.stamp .build/pypaimon-tests/.stamp java object-stores postgres browser ## Build the virtual environments, the Java judge, the servers and the browser of the tests (only what changed)

demo: ## Run the pipeline on local Spark and leave its warehouse in ./demo; S3=1: on an S3 server that ends with it
	@.ci/require-java
	@$(MAKE) --no-print-directory $(if $(S3),.venv/.stamp-s3,.venv/.stamp-run)
	@$(if $(S3),PYTHON=$(PYTHON) .ci/object-stores one)
	@$(if $(S3),$(BIN)/python .ci/with-s3) $(BIN)/python examples/demo.py demo $(if $(S3),--warehouse s3://lake/demo)

quick: .venv/.stamp ## While editing: tests without a JVM, with few examples per property
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "$(FAST) and not thorough" --hypothesis-profile=quick $(WHAT)

test: setup ## Run all tests except the slow ones, peers and Java included
	$(BIN)/python -m pytest -n $(JOBS) --dist loadscope -m "$(FAST)"

test-all: setup .venv-docs/.stamp ## Run every test, slow ones and measurements included
	@tests/interop/java/build s3
	@tests/interop/java/build old
	$(BIN)/python -m pytest

check: .venv/.stamp ## Lint, formatting, types, layers: fast, no tests of behaviour
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=tests $(BIN)/python -m docs.check_types
	$(BIN)/python -m pytest -q tests/architecture

docs: .venv-docs/.stamp ## Build the site of the documentation into build/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	@echo "build/site/index.html; to search, serve it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/site"

interop: setup ## Run only the tests against pypaimon, pypaimon-rust and Java Paimon
	$(BIN)/python -m pytest -m interop

torture: setup ## Try to break it for MINUTES (10), on a disk and on S3; again: SEED, PLACE, PARTS
	PYTHONPATH=tests $(BIN)/python -m torture --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(PLACE),--place $(PLACE)) $(PARTS)

bench: setup ## Measure emberlake and its peers side by side: BENCH=quick|full
	$(BIN)/python bench --size $(BENCH)

bench-rows: setup .venv-deltalake/.stamp ## Measure operations on rows beside deltalake: BENCH=quick|full
	$(BIN)/python bench --rows --size $(BENCH)

# Only the benchmark of row operations needs it, so `make setup` leaves it out.
.venv-deltalake/.stamp: constraints-peers.txt | python-version
	@echo "Installing deltalake into .venv-deltalake, to measure beside it: 340 MB on disk."
	@$(PYTHON) -m venv .venv-deltalake
	@.venv-deltalake/bin/python -m pip install $(QUIET) deltalake==1.6.6 pyarrow==26.0.1
	@touch $@

bench-row-changes: setup .venv-delta/.stamp ## Measure merges and deletes on Spark beside Delta Lake's connector: BENCH=quick|full
	$(BIN)/python bench --row-changes --size $(BENCH)

# Delta Lake has its own PySpark, and its jars come from Maven.
DELTA := 4.1.0
.venv-delta/.stamp: | python-version
	@echo "Installing PySpark $(DELTA) and Delta Lake into .venv-delta, to measure beside it: 500 MB on disk."
	@$(PYTHON) -m venv .venv-delta
	@.venv-delta/bin/python -m pip install $(QUIET) pyspark==$(DELTA)
	@for name in delta-spark_2.13 delta-storage; do \
	    mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
	        -Dartifact=io.delta:$$name:$(DELTA) -DoutputDirectory=$$PWD/.venv-delta/jars || exit 1; \
	done
	@touch $@

# Two sets in one environment: what emberlake needs to run, then what development needs on top.
.venv/.stamp-run: constraints.txt pyproject.toml | python-version
	@echo "Installing emberlake with PySpark, pyarrow, pandas and the command line into .venv, once:"
	@echo "  about 560 MB to download, 900 MB on disk. PySpark (456 MB) comes as source: unpacking it takes a minute or two."
	@$(PYTHON) -m venv .venv
	@$(PIP) hatchling editables setuptools
	@$(PIP) --no-build-isolation -e '.[spark,cli]'
	@touch $@

.venv/.stamp-s3: .venv/.stamp-run
	@echo "Installing obstore, the client of object stores, into .venv: 16 MB on disk."
	@$(PIP) --no-build-isolation -e '.[spark,cli,s3]'
	@touch $@

.venv/.stamp: .venv/.stamp-run
	@echo "Installing the development tools into .venv: DuckDB, Polars, Lance, obstore, Spark Connect, Starlette, uvicorn, psycopg, Playwright, matplotlib, mypy, pytest, ruff."
	@echo "  About 310 MB to download, 940 MB on disk."
	@$(PIP) --no-build-isolation -e '.[pandas,polars,duckdb,spark,connect,lance,s3,rest,sql,server,postgres,cli,ui,dev,bench]'
	@touch $@

# The site needs nothing of emberlake, and no test but one needs it.
.venv-docs/.stamp: constraints-docs.txt | python-version
	@echo "Installing MkDocs and its theme into .venv-docs, to build the site: 25 MB to download, 165 MB on disk."
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install $(QUIET) -c constraints-docs.txt mkdocs-material
	@touch $@

# pypaimon pins an old pyarrow, so the peers never share an environment with emberlake.
.venv-peers/.stamp: constraints-peers.txt | python-version
	@echo "Installing pypaimon and pypaimon-rust into .venv-peers, to test against them: 1.3 GB on disk."
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install $(QUIET) -c constraints-peers.txt pypaimon pypaimon-rust pylance
	@touch $@

# The newest release of pypaimon with its tests, for the server that they talk to. Its libraries are those of .venv-peers.
.build/pypaimon-tests/.stamp: constraints-pypaimon-tests.txt .venv-peers/.stamp
	@rm -rf .build/pypaimon-tests
	@.venv-peers/bin/python -m pip install $(QUIET) -c constraints-pypaimon-tests.txt --no-deps --target .build/pypaimon-tests pypaimon
	@touch $@

java: .venv/.stamp
	@.ci/require-java
	@.ci/require-java judge
	@tests/interop/java/build

object-stores: | python-version
	@PYTHON=$(PYTHON) .ci/object-stores

postgres:
	@.ci/postgres

browser:
	@.ci/browser

screenshots: .venv/.stamp browser ## Take the pictures of docs/ui.md and docs/notebooks.md again
	EMBERLAKE_SCREENSHOTS=write $(BIN)/python -m pytest -q tests/ui/test_screenshots.py tests/ui/test_notebook_pictures.py

python-version:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "emberlake needs Python 3.11 or newer, found: $$($(PYTHON) -V 2>&1). Name one with: make PYTHON=/path/to/python3.11 setup" >&2; exit 1; }
