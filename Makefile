# `make help` lists what there is. Everything happens in .venv; nothing outside is touched.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup check format test clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the environment in .venv (nothing to do when it is up to date)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python must be 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | tail -n 1)." \
	    "Name a newer one: make setup PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[dev]'
	@touch $@

check: setup ## look at format, lint, docstrings and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src

format: setup ## put the code into its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

test: setup ## run every test
	$(BIN)/python -m pytest

clean: ## delete the environment and the caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
