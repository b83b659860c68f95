# Each target does its own set-up: on a fresh machine `make demo` and `make test` are all it takes.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
RUNTIME := .venv/.ready-to-run

# Tests and workers are many short processes: compiled modules are kept, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test check docs matrix site bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

# What is needed to run it, and no tools of developers; with them, nothing more is to install. Modules are
# compiled when they are first imported: most of what is installed never is.
$(RUNTIME): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e .
	touch $(RUNTIME)

demo: $(if $(wildcard $(READY)),$(READY),$(RUNTIME))
	$(BIN)/adverse demo --out demo

# Three on two cores: many tests wait for processes, servers and browsers.
test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

docs: $(READY)
	$(BIN)/python docs/generate.py

matrix: $(READY)
	$(BIN)/python docs/reliability_matrix.py

site: $(READY)
	$(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python bench/mutations.py
	$(BIN)/python bench/equivalence.py
	$(BIN)/python bench/contextual.py
	$(BIN)/python bench/playback.py
	$(BIN)/python bench/scale.py
	$(BIN)/python bench/report_time.py
	$(BIN)/python bench/ap.py
	$(BIN)/python bench/worlds.py
	$(BIN)/python bench/visual_change.py
	$(BIN)/python bench/throughput.py
	$(BIN)/python bench/kill_resume.py --kills 50

clean:
	rm -rf .venv demo site
