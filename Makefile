# Everything starts from nothing but make and a Python with venv: each target makes the environment it needs.
PYTHON ?= python3
PYTEST_ARGS ?=

BIN := .venv/bin
RUNTIME := .venv/runtime.stamp
DEVELOP := .venv/develop.stamp
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: demo
demo: $(RUNTIME) ## Render the shipped catalog for both clusters into out/
	@rm -rf out/home out/airgap
	$(BIN)/render build catalog --platform platform.yaml --out out/home
	$(BIN)/render build catalog --platform platform-airgap.yaml --out out/airgap
	@echo "One service of each, as Flux would see it:"
	@ls out/home/apps/podinfo out/airgap/apps/podinfo

.PHONY: test
test: $(DEVELOP) ## Run all tests that need nothing from outside this repository
	$(BIN)/python -m pytest --quiet --numprocesses 2 --ignore tests/data --ignore tests/real $(PYTEST_ARGS)

.PHONY: lint
lint: $(DEVELOP) ## Check style and format with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: types
types: $(DEVELOP) ## Check types with mypy, strictly
	$(BIN)/mypy

.PHONY: check
check: lint types test ## Run lint, types and test

.PHONY: data
data: $(DEVELOP) ## Run the tests on the corpora of ../shared (or RENDER_SHARED)
	$(BIN)/python -m pytest --quiet --numprocesses 2 tests/data $(PYTEST_ARGS)

.PHONY: real
real: $(DEVELOP) ## Run the tests on the real kubectl and helm, which are fetched first
	$(BIN)/python .ci/real.py $(PYTEST_ARGS)

# With `testpaths` rather than a path, syrupy also removes goldens that are no longer rendered.
.PHONY: goldens
goldens: $(DEVELOP) ## Write goldens/ anew; read the diff before you commit it
	$(BIN)/python -m pytest --quiet -o testpaths=tests/test_goldens.py --snapshot-update

.PHONY: schemas
schemas: $(RUNTIME) ## Write render/model/*.json from the models
	$(BIN)/python -m render.model.schema

.PHONY: docs
docs: $(DEVELOP) ## Write the generated parts of the documentation
	$(BIN)/python -m render.docs

.PHONY: compiled
compiled: $(DEVELOP) ## Install render, compiled to machine code, into .venv/compiled
	$(BIN)/python .ci/compiled.py --install .venv/compiled

.PHONY: test-compiled
test-compiled: $(DEVELOP) ## Run the tests on the compiled modules
	$(BIN)/python .ci/compiled.py --ignore tests/data --ignore tests/real $(PYTEST_ARGS)

.PHONY: data-compiled
data-compiled: $(DEVELOP) ## Run the tests on the corpora of ../shared (or RENDER_SHARED) on the compiled modules
	$(BIN)/python .ci/compiled.py tests/data $(PYTEST_ARGS)

# In under three minutes, when the compiled modules are there.
.PHONY: bench
bench: compiled ## Time the compiled render against its peers (RENDER_HELM, RENDER_KUBECTL, RENDER_MAKEJINJA)
	RENDER_COMMAND=$(CURDIR)/.venv/compiled/bin/render $(BIN)/python benchmarks/run.py --n 3 100 1000 --runs 7

.PHONY: constraints
constraints: ## Write constraints.txt with the newest versions of everything
	$(PYTHON) .ci/constraints.py

.PHONY: clean
clean: ## Remove the environment and everything that was made
	rm -rf .venv .cache out build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=…")'
	$(PYTHON) -m venv .venv

$(RUNTIME): pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	@touch $@

$(DEVELOP): pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[test,lint,check]'
	@touch $@ $(RUNTIME)
