# Everything a newcomer or a CI job needs. Each target sets up .venv by itself, once, and again when
# pyproject.toml has changed. PYTHON=... names the interpreter to make it with.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CAMPAIGNS ?= campaigns/library
PYTEST_ARGS ?=
SOAK_SECONDS ?= inf

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test soak live regress check format docs snapshots bench compare compiled pure clean

help:
	@echo 'make demo      run every campaign that ships with harrow'
	@echo 'make test      run the tests: minutes'
	@echo 'make soak      try many more seeds and examples: hours, or SOAK_SECONDS=600'
	@echo 'make live      try real brokers, of all releases or of some: make live RELEASES="2.4.1 3.9.2-kraft"'
	@echo 'make regress   run the corpus of campaigns that failed once'
	@echo 'make check     ruff, mypy --strict and the direction of imports'
	@echo 'make format    let ruff format and repair what it can'
	@echo 'make docs      put tables from the code and pictures of runs into docs/'
	@echo 'make snapshots write anew what tests compare output with'
	@echo 'make bench     measure the speed'
	@echo 'make compare   what runs cost beside a commit: make compare COMMIT=HEAD~5'
	@echo 'make compiled  compile the core with mypyc: needs a C compiler, minutes'
	@echo 'make pure      go back to the plain Python of it'
	@echo 'make clean     remove $(VENV) and caches (results/ stays)'

demo: $(VENV)/installed
	$(BIN)/harrow run $(CAMPAIGNS)
	@echo
	@echo 'Next, in this shell:'
	@echo '  . $(VENV)/bin/activate              # it finds harrow from then on'
	@echo '  harrow run loss-by-hw-truncation   # a record that was acknowledged, and is gone'
	@echo '  harrow run standard --verbose      # how well clients are served while brokers crash'

# Tests start hundreds of processes; with PYTHONDONTWRITEBYTECODE set, each would compile harrow again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

test: $(VENV)/installed-for-tests
	$(PYTEST) -n auto $(PYTEST_ARGS)

# A round that has begun is finished, so it takes a little longer than SOAK_SECONDS.
soak: $(VENV)/installed-for-tests
	HARROW_SOAK_SECONDS=$(SOAK_SECONDS) $(PYTEST) -n auto -m soak $(PYTEST_ARGS)

# One cluster after the other: what is waited for takes its time where brokers have to share two cores.
RELEASES ?= all
live: $(VENV)/installed-for-tests
	HARROW_LIVE="$(RELEASES)" $(PYTEST) -n 0 tests/live $(PYTEST_ARGS)

regress: $(VENV)/installed
	$(BIN)/harrow regress $(if $(GITHUB_ACTIONS),--format github)

check: $(VENV)/installed-for-tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

format: $(VENV)/installed-for-tests
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/installed-for-tests
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.terminal_pictures

snapshots: $(VENV)/installed-for-tests
	HARROW_WRITE_SNAPSHOTS=1 $(PYTEST) -n auto -q -k snapshots tests/cli tests/scenarios

bench: $(VENV)/installed-for-tests
	@for benchmark in $(filter-out benchmarks/compare.py,$(wildcard benchmarks/[a-z]*.py)); do \
		$(BIN)/python -m "benchmarks.$$(basename "$$benchmark" .py)" || exit 1; \
	done

# It measures beside a commit, so it is not one of `make bench`.
COMMIT ?= HEAD
compare: $(VENV)/installed-for-tests
	$(BIN)/python -m benchmarks.compare $(COMMIT)

# Sources that change make it plain Python again, until the next `make compiled`.
compiled: $(VENV)/installed-for-tests
	$(BIN)/python hatch_build.py
	$(BIN)/harrow --version

pure:
	rm -f src/harrow/harrow__mypyc.*

clean: pure
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/installed: pyproject.toml | $(BIN)/python
	@echo 'Installing harrow into $(VENV) ...'
	@$(PIP) install --editable .
	@touch $@

$(VENV)/installed-for-tests: pyproject.toml | $(BIN)/python
	@echo 'Installing harrow and what its tests need into $(VENV) ...'
	@$(PIP) install --editable '.[test]'
	@touch $@ $(VENV)/installed

# An interpreter counts when it is recent enough and can make a virtual environment: some systems
# ship python3 without ensurepip.
$(BIN)/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
		"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
			2>/dev/null || continue; \
		echo "Making $(VENV) with $$python ..."; \
		exec "$$python" -m venv --clear $(VENV); \
	done; \
	echo 'harrow needs Python 3.11 or newer, with the venv module; name one: make PYTHON=/path/to/python' >&2; \
	exit 1
