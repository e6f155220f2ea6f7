# `make run` starts everything, `make test` proves everything. Both need Python 3.11 or newer and
# nothing else. The fastest one on the PATH is used; name another with PYTHON=/path/to/python3.

PYTHON ?=
SECONDS ?= 3
SEED ?=
REQUESTS ?= 20000
CARDS ?= 10000
ACCOUNTS ?= 1000000
ENTRIES ?= 10000000
BIN := .venv/bin
PIP := -m pip --quiet --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command 'make lock'

# Every process of a test would compile all modules again, and rewrite the assertions of all tests.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run test generators pictures torture fuzz audit bench bench-growth lint docs lock clean
.DELETE_ON_ERROR:

help:
	@echo 'make run           start gateway and messenger on 127.0.0.1, ports 8000 and 8001, data in .tapgate'
	@echo 'make test          check the style and the types, then run the tests'
	@echo 'make generators    install the client generators that some tests run; needs npm for TypeScript'
	@echo 'make pictures      photograph every page of the console into .pictures; needs a Chromium'
	@echo 'make torture       kill it under load and count what was lost or doubled; ROUNDS=, SEED='
	@echo 'make fuzz          call every endpoint with whatever its description allows; REQUESTS=, SEED='
	@echo 'make audit         look for known holes in the packages and for secrets in the files'
	@echo 'make bench         measure payments against pgbench; SECONDS= of a phase, ROUNDS= of phases'
	@echo 'make bench-growth  measure payments among much data against little; ACCOUNTS=, ENTRIES='
	@echo 'make lint          check the style and the types only'
	@echo 'make docs          write docs/api and docs/access.md again, after an endpoint has changed'
	@echo 'make lock          pin the newest versions of all packages'
	@echo 'make clean         remove what was installed and cached; the data in .tapgate stays'

run: .venv/installed
	@exec $(BIN)/tapgate up

# Three processes on two cores: much of a test is waiting for other processes. The tests start
# hundreds of Python processes, so bytecode is cached even if the environment turns that off.
test: lint
	@echo 'Running the tests ...'
	@$(BIN)/pytest -q -n 3

generators: .venv/generators/python.installed .venv/generators/node.installed

pictures: .venv/installed-dev
	@rm -rf .pictures && mkdir .pictures
	@TAPGATE_PICTURES=.pictures $(BIN)/pytest -q tests/browser
	@# Once more, of the demo as it is at first: other stories move large sums.
	@TAPGATE_PICTURES=.pictures $(BIN)/pytest -q tests/browser/test_overview.py
	@cp .pictures/readme/*.png docs/pictures/
	@echo 'Look into .pictures; those of the README are also in docs/pictures.'

torture: ROUNDS ?= 20
torture: .venv/installed-dev
	@PYTHONPATH=tests exec $(BIN)/python -m torture --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

fuzz: .venv/installed-dev
	@PYTHONPATH=tests exec $(BIN)/python -m fuzz --requests $(REQUESTS) $(if $(SEED),--seed $(SEED))

# Needs the internet: a package that could not be looked up is an error, not a pass.
audit: .venv/installed-dev
	@echo 'Looking for secrets in the files ...'
	@$(BIN)/python tools/find_secrets.py
	@echo 'Looking up known holes of the packages ...'
	@$(BIN)/pip-audit --progress-spinner off --strict --disable-pip \
		--requirement requirements.lock --requirement requirements-dev.lock

bench: ROUNDS ?= 2
bench: .venv/installed
	@$(BIN)/python -m bench.payments --seconds $(SECONDS) --rounds $(ROUNDS) --cards $(CARDS)

bench-growth: .venv/installed
	@$(BIN)/python -m bench.growth --accounts $(ACCOUNTS) --entries $(ENTRIES)

lint: .venv/installed-dev
	@echo 'Checking style, types and imports ...'
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports

docs: .venv/installed
	@$(BIN)/tapgate manual docs/api docs/access.md

lock: .venv/installed-dev
	@$(COMPILE) --upgrade --extra build --output-file requirements.lock pyproject.toml
	@$(COMPILE) --upgrade --extra build --extra dev --constraint requirements.lock \
		--output-file requirements-dev.lock pyproject.toml
	@echo openapi-python-client | $(COMPILE) --upgrade --output-file requirements-generators.lock -

clean:
	@rm -rf .venv dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below make each step happen once, and again when what it depends on has changed.

.venv/created:
	@python='$(PYTHON)'; python=$${python:-$$(python3 tools/choose_python.py)} && \
		{ $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
			{ echo 'Tapgate needs Python 3.11 or newer: make PYTHON=/path/to/python3' >&2; exit 1; }; } && \
		echo "Creating .venv with $$($$python --version) ($$python) ..." && \
		$$python -m venv .venv
	@touch $@

.venv/installed: .venv/created requirements.lock pyproject.toml
	@echo 'Installing what Tapgate needs into .venv ...'
	@$(BIN)/python $(PIP) install --require-hashes --requirement requirements.lock
	@$(BIN)/python $(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.lock
	@echo 'Installing what its tests need into .venv ...'
	@$(BIN)/python $(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

# Not in .venv itself: openapi-python-client needs another version of typer.
.venv/generators/python.installed: .venv/installed-dev requirements-generators.lock
	@echo 'Installing the generator of Python clients ...'
	@$(BIN)/python -m venv --clear .venv/generators/python
	@.venv/generators/python/bin/python $(PIP) install \
		--require-hashes --requirement requirements-generators.lock
	@touch $@

.venv/generators/node.installed: .venv/installed-dev tests/generators/package-lock.json
	@echo 'Installing the generator of TypeScript clients ...'
	@mkdir -p .venv/generators/node
	@cp tests/generators/package.json tests/generators/package-lock.json .venv/generators/node/
	@cd .venv/generators/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@
