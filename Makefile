# The commands of daily work; `make help` lists them. CONTRIBUTING.md says when to use which.

VENV ?= .venv-test
PYTHON ?= python3
BIN := $(VENV)/bin
# Workers of the tests, one share of the slow ones, and the room that `test-room` tests.
WORKERS ?= 2
SHARE ?= 1/20
ROOM ?= formats

.DEFAULT_GOAL := help
.PHONY: help setup test test-room lint format types slow ci structure docs goldens screens figures debts benchmarks wheel

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/pytest:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --editable '.[test]'

setup: $(BIN)/pytest  ## make the environment .venv-test with floatlab (editable) and all that the tests need

test: setup  ## run the default tests
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-room: setup  ## run the tests and doctests of one room: make test-room ROOM=reduce
	$(BIN)/python -m pytest -q -n $(WORKERS) $(wildcard tests/$(ROOM) tests/test_$(ROOM).py) $(wildcard floatlab/$(ROOM) floatlab/$(ROOM).py)

lint: setup  ## check style, formatting and the contracts of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: setup  ## format the code, and repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup  ## check types
	$(BIN)/mypy

slow: setup  ## run one share of the slow tests: make slow SHARE=3/20
	$(BIN)/python -m pytest -q -n $(WORKERS) -m slow --share $(SHARE)

ci:  ## run all that continuous integration runs (about 20 minutes; makes .venv-test anew)
	.ci/run

structure: setup  ## print how large each room is, and how much of the package one command goes through
	$(BIN)/python -m benchmarks.structure

docs: setup  ## write the examples and pictures of the documentation anew
	$(BIN)/python -m tests.test_documents

goldens: setup  ## write the expected outputs of the command line anew
	$(BIN)/python -m tests.golden.test_golden

screens: setup  ## write the expected screens of the explorer and its pictures anew
	$(BIN)/python -m tests.tui.test_golden

figures: setup  ## draw the figures of docs/training.md anew (minutes)
	$(BIN)/python -m benchmarks.training_figures --into docs/images

debts: setup  ## take off tests/house_debts.py what is no longer true
	$(BIN)/python -m tests.test_house
	$(BIN)/ruff format tests/house_debts.py

benchmarks: setup  ## measure start-up, arrays and reductions beside other libraries (minutes)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/arrays.py --markdown
	$(BIN)/python benchmarks/reductions.py

wheel: setup  ## build a wheel into dist/
	$(BIN)/pip wheel --no-deps --wheel-dir dist .
