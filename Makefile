# `make demo` shows a study; `make test` runs the quick checks; `make test-all` runs all of them.
# The first of them makes .venv with $(PYTHON), which has to be 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# What `make test-lowest` and `make test-newest` run on: the newest Python that starts, pyenv's included.
LOWEST = 3.11
NEWEST = $(firstword $(foreach v,3.15 3.14 3.13 3.12 3.11,\
    $(shell python$(v) -c 'import sys; print(sys.executable)' 2>/dev/null) $(wildcard $(HOME)/.pyenv/versions/$(v)*/bin/python)))
UV := $(BIN)/uv
export UV_PYTHON_DOWNLOADS := never
# The processes that tests start read the byte code of 600 modules; without this, each compiles it again.
unexport PYTHONDONTWRITEBYTECODE
# mypy 2 and later share the work among processes; earlier ones do not read this.
export MYPY_NUM_WORKERS := 2

# Tests of at most about two seconds each, in one process per core; under five minutes on two cores.
QUICK = -m "not slow and not integration" -n logical --maxprocesses 8 --dist loadfile

.PHONY: help demo test test-all test-lowest test-newest lint format bench studies docs install install-test clean

help:
	@echo "make demo      a real study in under a minute"
	@echo "make test      ruff, mypy and the quick tests"
	@echo "make test-all  ruff, mypy and all tests, with those that are slow or start servers and processes"
	@echo "make test-lowest, make test-newest"
	@echo "               the quick tests with the lowest versions that pyproject.toml allows, on Python 3.11,"
	@echo "               and with the newest that there are, on the newest Python at hand"
	@echo "make bench     the table of docs/benchmarks.md"
	@echo "make studies   every study under analysis/studies again, pages and figures"
	@echo "make docs      the manual, into docs/_build, and its manual page"
	@echo "make lint      ruff and mypy only;  make format applies ruff's fixes"
	@echo "make clean     remove what the above made, .venv included"

demo: install
	$(BIN)/simsched demo

test: lint
	$(BIN)/pytest $(QUICK)

test-all: lint
	$(BIN)/pytest

# Environments of their own, resolved by uv: pip cannot choose the lowest versions.
test-lowest: $(UV)
	$(UV) venv --quiet --clear --python $(LOWEST) $(VENV)-lowest
	$(UV) pip install --quiet --python $(VENV)-lowest --resolution lowest-direct --editable ".[test]"
	$(UV) pip list --quiet --python $(VENV)-lowest
	$(VENV)-lowest/bin/pytest $(QUICK) $(PYTEST)

test-newest: $(UV)
	$(UV) venv --quiet --clear --python $(NEWEST) $(VENV)-newest
	$(UV) pip install --quiet --python $(VENV)-newest --upgrade --editable ".[test]"
	$(UV) pip list --quiet --python $(VENV)-newest
	$(VENV)-newest/bin/pytest $(QUICK) $(PYTEST)

lint: install-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install-test
	$(BIN)/python -m analysis.benchmarks

studies: install
	$(BIN)/python -m analysis.studies

docs: $(VENV)/docs.stamp
	$(BIN)/sphinx-build --quiet -W --keep-going -b html docs docs/_build
	$(BIN)/sphinx-build --quiet -W --keep-going -b man docs docs/_build/man docs/manpage/simsched.md

install: $(VENV)/run.stamp
install-test: $(VENV)/test.stamp

# What is compiled; a newer kernel has to be built again.
TYPED = $(shell find simsched -name '*.pxd')
KERNEL = $(TYPED) $(TYPED:.pxd=.py) hatch_build.py

# One stamp an extra: the demo does not wait for the test tools.
$(VENV)/run.stamp: pyproject.toml $(KERNEL) | $(BIN)/python
	@echo "make: installing simsched and its libraries into $(VENV); this takes a minute or two, once" >&2
	$(PIP) install --editable ".[plot]"
	@touch $@

$(VENV)/test.stamp: pyproject.toml $(KERNEL) | $(BIN)/python
	@echo "make: installing simsched, its libraries and the test tools into $(VENV); this takes a minute or two, once" >&2
	$(PIP) install --editable ".[test]"
	@touch $@ $(VENV)/run.stamp

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[docs]"
	@touch $@

$(UV): | $(BIN)/python
	$(PIP) install uv

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "simsched needs Python 3.11 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest demo-results docs/_build build dist .mypy_cache .ruff_cache .hypothesis
