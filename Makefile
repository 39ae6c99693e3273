# make demo    a finished study, then a run of a real model   make check   lint and types
# make test    the fast tests, 10 CPU minutes                 make test-all  all tests, most of an hour
# make build   sdist and wheel in dist/                       make docs    the site in site/
# make gallery finished pages of every wing in gallery/
# make pictures  what the pages say that commands print, and the example's page again
# make clean   remove what these made, but not .venv and the logs

VENV := .venv
BIN := $(VENV)/bin
# Compiling all of 120 packages costs a minute; Python compiles what it imports.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --no-compile -c constraints.txt
# uv, where there is one, is faster; pip takes over where uv fails, since it does not read pip's settings of an index.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv pip install --quiet --python $(BIN)/python -c constraints.txt)
# pip warns of indexes and of folders without its own entries; an error is shown, and ends make.
INSTALL = $(if $(UV),$(UV) -e '$(WHAT)' || )$(PIP) -e '$(WHAT)' 2> $(VENV)/pip.txt || { cat $(VENV)/pip.txt; exit 1; }
MAPPED := introspect_tasks evalawareness_tasks preference_tasks building solvers scorers datasets

.DEFAULT_GOAL := demo
.PHONY: demo test test-all check lint types build docs gallery pictures clean

demo: $(VENV)/.installed
	@echo
	@echo "1 of 2: a finished study from its logs (examples/logs: five simulated models, and SmolLM2-135M as a judge)"
	@$(BIN)/selfprobe report examples/logs --out logs/example
	@echo "Open that page in a browser; examples/report/index.html is the same one, made earlier."
	@echo
	@echo "2 of 2: a run of a real model on this machine: SmolLM2-135M predicts its own words for five questions"
	@$(BIN)/selfprobe fetch-model
	@mkdir -p logs
	@$(BIN)/inspect eval introspect_tasks/kth_word.py --model embedded/smollm2 --limit 5 --cache 1M --log-dir logs/demo \
		--display plain > logs/demo.txt 2>&1 || { cat logs/demo.txt; exit 1; }
	@$(BIN)/selfprobe check logs/demo
	@echo
	@echo "The plumbing works. SmolLM2-135M mostly copies the example in the prompt, so its scores mean nothing more."
	@echo "Browse the run:  source $(BIN)/activate; inspect view --log-dir logs/demo"
	@echo "Run the tests:   make test"

# One thread a worker: more would only wait for one another, and spin.
test test-all: $(VENV)/.dev
	@$(BIN)/selfprobe fetch-model
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(TIER)

test-all: TIER := --runslow

check: lint types

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/inspect-evals-lint introspect_tasks evalawareness_tasks preference_tasks building solvers scorers selfprobe

# mypy knows nothing of the mapped folders, so it looks at a tree of links in which the package is whole.
types: $(VENV)/.dev build/types
	cd build/types && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache

.PHONY: build/types
build/types:
	@rm -rf build/types && mkdir -p build/types/selfprobe
	@ln -s $(CURDIR)/selfprobe/* $(addprefix $(CURDIR)/,$(MAPPED)) build/types/selfprobe/

# Warnings are errors: a dead link, a page that the navigation lacks, a request to another host.
docs: $(VENV)/.docs build/types
	$(BIN)/python docs/build_site.py

# Finished pages of every wing, in gallery/; some minutes.
gallery: $(VENV)/.dev
	@$(BIN)/selfprobe fetch-model && $(BIN)/selfprobe fetch-model all-MiniLM-L6-v2
	$(BIN)/python examples/gallery.py gallery

# The pages' own commands print the blocks of text under them; some minutes.
pictures: $(VENV)/.dev
	@$(BIN)/selfprobe fetch-model
	@rm -rf build/pictures
	$(BIN)/python docs/retake.py build/pictures
	$(BIN)/python examples/make.py
	@echo "Tables of docs/statistics.md: bench/verdict.py, gate.py, faults.py (hours), then docs/parts.py"

build: $(VENV)/.dev
	@rm -rf dist selfprobe/selfprobe.egg-info
	$(BIN)/python -m build --quiet
	@ls -l dist

clean:
	rm -rf build dist site gallery .cache selfprobe/selfprobe.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(VENV)/.installed: WHAT := .
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing selfprobe into $(VENV) (about 120 packages; a minute or two)"
	@$(INSTALL)
	@touch $@

$(VENV)/.dev: WHAT := .[dev,mechanisms,embeddings]
$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing selfprobe and what its tests and checks need into $(VENV) (torch among it; a few minutes)"
	@$(INSTALL)
	@# Hundreds of tests start a process, and where Python may write no bytecode each would compile for seconds.
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null 2>&1 || true
	@touch $(VENV)/.installed $@

$(VENV)/.docs: WHAT := .[docs]
$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@$(INSTALL)
	@touch $(VENV)/.installed $@

# PYTHON=… chooses another one; Debian's needs the package python3-venv.
$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
		$$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		echo "Making $(VENV) with $$($$python --version)"; \
		exec $$python -m venv $(VENV); \
	done; \
	echo "No Python 3.11 or newer with venv found: install one, or name it with make PYTHON=/path/to/python" >&2; \
	exit 1
