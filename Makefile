# `make audits` and `make test` each set up everything they need in .venv first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_READY := .venv-bench/.ready
MUTANTS_READY := .venv-mutants/.ready

# what both ends of the declared versions run: the parts that lean on other packages most
ENDS_EXTRAS := plot,cluster,postgres,verify,keys
ENDS_TOOLS := pytest pytest-xdist hypothesis mpmath psutil click threadpoolctl
ENDS_TESTS := tests/test_public_names.py tests/test_skips.py tests/guarantees tests/dp_attest \
  tests/accountant/book/test_database_files.py tests/accountant/book/test_verification.py \
  $(filter-out %/test_plan_and_fit.py %/test_training.py, \
    $(wildcard tests/accountant/cli/test_*.py)) \
  tests/accountant/formats tests/accountant/losses tests/accountant/serialisation \
  tests/algorithms/base/test_estimators.py tests/algorithms/base/test_hard_thresholding.py \
  tests/algorithms/base/test_non_private.py tests/algorithms/base/test_row_blocks.py \
  tests/audits/attacks/test_floating_point.py tests/audits/runner
# a worker for each core, unless both ends run beside other work: 0 is the process itself
ENDS_WORKERS ?= auto
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

# the newest Python there is; with pyenv also one that is not on the path
NEWEST_PYTHON ?= $(shell for minor in 14 13 12 11; do \
  for one in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python; do \
  "$$one" -c "" 2>/dev/null && echo "$$one" && exit; done; done)

# a worker of the tests has a core: threads of its linear algebra would wait for the others'
tests quick thorough heldout lowest newest: export OPENBLAS_NUM_THREADS = 1
# many tests start processes, which would compile every module again
tests quick thorough lowest newest: export PYTHONDONTWRITEBYTECODE =

.PHONY: audits test style types contracts tests quick thorough heldout lowest newest peers docs site bench mutants table numbers clean

audits: $(READY)  ## audit everything on the embedded data; ARGS="Laplace --seed 7" to choose
	$(BIN)/python -m audits $(ARGS)

test: style types contracts tests  ## style, types, import contracts, tests

style: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports --no-logo

tests: $(READY)
	$(BIN)/python -m pytest -q -n auto --dist loadfile $(ARGS)

quick: $(READY)  ## the tests of one room, and its laws; ROOM=accountant/book
	@chosen="$$($(BIN)/python -m tests.selection.room "$(ROOM)")" && set -f && \
	  $(BIN)/python -m pytest -q -n auto --dist loadfile $$chosen $(ARGS)

# the halves of `make thorough`: the core, and what hangs on it
THOROUGH_core := tests/accountant tests/laws tests/mutants tests/references
THOROUGH_wings := $(addprefix --ignore=,$(THOROUGH_core))

thorough: $(READY)  ## the same laws with more examples, and the slow sweeps; PART=core or PART=wings
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n auto --dist loadfile \
	  -m "slow or examples" $(THOROUGH_$(PART)) $(ARGS)

heldout:  ## what six other libraries test themselves with, asked of ours; ARGS=google to choose
	$(PYTHON) -m venv .venv-heldout
	.venv-heldout/bin/python $(PIP_INSTALL) --editable ".[heldout]"
	.venv-heldout/bin/python -m tests.heldout $(ARGS)

lowest:  ## the tests that lean on other packages, on the lowest declared versions
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) .ci/declared_minima.py > .venv-lowest/minima.txt
	.venv-lowest/bin/python $(PIP_INSTALL) --no-compile \
	  --constraint .venv-lowest/minima.txt --editable ".[$(ENDS_EXTRAS)]" $(ENDS_TOOLS)
	.venv-lowest/bin/python -m pytest -q -n $(ENDS_WORKERS) --dist loadfile $(ENDS_TESTS)

# not the newest, for they are pinned: dp-accounting below 0.7 and lazy-loader below 1
newest:  ## the same tests on the newest Python here and the newest versions
	$(NEWEST_PYTHON) -m venv .venv-newest
	.venv-newest/bin/python $(PIP_INSTALL) --no-compile \
	  --upgrade --upgrade-strategy eager --editable ".[$(ENDS_EXTRAS)]" $(ENDS_TOOLS)
	.venv-newest/bin/python -m pytest -q -n $(ENDS_WORKERS) --dist loadfile $(ENDS_TESTS)

# PyTorch first: any other package would take its newest build
peers:  ## our readers and drop-ins beside the real libraries, and an audited training by Opacus
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python $(PIP_INSTALL) torch==2.13.0
	.venv-peers/bin/python $(PIP_INSTALL) --editable ".[training]"
	.venv-peers/bin/python -m pytest -q -m "slow or not slow" tests/peers
	.venv-peers/bin/python -m examples.audit_opacus --write examples/audit_opacus.txt $(ARGS)

docs: export NO_MKDOCS_2_WARNING = 1
docs:  ## the site in site/: every page, notebook and docstring; a warning or dead link fails
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP_INSTALL) --editable ".[docs]"
	.venv-docs/bin/python -m mkdocs build --strict $(ARGS)
	.venv-docs/bin/python -m docs_site.prose

site: $(READY)  ## build the site, and look at three of its pages in a browser
	$(BIN)/python -m pytest -q -m slow tests/docs/test_site.py

bench: $(READY) $(BENCH_READY)  ## ratios to a peer or a physical limit, measured now and kept in docs/
	$(BIN)/python -m benchmarks --write docs $(ARGS)

mutants: $(MUTANTS_READY)  ## single changes of the code that carries privacy; ARGS="--sample 30" for few
	PYTHONPATH=$(CURDIR) .venv-mutants/bin/python -m tests.mutation $(ARGS)

$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements.txt
	$(BIN)/python $(PIP_INSTALL) --no-build-isolation --no-deps -e .
	touch $(READY)

# Python 3.12 or later, which says cheaply which lines a test runs
$(MUTANTS_READY): requirements.txt pyproject.toml
	$(NEWEST_PYTHON) -m venv .venv-mutants
	.venv-mutants/bin/python $(PIP_INSTALL) --require-hashes -r requirements.txt
	.venv-mutants/bin/python $(PIP_INSTALL) --no-build-isolation --no-deps -e .
	touch $(MUTANTS_READY)

# whose peers need an older scikit-learn than ours
$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python $(PIP_INSTALL) --editable ".[peers]"
	touch $(BENCH_READY)

table: $(READY)  ## write the types of mechanisms, and their table in docs/ with times measured now
	$(BIN)/python -c "from mechanisms.base.package_stub import write_stub; write_stub()"
	$(BIN)/python -c "from mechanisms.base.docs_table import write_table; write_table('docs/mechanisms.md')"
	$(BIN)/python -c "from mechanisms.base.exactness_table import write_cost; write_cost('docs/mechanisms.md')"

numbers: $(READY)  ## run experiments in full, write what the pages show; ARGS="sign-votes-2" to choose
	$(BIN)/python -m tests.docs.numbers $(ARGS)

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-peers .venv-docs .venv-bench .venv-heldout .venv-mutants .mutants site
