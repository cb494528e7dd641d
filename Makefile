# Each command sets everything up first; nothing is done by hand.
#   make view    a network that reverses strings, trained in seconds, in your browser
#   make table   the paper's Table 1, reproduced side by side with the paper's own numbers
#   make test    the tests
#   make docs    the documentation, in docs/_build
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: view table test coverage docs figures screens results clean

view: $(VENV)/.lab
	$(BIN)/softstack train reversal --controller linear
	$(BIN)/softstack view runs/reversal-linear-stack-*/seed-0 --symbols "1 1 0 1 0 0 1"

table: $(VENV)/.lab
	$(BIN)/softstack table

figures: $(VENV)/.lab
	$(BIN)/softstack figures

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

# Takes twice as long as the tests alone.
coverage: $(VENV)/.dev
	$(BIN)/pytest -n 2 --cov --cov-report=term

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
	@echo "Documentation: docs/_build/index.html"

# Needs Chromium, and the trials of `make table`.
screens: $(VENV)/.dev
	$(BIN)/python tools/screens.py

# The published results: what `make table` and `make figures` made, put where the README shows it.
results: $(VENV)/.lab
	rm -rf runs/table1 figures bench
	$(BIN)/softstack table
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
