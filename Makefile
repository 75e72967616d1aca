# Every target sets up what it needs: `make test` is all that a fresh machine takes.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The oldest Python and JAX that are supported, which a user of that Python gets.
OLD_VENV := .venv-old
OLD_STAMP := $(OLD_VENV)/.installed
OLD_PYTHON := 3.11
OLD_JAX := 0.10.2

.DEFAULT_GOAL := help
.PHONY: help demo test test-old test-full lint format bench docs clean
.NOTPARALLEL:

# Said even where $(VENV) is there already and nothing asks for another interpreter.
ifneq ($(PYTHON),)
ifeq ($(shell command -v '$(PYTHON)' 2>/dev/null),)
$(error PYTHON=$(PYTHON) is not a program that can be run)
endif
endif

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=/path/to/python3 chooses the interpreter for $(VENV); by default it is the newest that serves"

demo: $(STAMP) ## share a real kernel's grid between the cores, and ask the real compiler
	@$(BIN)/python tools/demo.py

test: $(STAMP) ## run the unit tests and the lit tests
	@$(BIN)/python tools/run_tests.py

test-old: ## run those that tell JAX's releases apart with the oldest one, if its Python is there
	@if PYTHON= tools/find-python $(OLD_PYTHON) >/dev/null; then \
		$(MAKE) --no-print-directory $(OLD_STAMP) && $(OLD_VENV)/bin/python tools/run_tests.py --old; \
	elif [ -n "$$CI" ]; then exit 1; \
	else echo "test-old: skipped"; fi

test-full: $(STAMP) ## the same with the long sweep
	@$(BIN)/python tools/run_tests.py --full

lint: $(STAMP) ## check style, types, dead test directives, generated docs and the tree
	@failed=0; \
	$(BIN)/ruff check --quiet . || failed=1; \
	$(BIN)/ruff format --check --quiet . || failed=1; \
	$(BIN)/mypy --package mosaic_grid || failed=1; \
	$(BIN)/mypy tools test/conftest.py test/unit || failed=1; \
	$(BIN)/python tools/check_filecheck.py || failed=1; \
	$(BIN)/python tools/check_tree.py || failed=1; \
	$(BIN)/python tools/gen_pass_docs.py --check || failed=1; \
	$(BIN)/python tools/gen_diagnostics_docs.py --check || failed=1; \
	exit $$failed

format: $(STAMP) ## format the sources and fix what ruff can fix
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format .

bench: $(STAMP) ## run the benchmarks; each prints ratios
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(STAMP) ## write docs/passes.md and docs/diagnostics.md from the declarations
	@$(BIN)/python tools/gen_pass_docs.py
	@$(BIN)/python tools/gen_diagnostics_docs.py

clean: ## remove everything the other targets made, the environment too
	@rm -rf $(VENV) $(OLD_VENV) .cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Done once, and again when the project's dependencies change. -qq leaves errors visible.
$(STAMP): pyproject.toml
	@set -e; \
	python=$$(tools/find-python); \
	$(BIN)/python -c '' 2>/dev/null || "$$python" -m venv --clear $(VENV); \
	echo "setting up $(VENV) with $$($(BIN)/python --version): over a gigabyte with JAX and libtpu, once"; \
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'; \
	touch $@

$(OLD_STAMP): pyproject.toml
	@set -e; \
	python=$$(PYTHON= tools/find-python $(OLD_PYTHON)); \
	$(OLD_VENV)/bin/python -c '' 2>/dev/null || "$$python" -m venv --clear $(OLD_VENV); \
	echo "setting up $(OLD_VENV) with $$($(OLD_VENV)/bin/python --version) and JAX $(OLD_JAX)"; \
	$(OLD_VENV)/bin/python -m pip install -qq --disable-pip-version-check --editable '.[test]' 'jax[tpu]==$(OLD_JAX)'; \
	touch $@
