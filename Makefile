# Each target sets up .venv by itself; the only needs are make and python3 >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-slow test-newer test-part test-package lint docs docs-links bench clean

demo: $(VENV)/.demo
	$(BIN)/convexboost demo

# Each worker gets a contiguous half of the tests, so that what a file shares is made once, and takes over from
# the other at the end.  One thread each for BLAS and OpenMP: more would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(VENV)/.test
	$(PYTEST) -m "not slow" --doctest-modules tests src
	NUMBA_DISABLE_JIT=1 $(PYTEST) -q tests/kernels tests/core/test_sums.py

test-slow: $(VENV)/.test
	$(PYTEST) -m slow tests

# A part of the tests with a newer Python, in an environment of its own, where the machine has one.
NEWER ?= $(firstword $(wildcard $(HOME)/.pyenv/versions/3.13*/bin/python) $(shell command -v python3.13))

test-newer:
ifeq ($(NEWER),)
	@echo "there is no Python 3.13 on this machine: the tests with a newer Python were not run"
else
	$(MAKE) test-part PYTHON=$(NEWER) VENV=$(VENV)-newer
endif

test-part: $(VENV)/.test
	$(PYTEST) -q -m "not slow" --doctest-modules tests/test_one_file.py src

# The wheel and the sdist, each in a clean environment of its own, with this Python and a newer one.
test-package: $(VENV)/.venv
	$(BIN)/python -m pip install --quiet "build>=1.2"
	$(BIN)/python tests/packaging/try_package.py $(PYTHON) $(NEWER)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, in docs/_build/html: examples are executed, warnings are errors, and every link inside must lead somewhere.
docs: $(VENV)/.docs
	rm -rf docs/api/generated
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# The links to other hosts, which `make docs` counts but does not ask: needs the network.
docs-links: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -D plot_gallery=0 -b linkcheck docs docs/_build/links

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run_all.py

# What each target needs, installed once (again when pyproject.toml changes).
$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "convexboost needs Python 3.11 or newer, " + sys.executable + " is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV) || (echo "could not make a virtual environment: on Debian, apt-get install python3-venv" && exit 1)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.demo: $(VENV)/.venv pyproject.toml
	@echo "installing convexboost into $(VENV) (about a minute, once)"
	$(BIN)/python -m pip install --quiet -e ".[all]"
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.bench: $(VENV)/.demo
	@echo "installing the peers (LightGBM, XGBoost, CatBoost, interpret) into $(VENV)"
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(VENV)/.lint: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-newer docs/_build docs/api/generated docs/auto_examples
