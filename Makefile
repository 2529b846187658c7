# `make audits` and `make test` each set up everything they need in .venv first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: audits test thorough bench table clean

audits: $(READY)  ## audit everything on the embedded data; ARGS="Laplace --seed 7" to choose
	$(BIN)/python -m audits $(ARGS)

test: $(READY)  ## style, types, import contract, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q -n auto --dist loadfile $(ARGS)

thorough: $(READY)  ## the same laws with more examples, and the slow sweeps
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -m "slow or not slow" $(ARGS)

bench: $(READY)  ## figures against a peer or a physical limit, measured now
	for figure in benchmarks/[a-z]*.py; do $(BIN)/python $$figure || exit 1; done

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(READY)

table: $(READY)  ## write the types of mechanisms, and their table in docs/ with times measured now
	$(BIN)/python -c "from mechanisms.base.package_stub import write_stub; write_stub()"
	$(BIN)/python -c "from mechanisms.base.docs_table import write_table; write_table('docs/mechanisms.md')"

clean:
	rm -rf $(VENV)
