# `make demo` shows a study; `make test` checks everything that is quick; `make test-all` checks the rest too.
# The first of them makes .venv with $(PYTHON), which has to be 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test test-all lint format bench studies docs install install-test clean

help:
	@echo "make demo      a real study in under a minute"
	@echo "make test      ruff, mypy and every quick test"
	@echo "make test-all  the same with the slow tests"
	@echo "make bench     the benchmark table of the README"
	@echo "make studies   every study under analysis/studies again, pages and figures"
	@echo "make docs      the manual, into docs/_build"
	@echo "make lint      ruff and mypy only;  make format applies ruff's fixes"
	@echo "make clean     remove what the above made, .venv included"

demo: install
	$(BIN)/simsched demo

test: lint
	$(BIN)/pytest -m "not slow"

test-all: lint
	$(BIN)/pytest

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
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

install: $(VENV)/run.stamp
install-test: $(VENV)/test.stamp

# One stamp an extra: the demo does not wait for the test tools.
$(VENV)/run.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[plot]"
	@touch $@

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[test]"
	@touch $@ $(VENV)/run.stamp

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	$(PIP) install --editable ".[docs]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "simsched needs Python 3.11 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) demo-results docs/_build build dist .mypy_cache .ruff_cache .hypothesis
