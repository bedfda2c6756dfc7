# `make demo` and `make test` are all a fresh clone needs; both make their own .venv first.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
# Folder with the public recordings (CONTRIBUTING.md says where to get them); benchmarks on real data need it.
DATA ?= $(CAROM_DATA)

.PHONY: demo quick test lint fuzz bench docs site clean
.DELETE_ON_ERROR:

# Stamps: nothing is installed again until pyproject.toml or constraints.txt change.
$(VENV)/.installed-core: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing carom into $(VENV); the first time this takes some minutes"
	@$(INSTALL) -e .
	@touch $@

# The demo's table has a row for MJX, so it needs that extra too.
$(VENV)/.installed-demo: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing carom into $(VENV); the first time this takes a minute or two"
	@$(INSTALL) -e ".[mjx]"
	@touch $(VENV)/.installed-core $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing carom and what its tests need into $(VENV); the first time this takes some minutes"
	@$(INSTALL) -e ".[dev,mjx,rl,import,view,robot,ray,docs]"
	@touch $(VENV)/.installed-core $(VENV)/.installed-demo $@

demo: $(VENV)/.installed-demo
	$(BIN)/carom demo --out out/demo

# One thread each for two workers: together they use two cores, and more threads would only wait for each other.
# `quick` leaves out what is marked slow; it is meant to stay under 90 seconds on two idle cores.
quick: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Malformed inputs over all readers, flipped bits, kills and full disks. COUNT, FLIPS, KILLS and SEED are options.
COUNT ?= 100000
FLIPS ?= 2000
KILLS ?= 30
SEED ?= 0
GUIDED ?= 1000
FUZZ := PYTHONPATH=tests/helpers OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz

fuzz: $(VENV)/.installed-dev
	-@$(INSTALL) -e ".[fuzz]"
	$(FUZZ)/run.py --count $(COUNT) --seed $(SEED) --seeds out/fuzz-seeds --json out/fuzz-inputs.json
	$(FUZZ)/flips.py --count $(FLIPS) --seed $(SEED) --seeds out/fuzz-seeds --json out/fuzz-flips.json
	! $(BIN)/python -c "import atheris" || for reader in $$($(FUZZ)/run.py --names); do \
		$(FUZZ)/guided.py $$reader --runs $(GUIDED) --seed $$(($(SEED) + 1)) --seeds out/fuzz-seeds || exit 1; done
	$(FUZZ)/kills.py --kills $(KILLS) --seed $(SEED) --json out/fuzz-kills.json
	$(FUZZ)/full_disk.py --json out/fuzz-disk.json

bench: $(VENV)/.installed-dev
	$(BIN)/carom bench distill
	$(BIN)/carom bench impact-accuracy
	$(BIN)/carom bench planning
	$(BIN)/carom bench planning-time
	$(BIN)/carom bench recovery
	$(BIN)/carom bench recovery-strikes
	$(BIN)/carom bench speed
	$(BIN)/carom bench routes
ifneq ($(strip $(DATA)),)
	$(BIN)/carom bench robot-hits --data $(DATA)/robot_hits
	$(BIN)/carom bench toss --data $(DATA)/cube_toss/recordings
	$(BIN)/carom bench graph --data $(DATA)/cube_toss/recordings
else
	@echo "robot-hits, toss and graph were not run: they need real recordings (make bench DATA=FOLDER, or set CAROM_DATA)"
endif

docs: $(VENV)/.installed-core
	$(BIN)/python -m carom.bench.pages

# The documentation, to be opened at out/site/index.html; fails at the first warning.
site: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:
	rm -rf out/demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
