# `make run` starts Tapgate, `make test` checks a change, `make proofs` runs the slow tests.
# All require only Python 3.11 or newer.
# make picks the fastest Python on your PATH; PYTHON=/path/to/python3 selects another.

PYTHON ?=
SECONDS ?= 3
PROCESSES ?= 4
SEED ?=
CLUSTER ?=
VERSION ?=
UPGRADE ?=
FAULT ?=
REQUESTS ?= 20000
CARDS ?= 30000
ACCOUNTS ?= 1000000
ENTRIES ?= 10000000
LINES ?= 50000
DAY_ENTRIES ?= 1000000
BIN := .venv/bin
PIP := -m pip --quiet --quiet --disable-pip-version-check
# uv is faster than pip: make INSTALL='.venv/bin/uv pip install --python .venv/bin/python'
INSTALL ?= $(BIN)/python $(PIP) install
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-package tapgate-client --no-emit-index-url --no-annotate --custom-compile-command 'make lock'

CHECK_STYLE := $(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && \
	{ $(BIN)/lint-imports >/dev/null || $(BIN)/lint-imports; }

# Cache bytecode: otherwise every test process recompiles all modules and rewrites all assertions.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run cluster two-books check test proofs generators pictures wheels release torture fuzz soak audit bench bench-webhooks bench-proofs bench-finance bench-growth lint docs lock clean
.DELETE_ON_ERROR:

help:
	@echo 'make run           start the gateway on port 8000 and the messenger on 8001, with data in .tapgate'
	@echo 'make cluster       start three gateways on replicated PostgreSQL behind HAProxy; DATA=, DEMO='
	@echo 'make check         check style, types and imports, and run the tests of changed folders; BASE='
	@echo 'make test          check style, types and imports, and run the tests; PROCESSES='
	@echo 'make proofs        run slow tests with complete installations and a browser; PROCESSES='
	@echo 'make generators    install client generators and identity providers that some tests use (needs npm)'
	@echo 'make pictures      take screenshots of every console page into .pictures (needs Chromium)'
	@echo 'make wheels        build the wheels of the current files into dist/, for an image'
	@echo 'make release       build packages, checksums, a bill of materials and notes into dist/; VERSION='
	@echo 'make torture       kill Tapgate under load and check for lost or duplicate payments; ROUNDS=, SEED='
	@echo 'make torture CLUSTER=1  the same with the nodes of a cluster; ROUNDS=, SEED=, FAULT='
	@echo 'make two-books     move money between two installations, killing processes; TRANSFERS=, KILLS=, SEED='
	@echo 'make fuzz          run random tests with all examples, and call every endpoint; REQUESTS=, SEED='
	@echo 'make soak          run every hostile client against both services; SECONDS= per client, SHAPE='
	@echo 'make audit         scan packages for known vulnerabilities and files for secrets'
	@echo 'make bench         compare payments with pgbench; SECONDS= per phase, ROUNDS='
	@echo 'make bench-webhooks  compare payments with and without a webhook; SECONDS=, ROUNDS='
	@echo 'make bench-proofs  compare payments with and without the proof of a card; PAIRS='
	@echo 'make bench-finance  pay a large batch and close a large day beside payments; LINES=, DAY_ENTRIES='
	@echo 'make bench-growth  compare payments on a large and a small database; ACCOUNTS=, ENTRIES='
	@echo 'make lint          check style, types and imports'
	@echo 'make docs          regenerate reference pages, deployment templates, the Postman collection and both clients'
	@echo 'make lock          update all pinned packages to the newest versions'
	@echo 'make clean         remove installed packages and caches; the data in .tapgate is kept'

run: .venv/installed
	@exec $(BIN)/tapgate up

cluster: DATA ?= .tapgate-cluster
cluster: DEMO ?= small
cluster: .venv/cluster/installed
	@exec $(BIN)/python -m tools.cluster --data $(DATA) --demo $(DEMO)

two-books: TRANSFERS ?= 300
two-books: KILLS ?= 12
two-books: .venv/installed
	@exec $(BIN)/python -m tools.two_books --transfers $(TRANSFERS) --kills $(KILLS) \
		$(if $(SEED),--seed $(SEED))

# Checks style, types and imports, and runs the pytest command given as the first argument.
# mypy uses one core, so it runs at the same time as all other checks.
define check_and_test
	@$(BIN)/mypy --no-error-summary & types=$$!; \
		$(CHECK_STYLE) || { kill $$types; exit 1; }; \
		$(1); tests=$$?; \
		wait $$types || { echo 'The types are wrong: make lint' >&2; exit 1; }; \
		exit $$tests
endef

# For the inner loop: tests of the folders that changed since the branch BASE.
check: BASE ?= main
check: .venv/installed-dev
	$(call check_and_test,tests=$$($(BIN)/python tools/changed_tests.py $(BASE)); \
		[ -z "$$tests" ] || $(BIN)/pytest -q -n 2 -m 'not proof' $$tests || [ $$? = 5 ])

# Four processes on two cores, since tests often wait for other processes. The tests start hundreds
# of Python processes, so bytecode is cached even if the environment disables that, and the modules
# are compiled first: otherwise each of the processes would compile all of them.
test: .venv/installed-dev
	@echo 'Checking style, types and imports, and running the tests ...'
	@$(BIN)/python -m compileall -q -j 0 src clients/python/src bench tools
	$(call check_and_test,$(BIN)/pytest -q -n $(PROCESSES) -m 'not proof')

proofs: .venv/installed-dev
	@echo 'Running the proofs ...'
	@$(BIN)/pytest -q -n $(PROCESSES) -m 'proof'

generators: .venv/generators/python.installed .venv/generators/node.installed \
	.venv/generators/canaille.installed

pictures: .venv/installed-dev
	@rm -rf .pictures && mkdir .pictures
	@TAPGATE_PICTURES=.pictures $(BIN)/pytest -q tests/browser
	@# Again with the initial demo data: other tests transfer large amounts.
	@TAPGATE_PICTURES=.pictures $(BIN)/pytest -q tests/browser/test_overview.py
	@cp .pictures/readme/*.png docs/pictures/
	@echo 'Screenshots are in .pictures. Those of the README are also in docs/pictures.'

wheels: .venv/installed
	@for project in . clients/python; do \
		(cd $$project && $(CURDIR)/$(BIN)/python -m hatchling build --target wheel --directory $(CURDIR)/dist); \
	done

# Requires npm and internet access.
release: .venv/installed-dev
	@[ -n "$(VERSION)" ] || { echo 'Name the version: make release VERSION=1.2.3' >&2; exit 1; }
	@$(BIN)/python -m tools.release $(VERSION)

# A run of the cluster has one round for each kind of fault.
torture: ROUNDS ?= $(if $(CLUSTER),,20)
torture: .venv/installed-dev $(if $(CLUSTER),.venv/cluster/installed)
	@PYTHONPATH=tests:. exec $(BIN)/python -m torture$(if $(UPGRADE),.upgrade \
		$(if $(filter next,$(UPGRADE)),,--from $(UPGRADE)),$(if $(CLUSTER),.cluster) \
		$(if $(ROUNDS),--rounds $(ROUNDS))) $(if $(SEED),--seed $(SEED)) $(if $(FAULT),--fault '$(FAULT)')

# Tests that compare random inputs with a model, or that only require defined results for them.
RANDOM_TESTS := $(addprefix tests/,business/finance/general_ledger/test_against_model.py \
	business/payments/wallets/test_statement_totals.py http/api/test_fuzzed_requests.py \
	ledger/test_against_model.py ledger/decisions/test_assessments.py \
	ledger/decisions/test_commission.py \
	messenger/conversation/test_random_conversations.py messenger/routes/test_fuzzed_requests.py)

fuzz: .venv/installed-dev
	@TAPGATE_EXAMPLES=all $(BIN)/pytest -q -n 2 $(RANDOM_TESTS)
	@PYTHONPATH=tests exec $(BIN)/python -m fuzz --requests $(REQUESTS) $(if $(SEED),--seed $(SEED))

soak: SECONDS = 60
soak: .venv/installed-dev
	@PYTHONPATH=tests exec $(BIN)/python -m soak --seconds $(SECONDS) $(if $(SHAPE),--shape $(SHAPE))

# Requires internet access: a package that cannot be looked up is an error.
audit: .venv/installed-dev
	@echo 'Scanning files for secrets ...'
	@$(BIN)/python tools/find_secrets.py
	@echo 'Scanning packages for known vulnerabilities ...'
	@$(BIN)/pip-audit --progress-spinner off --strict --disable-pip \
		--requirement requirements.lock --requirement requirements-dev.lock

bench: ROUNDS ?= 2
bench: .venv/installed
	@$(BIN)/python -m bench.payments --seconds $(SECONDS) --rounds $(ROUNDS) --cards $(CARDS)

bench-webhooks: ROUNDS ?= 3
bench-webhooks: .venv/installed
	@$(BIN)/python -m bench.webhooks --seconds $(SECONDS) --rounds $(ROUNDS) --cards $(CARDS)

bench-proofs: PAIRS ?= 60
bench-proofs: .venv/installed
	@$(BIN)/python -m bench.proofs --pairs $(PAIRS)

bench-finance: .venv/installed
	@$(BIN)/python -m bench.finance --lines $(LINES) --entries $(DAY_ENTRIES)

bench-growth: .venv/installed
	@$(BIN)/python -m bench.growth --accounts $(ACCOUNTS) --entries $(ENTRIES)

lint: .venv/installed-dev
	@echo 'Checking style, types and imports ...'
	@$(CHECK_STYLE)
	@$(BIN)/mypy --no-error-summary

docs: .venv/installed
	@$(BIN)/python -m tools.manual.python_client
	@$(BIN)/python -m tools.manual

lock: .venv/installed-dev
	@$(COMPILE) --upgrade --extra embedded --extra build --output-file requirements.lock pyproject.toml
	@$(COMPILE) --upgrade --extra embedded --extra otel --extra build --extra dev --constraint requirements.lock \
		--output-file requirements-dev.lock pyproject.toml
	@$(COMPILE) --upgrade --extra otel --constraint requirements-dev.lock \
		--output-file deploy/requirements.lock pyproject.toml
	@echo 'patroni[etcd3,psycopg3]' | $(COMPILE) --upgrade \
		--output-file requirements-cluster.lock -
	@echo openapi-python-client | $(COMPILE) --upgrade --output-file requirements-generators.lock -
	@echo 'canaille[oidc,server,front]' | $(COMPILE) --upgrade --output-file requirements-canaille.lock -
	@echo 'Update the minor releases in src/tapgate/runtime/store/postgres_releases.py too.'

clean:
	@rm -rf .venv dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src clients/python tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp file marks an installation step as done until its dependencies change.

.venv/created:
	@python='$(PYTHON)'; python=$${python:-$$(python3 tools/choose_python.py)} && \
		{ $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
			{ echo 'Tapgate requires Python 3.11 or newer: make PYTHON=/path/to/python3' >&2; exit 1; }; } && \
		echo "Creating .venv with $$($$python --version) ($$python) ..." && \
		$$python -m venv .venv
	@touch $@

.venv/installed: .venv/created requirements.lock pyproject.toml clients/python/pyproject.toml
	@echo 'Installing dependencies into .venv ...'
	@$(INSTALL) --require-hashes --requirement requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable clients/python --editable .
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.lock
	@echo 'Installing development dependencies into .venv ...'
	@$(INSTALL) --require-hashes --requirement requirements-dev.lock
	@touch $@

# A separate environment, because openapi-python-client requires another version of typer.
.venv/generators/python.installed: .venv/installed-dev requirements-generators.lock
	@echo 'Installing the Python client generator ...'
	@$(BIN)/python -m venv --clear .venv/generators/python
	@.venv/generators/python/bin/python $(PIP) install \
		--require-hashes --requirement requirements-generators.lock
	@touch $@

# An identity provider for the tests of single sign-on.
.venv/generators/canaille.installed: .venv/installed-dev requirements-canaille.lock
	@echo 'Installing Canaille ...'
	@$(BIN)/python -m venv --clear .venv/generators/canaille
	@$(BIN)/uv pip install --quiet --system-certs --python .venv/generators/canaille/bin/python \
		--require-hashes --requirement requirements-canaille.lock
	@touch $@

# Patroni in a separate environment, with its own versions of shared packages; etcd and HAProxy
# unpacked from Debian's packages, unless they are installed.
.venv/cluster/installed: .venv/installed-dev requirements-cluster.lock
	@echo 'Installing Patroni, etcd and HAProxy into .venv/cluster ...'
	@rm -rf .venv/cluster && $(BIN)/python -m venv .venv/cluster/python
	@$(BIN)/uv pip install --quiet --system-certs --python .venv/cluster/python/bin/python \
		--require-hashes --requirement requirements-cluster.lock
	@$(BIN)/python -m tools.cluster.install .venv/cluster/debian
	@touch $@

.venv/generators/node.installed: .venv/installed-dev tests/generators/package-lock.json
	@echo 'Installing the TypeScript client generator ...'
	@mkdir -p .venv/generators/node
	@cp tests/generators/package.json tests/generators/package-lock.json .venv/generators/node/
	@cd .venv/generators/node && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@
