# The two commands a newcomer needs are `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Tests begin hundreds of processes: where Python is told to keep nothing that it has compiled, each compiles it all.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test ready check unit wheel soak bench schemas format clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	touch $@

# What a user needs, without the tools of development.
.demo/venv/.installed: pyproject.toml
	$(PYTHON) -m venv .demo/venv
	.demo/venv/bin/python -m pip install --quiet --upgrade pip
	.demo/venv/bin/python -m pip install --quiet .
	touch $@

# The KMS that tests talk to. In an environment of its own: beside a newer boto3, pip picks an old version of it.
.ministack/.installed: Makefile
	$(PYTHON) -m venv .ministack
	.ministack/bin/python -m pip install --quiet ministack==1.5.33
	touch $@

# The program that a restored session is continued with. Without npm or its registry, that one test skips.
.harness/.installed: Makefile
	mkdir -p .harness
	-command -v npm > /dev/null && npm install --silent --no-audit --no-fund --no-save --prefix .harness \
	    @anthropic-ai/claude-code@2.1.185
	touch $@

demo: .demo/venv/.installed  ## archive, list, show and restore the sample run
	.demo/venv/bin/python -m pip install --quiet --no-deps --force-reinstall .
	sh examples/demo.sh .demo/venv/bin .demo/run

test: ready check unit wheel  ## all checks, as CI runs them

# Each is made by one process that mostly waits: all at once.
ready:
	$(MAKE) --jobs 3 $(VENV)/.installed .ministack/.installed .harness/.installed

# Beside mypy, which takes one processor, pytest compiles the tests: else each of its processes would compile them all.
check: $(VENV)/.installed  ## format, lint, types, import contracts, schemas
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pytest --collect-only -qq > /dev/null & $(BIN)/mypy; status=$$?; wait; exit $$status
	$(BIN)/lint-imports
	$(BIN)/python tests/generate_schemas.py --check
	$(BIN)/python tests/generate_terraform.py --check

unit: $(VENV)/.installed .ministack/.installed .harness/.installed  ## unit, contract, property and end-to-end tests
	ARCHIVER_CLAUDE_CLI=$(CURDIR)/.harness/node_modules/.bin/claude $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder -m "not soak"

wheel: $(VENV)/.installed  ## the built wheel in a clean environment
	sh tests/check_wheel.sh $(BIN)/python

soak: $(VENV)/.installed .ministack/.installed  ## long fuzz, kill and load runs
	$(BIN)/pytest -m soak

bench: $(VENV)/.installed  ## speed and memory, as ratios within one run
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/pipeline.py
	$(BIN)/python benchmarks/redact.py
	$(BIN)/python benchmarks/workspace_redact.py
	$(BIN)/python benchmarks/age_speed.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/s3.py
	$(BIN)/python benchmarks/listing.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/checkpoint.py
	$(BIN)/python benchmarks/increments.py
	$(BIN)/python benchmarks/append.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/workspace_walk.py
	$(BIN)/python benchmarks/workspace_increments.py

schemas: $(VENV)/.installed  ## write the JSON Schemas from the models
	$(BIN)/python tests/generate_schemas.py

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .demo .ministack .harness $(VENV) dist build
