# Each command sets everything up first; nothing is done by hand.
#   make view    a network that reverses strings, trained in seconds, in your browser
#   make table   the paper's Table 1, reproduced side by side with the paper's own numbers
#   make check   ruff, mypy and the core of the tests, in about a minute: while you work
#   make test    ruff, mypy and all tests: before you share it
#   make gpu     on a machine with a GPU: the tests of all that runs on one
#   make docs    the documentation, in docs/_build
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A part of the tests that takes seconds and goes through every package once.
CORE := $(addprefix tests/test_, imports.py memory.py networks.py layer.py steps.py \
	kernels.py::test_scans_on_any_strengths kernels.py::test_a_population_is_one_call \
	grammar.py transducer.py equivalence.py tasks.py where.py sweeps.py questions.py report.py show.py curves.py)
# What runs on a GPU too. Without --gpu no test sees one, so that all are the same on every machine.
GPU := $(addprefix tests/test_, disturbance.py kernels.py layer.py memory.py memory_kernels.py network_contract.py \
	networks.py steps.py)
# Halves of the tests are far apart: two processes seldom compile the same kernel, or train for the same fixture.
PYTEST := $(BIN)/pytest -n 2 --dist worksteal

.PHONY: view table check test gpu lint core tests coverage docs figures screens results clean

view: $(VENV)/.lab
	$(BIN)/softstack train reversal --controller linear
	$(BIN)/softstack view runs/reversal-linear-stack-*/seed-0 --symbols "1 1 0 1 0 0 1"

table: $(VENV)/.lab
	$(BIN)/softstack table

figures: $(VENV)/.lab
	$(BIN)/softstack figures

check: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs 2 lint core

test: $(VENV)/.dev
	$(MAKE) --no-print-directory --jobs 2 lint tests

lint:
	$(BIN)/ruff check .
	$(BIN)/mypy

# The core, and the files of tests that you have changed or added.
core:
	$(PYTEST) $(CORE) $(wildcard $(shell git ls-files --modified --others --exclude-standard "tests/test_*.py"))

# Three processes for two cores: one of them often waits for a process that it started.
tests:
	$(BIN)/pytest -n 3 --dist worksteal

gpu: $(VENV)/.dev
	$(BIN)/pytest -n 4 --dist worksteal --gpu $(GPU)

# Takes twice as long as the tests alone.
coverage: $(VENV)/.dev
	$(PYTEST) --cov --cov-report=term

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
	@echo "Documentation: docs/_build/index.html"

# Needs Chromium, and the trials of `make table`.
screens: $(VENV)/.dev
	$(BIN)/python tools/screens.py

# The published results: what `make table` and `make figures` made, put where the README shows it.
results: $(VENV)/.lab
	rm -rf runs/table1 runs/table200 figures bench
	$(BIN)/softstack table
	$(BIN)/softstack table --trials 200 --out runs/table200
	$(BIN)/softstack figures
	$(BIN)/softstack bench --full
	$(BIN)/python tools/publish.py

$(VENV)/.lab: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[lab]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.lab

clean:
	rm -rf $(VENV) runs figures bench docs/_build
