# Everything a newcomer or a CI job needs. Each target sets up .venv by itself, once, and again when
# pyproject.toml or requirements/ have changed. PYTHON=... names the interpreter to make it with.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CAMPAIGNS ?= campaigns/library
PYTEST_ARGS ?=
SOAK_SECONDS ?= inf
TOOLS := build/tools
DOCS_TOOLS := build/docs-tools

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test soak live regress check format docs site snapshots bench compare compiled pure lock sbom news clean

help:
	@echo 'make demo      run every campaign that ships with harrow'
	@echo 'make test      run the tests: minutes'
	@echo 'make soak      try many more seeds and examples: hours, or SOAK_SECONDS=600'
	@echo 'make live      try real brokers, of all releases or of some: make live RELEASES="2.4.1 3.9.2-kraft"'
	@echo 'make regress   run the corpus of campaigns that failed once'
	@echo 'make check     ruff, mypy --strict and the direction of imports'
	@echo 'make format    let ruff format and repair what it can'
	@echo 'make docs      put tables from the code and pictures of runs into docs/'
	@echo 'make site      build the site of docs/ into build/site; a broken link fails'
	@echo 'make snapshots write anew what tests compare output with'
	@echo 'make bench     measure the speed'
	@echo 'make compare   what runs cost beside a commit: make compare COMMIT=HEAD~5'
	@echo 'make compiled  compile the core with mypyc: needs a C compiler, minutes'
	@echo 'make pure      go back to the plain Python of it'
	@echo 'make lock      choose the newest versions of all libraries that pyproject.toml allows'
	@echo 'make sbom      write build/sbom.json, the libraries that `make demo` installs, in CycloneDX'
	@echo 'make news      show the changelog that the files in news/ make'
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

# Strict: zensical fails at a link that leads nowhere. The second command fails when a page would load something from elsewhere.
site: $(DOCS_TOOLS)/installed
	$(DOCS_TOOLS)/bin/zensical build --clean --strict
	@! grep -rnoE '<(script|img|iframe)[^>]*src="?https?://[^ >]*|<link[^>]*(stylesheet|icon|preconnect)[^>]*https?://[^ >]*' \
		build/site --include='*.html'

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

# Exactly the versions of requirements/, each with its hash, and none that a build would fetch by itself: what builds comes first.
LOCKED := install --require-hashes --no-deps --no-build-isolation --requirement
HERE := install --no-deps --no-build-isolation --editable .

$(VENV)/installed: pyproject.toml requirements/build.txt requirements/run.txt | $(BIN)/python
	@echo 'Installing harrow into $(VENV) ...'
	@$(PIP) $(LOCKED) requirements/build.txt
	@$(PIP) $(LOCKED) requirements/run.txt
	@$(PIP) $(HERE)
	@touch $@

$(VENV)/installed-for-tests: pyproject.toml requirements/build.txt requirements/tests.txt | $(BIN)/python
	@echo 'Installing harrow and what its tests need into $(VENV) ...'
	@$(PIP) $(LOCKED) requirements/build.txt
	@$(PIP) $(LOCKED) requirements/tests.txt
	@$(PIP) $(HERE)
	@touch $@ $(VENV)/installed

# Tools have environments of their own: what they need is no part of what they look at.
$(TOOLS)/installed: requirements/tools.txt | $(BIN)/python
$(DOCS_TOOLS)/installed: requirements/docs.txt | $(BIN)/python
$(TOOLS)/installed $(DOCS_TOOLS)/installed:
	@$(BIN)/python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement $<
	@touch $@

# For all platforms and every Python that harrow runs on. The same versions everywhere, so tests.txt comes first.
RESOLVE := $(TOOLS)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11
lock: $(TOOLS)/installed
	$(RESOLVE) pyproject.toml --extra test --group build --output-file requirements/tests.txt
	$(RESOLVE) pyproject.toml --constraint requirements/tests.txt --output-file requirements/run.txt
	$(RESOLVE) --group build --constraint requirements/tests.txt --output-file requirements/build.txt
	$(RESOLVE) --group tools --output-file requirements/tools.txt
	$(RESOLVE) --group docs --output-file requirements/docs.txt

sbom: $(TOOLS)/installed
	$(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file build/sbom.json requirements/run.txt

news: $(TOOLS)/installed
	$(TOOLS)/bin/towncrier build --draft --version next

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
