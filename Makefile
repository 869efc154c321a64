# The commands that a newcomer or a CI job needs. Each target sets up .venv when it is missing or when
# pyproject.toml or requirements/ have changed. PYTHON=... names the interpreter for it.

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
.PHONY: help demo test soak live regress check format docs site snapshots bench compare compiled pure lock sbom news dist clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## run every campaign that ships with harrow
	$(BIN)/harrow run $(CAMPAIGNS)
	@echo
	@echo 'Next, in this shell:'
	@echo '  . $(VENV)/bin/activate              # from now on the shell finds harrow'
	@echo '  harrow run loss-by-hw-truncation   # an acknowledged record is lost'
	@echo '  harrow run standard --verbose      # how available the cluster is while brokers crash'

# Tests start hundreds of processes; with PYTHONDONTWRITEBYTECODE set, each would compile harrow again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

test: $(VENV)/installed-for-tests ## run the tests, in minutes; PYTEST_ARGS="-k shrink" chooses some
	$(PYTEST) -n auto $(PYTEST_ARGS)

# The last round is completed, so this takes a little longer than SOAK_SECONDS.
soak: $(VENV)/installed-for-tests ## try many more seeds and examples, for hours or SOAK_SECONDS=600
	HARROW_SOAK_SECONDS=$(SOAK_SECONDS) $(PYTEST) -n auto -m soak $(PYTEST_ARGS)

# One cluster at a time: tests wait for brokers, which are slow when several clusters share two cores.
RELEASES ?= all
live: $(VENV)/installed-for-tests ## run on real brokers: RELEASES="2.4.1 3.9.2-kraft", or all
	HARROW_LIVE="$(RELEASES)" $(PYTEST) -n 0 tests/live $(PYTEST_ARGS)

regress: $(VENV)/installed ## run the campaigns of failures that were found
	$(BIN)/harrow regress $(if $(GITHUB_ACTIONS),--format github)

check: $(VENV)/installed-for-tests ## run ruff, mypy --strict and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

format: $(VENV)/installed-for-tests ## format the code and make the repairs that ruff can make
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/installed-for-tests ## write the generated tables and pictures into docs/
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.terminal_pictures

# With --strict a broken link is an error. The second command fails if a page loads anything from another site.
site: $(DOCS_TOOLS)/installed ## build the site of docs/ into build/site; a broken link fails
	$(DOCS_TOOLS)/bin/zensical build --clean --strict
	@! grep -rnoE '<(script|img|iframe)[^>]*src="?https?://[^ >]*|<link[^>]*(stylesheet|icon|preconnect)[^>]*https?://[^ >]*' \
		build/site --include='*.html'

snapshots: $(VENV)/installed-for-tests ## rewrite the outputs that tests compare with
	HARROW_WRITE_SNAPSHOTS=1 $(PYTEST) -n auto -q -k snapshots tests/cli tests/scenarios

# These need a commit, results of `harrow conform`, or a release of Kafka, or take a quarter of an hour.
LEFT_OUT := $(addprefix benchmarks/,api_versions.py assessed_cells.py served_clients.py served_tickets.py compare.py conformity.py costs.py known_answers.py)
bench: $(VENV)/installed-for-tests ## measure the speed
	@for benchmark in $(filter-out $(LEFT_OUT),$(wildcard benchmarks/[a-z]*.py)); do \
		$(BIN)/python -m "benchmarks.$$(basename "$$benchmark" .py)" || exit 1; \
	done

COMMIT ?= HEAD
compare: $(VENV)/installed-for-tests ## compare the cost of runs with a commit: COMMIT=HEAD~5
	$(BIN)/python -m benchmarks.compare $(COMMIT)

# When a source changes, harrow runs as plain Python again until the next `make compiled`.
compiled: $(VENV)/installed-for-tests ## compile the core with mypyc, in minutes; needs a C compiler
	$(BIN)/python hatch_build.py
	$(BIN)/harrow --version

pure: ## remove the compiled core
	rm -f src/harrow/harrow__mypyc.*

clean: pure ## remove .venv, builds and caches; results/ stays
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Exactly the versions of requirements/, checked by hash. The build tools come first, so that no build downloads others.
LOCKED := install --require-hashes --no-deps --no-build-isolation --requirement
HERE := install --no-deps --no-build-isolation --editable .

$(VENV)/installed: pyproject.toml requirements/build.txt requirements/run.txt | $(BIN)/python
	@echo 'Installing harrow into $(VENV) ...'
	@$(PIP) $(LOCKED) requirements/build.txt
	@$(PIP) $(LOCKED) requirements/run.txt
	@$(PIP) $(HERE)
	@touch $@

$(VENV)/installed-for-tests: pyproject.toml requirements/build.txt requirements/tests.txt | $(BIN)/python
	@echo 'Installing harrow and the requirements of its tests into $(VENV) ...'
	@$(PIP) $(LOCKED) requirements/build.txt
	@$(PIP) $(LOCKED) requirements/tests.txt
	@$(PIP) $(HERE)
	@touch $@ $(VENV)/installed

# Tools have their own environments, so that their requirements are not among those that they inspect.
$(TOOLS)/installed: requirements/tools.txt | $(BIN)/python
$(DOCS_TOOLS)/installed: requirements/docs.txt | $(BIN)/python
$(TOOLS)/installed $(DOCS_TOOLS)/installed:
	@$(BIN)/python -m venv --clear $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement $<
	@touch $@

# For all platforms and every supported Python. tests.txt comes first, because it constrains the versions in the others.
RESOLVE := $(TOOLS)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11
lock: $(TOOLS)/installed ## lock the newest versions that pyproject.toml allows
	$(RESOLVE) pyproject.toml --extra test --group build --output-file requirements/tests.txt
	$(RESOLVE) pyproject.toml --constraint requirements/tests.txt --output-file requirements/run.txt
	$(RESOLVE) --group build --constraint requirements/tests.txt --output-file requirements/build.txt
	$(RESOLVE) --group tools --output-file requirements/tools.txt
	$(RESOLVE) --group docs --output-file requirements/docs.txt

sbom: $(TOOLS)/installed ## write build/sbom.json: the libraries, as CycloneDX
	$(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file build/sbom.json requirements/run.txt

news: $(TOOLS)/installed ## print the changelog of the files in news/
	$(TOOLS)/bin/towncrier build --draft --version next

# The wheel for every platform; wheels.yml compiles one for each. It is tested as users install it: in a new environment, in a folder outside the checkout.
FRESH := build/fresh
dist: $(VENV)/installed-for-tests $(TOOLS)/installed ## build the wheel and the sdist into dist/, and test them
	rm -rf dist $(FRESH)
	HARROW_PURE=1 $(BIN)/python -m hatchling build --directory dist
	$(TOOLS)/bin/twine check --strict dist/*
	$(BIN)/python -m venv $(FRESH)
	$(FRESH)/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	cd "$$(mktemp -d)" && PATH="$(CURDIR)/$(FRESH)/bin:$$PATH" && harrow --version && \
		harrow new first && harrow run first.yaml && harrow run loss-by-hw-truncation --no-results

# Use the first interpreter that is recent enough and can make a virtual environment: some systems
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
