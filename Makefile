PYTHON ?= python
# One process a core: more only makes the compiles slower.
WORKERS ?= 2
# What test-next has pip install: the newest release or pre-release, or the path of a wheel.
TRITON ?= triton

.PHONY: help setup check format test test-triton test-next test-gpu exhaustive goldens docs site fuzz bench report

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install irscope and what its development needs
	$(PYTHON) -m pip install -e '.[dev]'

check:  ## Format, lint and type check, changing nothing
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright --pythonpath $$($(PYTHON) -c 'import sys; print(sys.executable)')

format:  ## Format, and fix what ruff can fix
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

test:  ## Every test that needs no GPU
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --skip-gpu

test-triton:  ## The tests that compile with Triton, but the longest; HALF=1 or 2: every second one, or the others
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --skip-gpu $(if $(HALF),--half $(HALF)) -m "triton and not newest"

test-next:  ## The tests that compile, under the newest Triton, a pre-release too, or TRITON=PATH.whl
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && trap 'exit 1' INT TERM && next="$$folder/bin/python" && \
	$(PYTHON) -m venv "$$folder" && \
	"$$next" -m pip install --quiet -e '.[test]' && \
	"$$next" -m pip install --quiet --pre --upgrade $(TRITON) && \
	{ "$$next" -m irscope doctor || true; } && \
	$(MAKE) test-triton PYTHON="$$next"

test-gpu:  ## The tests that launch kernels on a GPU
	$(PYTHON) -m pytest --only-gpu

exhaustive:  ## All cases that the everyday tests sample: takes hours
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal -m exhaustive

goldens:  ## Write the golden files again
	$(PYTHON) -m pytest --skip-gpu --update-goldens -m golden

docs:  ## Write docs/api.md from docstrings, the diagram of the packages, and the notebooks
	$(PYTHON) -m tests.reference

site:  ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

fuzz:  ## Search at random for hostile files and broken properties, at length (CI runs the same few cases each time)
	$(PYTHON) -m tests.hostile --jobs $(WORKERS)
	for round in 1 2 3 4 5; do \
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --skip-gpu -m hypothesis --hypothesis-profile search || exit 1; done
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal -m exhaustive tests/flows/test_odd_scripts.py

bench:  ## Measure the figures of docs/benchmarks.md
	$(PYTHON) -m benchmarks

report:  ## Record an example and show its passes
	$(PYTHON) -m irscope passes examples/softmax.py --changed
