# The words people type. `make brief` and `make test` do all the set-up that they need.

# The first Python on the PATH that runs and is new enough.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
            $$python -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$python; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
ROOMS := persistence workflow bus mesh workers console
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
COMPILE := $(BIN)/uv pip compile --quiet pyproject.toml --generate-hashes --no-emit-index-url --universal \
           --python-version 3.11 --no-annotate --no-header

.PHONY: brief up test test-fast check static format lint types layers compose lock explore chaos bench clean

brief: $(VENV)/.runtime  ## write today's briefing
	@$(BIN)/jarvis brief

up: $(VENV)/.runtime  ## keep the mesh running in the foreground
	@$(BIN)/jarvis up

test: $(VENV)/.dev  ## all tests, on real servers and real processes
	$(BIN)/python -m pytest -n 2 --dist worksteal $(TESTS)

test-fast: $(VENV)/.dev  ## the unit ring and the contract suites, without a server
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/unit

check: static test  ## everything that CI runs

static: format lint types layers compose

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/pyright

layers: $(VENV)/.dev
	$(BIN)/lint-imports

compose: $(VENV)/.dev
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	@if command -v docker-compose >/dev/null; then docker-compose config --quiet; fi

lock: $(VENV)/.dev  ## pin what pyproject.toml asks for, with hashes
	$(PIP) uv
	$(COMPILE) --upgrade --group build -o requirements/runtime.lock
	$(COMPILE) --upgrade --group dev -o requirements/dev.lock

explore: $(VENV)/.dev  ## at least 20,000 schedules of crashes, lost replies and contenders
	EXPLORE_SCHEDULES=20000 $(BIN)/python -m pytest -n 2 --dist worksteal --timeout 7200 tests/simulation

chaos: $(VENV)/.dev  ## kill -9, frozen connections and lost servers, for a long while
	CHAOS_SIGNALS=100000 $(BIN)/python -m pytest tests/integration/bus/test_chaos.py --timeout 3600
	CHAOS_ROUNDS=5 $(BIN)/python -m pytest -s tests/chaos --timeout 3600

bench: $(VENV)/.dev  ## figures, as ratios against the raw server
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .cache dist

$(BIN)/python:
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null \
	  || { echo "Python 3.11 or later is needed: install it, or name it with make PYTHON=..."; exit 2; }
	@"$(PYTHON)" -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "Python's venv module is missing: install it (on Debian: apt install python3-venv)"; exit 2; }

$(VENV)/.runtime: $(BIN)/python requirements/runtime.lock pyproject.toml
	@echo "Installing (once) ..." >&2
	@$(PIP) --require-hashes -r requirements/runtime.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.lock
	$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@
