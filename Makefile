# Two commands do everything on a fresh machine, each on its own: make demo, make test.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
DATA ?= $(if $(wildcard ../shared/data),$(abspath ../shared/data))

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs site benchmark clean

help:
	@echo "make demo       install into $(VENV) and run the whole story; leaves a report in demo/"
	@echo "make test       install into $(VENV) and run the tests"
	@echo "make lint       ruff and mypy"
	@echo "make docs       write the generated pages of docs/ anew"
	@echo "make site       build the documentation as a site, in site/"
	@echo "make benchmark  speed and memory beside other tools"

demo: $(VENV)/.installed-neural
	$(BIN)/farfield demo demo

test: $(VENV)/.installed-test
	FARFIELD_REAL_DATA="$${FARFIELD_REAL_DATA:-$(DATA)}" $(BIN)/python -m pytest -n 2 -q

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed-test
	$(BIN)/python docs/generate.py

site: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

benchmark: $(VENV)/.installed-test
	$(BIN)/python benchmarks/runs.py

clean:
	rm -rf $(VENV) demo site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q -c constraints.txt -e .
	touch $@

$(VENV)/.installed-neural: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[neural]"
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install -q -c constraints.txt -e ".[test,lint,neural,docs]"
	touch $@
