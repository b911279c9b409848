# Everything starts from a bare machine with Python, make and a package registry.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt
PYTEST := $(BIN)/python -m pytest -q -n auto
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-blas test-other-blas browser check lint types layers test-all test-oldest coverage audit mutants bench bench-quick figures docs clean help

help:
	@echo "make demo      choose, fit and predict on bundled data"
	@echo "make test      the tests that need nothing but Python packages"
	@echo "make check     lint, types, layers, the tests, those of numbers with another BLAS kernel,"
	@echo "               and those in a browser: what CI runs"
	@echo "make test-blas the tests with every kernel of OpenBLAS that this processor can run (slow)"
	@echo "make test-all  the full matrices and the oldest supported libraries (slow)"
	@echo "make coverage  which lines the default tests run: at least 95% of them"
	@echo "make audit     known weaknesses of the pinned packages (asks PyPI for its advisories)"
	@echo "make mutants   break 45 lines one at a time and see that the tests notice (slow)"
	@echo "make bench     benchmarks, written to benchmarks/results (slow)"
	@echo "make bench-quick  the same on small sizes, in minutes, nothing written"
	@echo "make figures   put the measured figures into the README and the documentation"
	@echo "make docs      build the documentation as a site, and check that its examples run"

# One stamp for each set of packages, so that a second call costs nothing.
$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.base
	$(PIP) torch==2.13.0
	$(PIP) -e ".[test,torch]"
	@touch $@

$(VENV)/.check: $(VENV)/.test
	$(PIP) -e ".[check]"
	@touch $@

$(VENV)/.browser: $(VENV)/.test
	$(PIP) -e ".[browser]"
	@touch $@

$(VENV)/.bench: $(VENV)/.base
	$(PIP) -e ".[bench]"
	@touch $@

demo: $(VENV)/.base
	$(BIN)/ridgefold demo --force

test: $(VENV)/.test
	$(PYTEST) -m "not full and not browser"
	$(BIN)/python -m pytest -q --doctest-modules src/ridgefold --import-mode=importlib

# What passes with one kernel of OpenBLAS and fails with another depends on rounding. The tests
# themselves refuse to run if the kernel that is asked for is not the one that is loaded.
test-blas: $(VENV)/.test
	@set -e; for kernel in $$($(BIN)/python tests/blas_kernels.py usable); do \
	  echo "with OpenBLAS for $$kernel"; \
	  OPENBLAS_CORETYPE=$$kernel $(PYTEST) -m "not full and not browser"; \
	done

# The folders whose numbers depend on rounding, with one kernel that is not the machine's own.
NUMERIC := $(addprefix tests/,cells contracts crossval exact kernels linalg metric solvers)
test-other-blas: $(VENV)/.test
	@kernel=$$($(BIN)/python tests/blas_kernels.py another); \
	if [ -z "$$kernel" ]; then echo "no other kernel of OpenBLAS here"; else \
	  echo "with OpenBLAS for $$kernel"; \
	  OPENBLAS_CORETYPE=$$kernel $(PYTEST) -m "not full and not browser" $(NUMERIC); \
	fi

lint: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.check
	$(BIN)/mypy

layers: $(VENV)/.check
	$(BIN)/lint-imports

# Needs chromium from the system.
browser: $(VENV)/.browser
	$(BIN)/python -m pytest -q -m browser tests/report

check: lint types layers test test-other-blas browser

test-all: check test-oldest
	$(PYTEST)

# The lower bounds of pyproject.toml, in an environment of their own.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip --disable-pip-version-check install -q \
	  numpy==1.26.4 scipy==1.12.0 scikit-learn==1.6.1 array-api-compat==1.10.0 \
	  typer==0.12.5 rich==13.7.1 "click<8.2" "pytest<9" pytest-xdist hypothesis allpairspy mpmath \
	  "pandas<3" polars==1.0.0 "array-api-strict==2.3" "safetensors==0.4.5" \
	  narwhals==1.40.0 pyarrow==17.0.0 jinja2==3.1.4 matplotlib==3.9.0 "pyparsing<3.3" \
	  "dask[array]==2024.8.0" distributed==2024.8.0 zarr==3.0.8 torch==2.13.0 -e .
	.venv-oldest/bin/python -m pytest -q -n auto -m "not full and not browser"

coverage: $(VENV)/.test
	$(PYTEST) -m "not full and not browser" --cov --cov-report=term:skip-covered

audit: $(VENV)/.base
	$(BIN)/python -m pip --disable-pip-version-check install -q pip-audit
	$(BIN)/python -m pip_audit --no-deps --disable-pip -r constraints.txt

# One wrong line at a time: the tests must notice.
mutants: $(VENV)/.test
	$(BIN)/python tests/mutants.py

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

bench-quick: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py --quick

figures:
	$(PYTHON) benchmarks/summary.py
	$(PYTHON) benchmarks/figures.py

$(VENV)/.docs: $(VENV)/.test
	$(PIP) -e ".[docs]"
	@touch $@

# Doctests and code blocks of the pages, then the site, whose gallery runs the examples.
docs: $(VENV)/.docs
	$(BIN)/python -m pytest -q --doctest-glob="*.md" --ignore=docs/_build README.md CONTRIBUTING.md docs
	$(BIN)/python docs/check_examples.py
	$(BIN)/python -m sphinx -b html -c docs -W --keep-going -q . docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

clean:
	rm -rf $(VENV) .venv-oldest docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
