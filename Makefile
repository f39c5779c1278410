PYTHON ?= python
# One process a core: more only makes the compiles slower.
WORKERS ?= 2

.PHONY: help setup check format test test-triton test-gpu goldens fuzz bench report

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install irscope and what its development needs
	$(PYTHON) -m pip install -e '.[dev]'

check:  ## Format, lint and type check, changing nothing
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright --pythonpath $$($(PYTHON) -c 'import sys; print(sys.executable)')

format:  ## Format and mend what ruff can mend
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

test:  ## Every test that needs no GPU
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --skip-gpu

test-triton:  ## The tests that compile with Triton, but the longest
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --skip-gpu -m "triton and not newest"

test-gpu:  ## The tests that launch kernels on a GPU
	$(PYTHON) -m pytest --only-gpu

goldens:  ## Write the golden files again
	$(PYTHON) -m pytest --skip-gpu --update-goldens -m golden

fuzz:  ## Search long for what a damaged or hostile file can do (CI runs a few)
	$(PYTHON) -m tests.hostile 3000

bench:  ## Measure the figures of docs/benchmarks.md
	$(PYTHON) -m benchmarks

report:  ## Record an example and show its passes
	$(PYTHON) -m irscope passes examples/softmax.py --changed
