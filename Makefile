# From clone to book. `make help` lists the targets; README.md explains them.

PROFILE ?= quick
SEED    ?= 2024
PORT    ?= 8000
CHAPTER ?= foundations/implicit-bias
VENV    ?= .venv
# The first of these that is Python 3.11 or newer makes the virtual environment.
PYTHON  ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

ifeq ($(filter quick paper,$(PROFILE)),)
  $(error PROFILE must be quick or paper, got '$(PROFILE)')
endif

B     := _build/$(PROFILE)
READY := $(VENV)/.ready
BIN   := $(VENV)/bin
RUN    = $(BIN)/python -m claimbook
UV    := $(BIN)/uv

# The foundations, whose chapters are short, come last: no core waits long for the others.
CHAPTERS  := $(patsubst book/%.md,%,$(shell grep -rl --include='*.md' '^kernelspec:' book | sort))
CHAPTERS  := $(filter-out foundations/%,$(CHAPTERS)) $(filter foundations/%,$(CHAPTERS))
STAMPS    := $(CHAPTERS:%=$(B)/stamps/%.json)
NOTEBOOKS := $(CHAPTERS:%=$(B)/notebooks/%.ipynb)
LEDGER    := $(B)/ledger.json
SITE      := $(B)/html/index.html
PAGES     := _config.yml _toc.yml $(shell find book -type f ! -name '.*' ! -name claims.toml)
TOOLS     := $(wildcard $(addprefix lib/claimbook/,pages/*.py site/*.py static/* templates/*))
RECORDS   := $(wildcard lib/claimbook/*.py lib/claimbook/*.json)

# Chapters that run side by side (make -j) share the cores between their workers.
CORES   = $(shell getconf _NPROCESSORS_ONLN)
JOBS    = $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),1)
WORKERS = $(shell n=$$(( $(CORES) / $(JOBS) )); echo $$(( n > 0 ? n : 1 )))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NUMBA_CACHE_DIR := $(CURDIR)/_build/numba
export MPLCONFIGDIR := $(CURDIR)/_build/matplotlib
export MPLBACKEND := agg
export JAX_COMPILATION_CACHE_DIR := $(CURDIR)/_build/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help book ledger notebooks repeat seeds test lint types unit mutation versions versions-oldest \
  versions-newest serve lab benchmark profile lock clean distclean stamps head

help:
	@echo 'make book [PROFILE=paper]   run all chapters, write the ledger, build the site'
	@echo 'make ledger                 run all chapters and write the ledger, without the site'
	@echo 'make serve                  build the book if need be and open it in a browser'
	@echo 'make lab                    open a chapter in JupyterLab, to rerun and change it'
	@echo 'make test                   lint, types, doctests, unit tests, tests of the built book'
	@echo 'make repeat                 run all chapters again with other workers: the same bytes?'
	@echo 'make seeds SEEDS="1 2 3"    run the quick book at these seeds: which checks fail, how often?'
	@echo 'make mutation               wrong formulas, one at a time: does the ledger refuse each?'
	@echo 'make versions               unit tests with the oldest and newest NumPy, SciPy, ...'
	@echo 'make benchmark              measure speed and memory side by side (installs PyTorch)'
	@echo 'make profile                where do the seconds of the book and of its tests go?'
	@echo 'make lock                   write the lock files anew from pyproject.toml'
	@echo 'make clean                  remove everything generated; make distclean: and $(VENV)'
	@echo
	@echo 'PROFILE=quick|paper  sizes of the chapters: minutes, or those of the sources'
	@echo 'SEED=$(SEED)            root seed of every chapter'
	@echo 'PORT=$(PORT)            where make serve listens (0: any free port)'
	@echo 'CHAPTER=...          what make lab opens ($(CHAPTER))'
	@echo 'PYTHON=$(PYTHON)       makes $(VENV)'
	@echo '-j2                  run chapters side by side'

# ---------------------------------------------------------------------------- environment

# uv needs a third of the time of pip. It does not read pip's configuration, though, which may name
# the only way to the packages: then pip installs them.
LOCKED = --quiet --require-hashes --requirement requirements.lock

$(VENV)/.locked: requirements.lock requirements-uv.lock
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/it' >&2; exit 1; }
	@echo 'environment: installing the locked packages into $(VENV) (a minute or more, once)'
	@start=$$(date +%s) && $(PYTHON) -m venv --clear $(VENV) \
	  && $(BIN)/python -m pip install --quiet --quiet --require-hashes --requirement requirements-uv.lock \
	  && { $(UV) pip install --python $(BIN)/python --compile-bytecode $(LOCKED) \
	    || { echo 'environment: uv failed, trying pip'; $(BIN)/python -m pip install $(LOCKED); }; } \
	  && echo "environment: done in $$(( $$(date +%s) - start )) s"
	@touch $@

$(READY): $(VENV)/.locked pyproject.toml
	@echo 'environment: installing traindyn itself'
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# --------------------------------------------------------------------------------- book

book: $(SITE)
	@echo 'book: $(B)/html is complete; make serve PROFILE=$(PROFILE) opens it'

ledger: $(LEDGER)

# A stamp changes exactly when its chapter has to run again, see lib/claimbook/run/stamps.py.
stamps: $(READY)
	@$(RUN).run.stamps --build $(B) --owner $$PPID --shared requirements.lock \
	  --settings profile=$(PROFILE) seed=$(SEED)

$(STAMPS): stamps
	@:

# No shell stands between make and the chapter (exec): what ends make ends the chapter too.
$(NOTEBOOKS): $(B)/notebooks/%.ipynb: $(B)/stamps/%.json
	@LOKY_MAX_CPU_COUNT=$(WORKERS) NUMBA_NUM_THREADS=$(WORKERS) \
	  exec $(RUN).run.execute book/$*.md --output $@ --profile $(PROFILE) --seed $(SEED) --stamp $<

# The ledger names the commit it was made from; the file changes when the commit does.
head:
	@mkdir -p $(B)
	@{ git rev-parse HEAD 2>/dev/null || echo none; } > $(B)/head.part
	@cmp -s $(B)/head.part $(B)/head || cp $(B)/head.part $(B)/head
	@rm $(B)/head.part

$(B)/head: head
	@:

$(LEDGER): $(NOTEBOOKS) $(B)/head book/claims.toml $(wildcard book/seeds.json) $(RECORDS)
	@$(RUN) build --claims book/claims.toml --notebooks $(B)/notebooks \
	  --profile $(PROFILE) --seed $(SEED) --out $@

$(SITE): $(LEDGER) $(PAGES) $(TOOLS) $(wildcard benchmarks/results.json)
	@$(RUN).site.stage --build $(B)

# The same book from as many workers as the first was not made with, in a folder of its own.
AGAIN = $(B)-again
OTHER = $(if $(filter 1,$(WORKERS)),2,1)

repeat: $(LEDGER)
	@rm -rf $(AGAIN)
	@$(MAKE) --no-print-directory ledger B=$(AGAIN) WORKERS=$(OTHER)
	@$(RUN) compare $(LEDGER) $(AGAIN)/ledger.json

# The quick book at other seeds, each in its folder; what fails is counted, not refused. Runs that
# are there already are not made again.
SEEDS ?= 1 2 3

seeds: $(READY)
	@for seed in $(SEEDS); do \
	  CLAIMBOOK_TALLY=1 TRAINDYN_FIGURES=none $(MAKE) --no-print-directory --keep-going $(SIDE) notebooks \
	    PROFILE=quick B=_build/seeds/$$seed SEED=$$seed || true; done
	@$(RUN) seeds --claims book/claims.toml $(SEEDS:%=_build/seeds/%)

notebooks: $(NOTEBOOKS)

serve: $(SITE)
	@rm -f $(B)/lock  # built: others may build while the server runs
	@$(RUN).site.serve $(B)/html --port $(PORT)

# As on Binder; with one thread for linear algebra, as in the runs of the book.
lab: $(READY)
	@$(RUN).run.lab --output _build/lab --settings _build/lab/.settings
	@JUPYTER_CONFIG_PATH=$(CURDIR)/_build/lab/.settings$${JUPYTER_CONFIG_PATH:+:$$JUPYTER_CONFIG_PATH} \
	  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/jupyter lab _build/lab/$(CHAPTER).ipynb

# --------------------------------------------------------------------------------- tests

# Types are checked beside the first chapters.
test: lint
	@$(MAKE) --no-print-directory $(SIDE) types book PROFILE=quick
	@$(MAKE) --no-print-directory unit

lint: $(READY)
	@echo 'test: style'
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@echo 'test: types'
	@$(BIN)/mypy

# The tests of the book look at the built site of the quick profile. Its chapters run side by
# side also if nobody asked for it: most of them keep one core busy.
SIDE = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell n=$(CORES); echo $$(( n < 4 ? n : 4 ))))

unit: $(READY)
	@$(MAKE) --no-print-directory $(SIDE) book PROFILE=quick
	@echo 'test: doctests, unit tests and tests of the book'
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadscope \
	  $(EVERY)

# The slowest tests run every night, and with NIGHTLY=1.
EVERY = $(if $(NIGHTLY),-m '')

# Wrong formulas, one at a time, in a copy of the library; every process keeps one core busy. First
# those of a list, then as many as NUMBER drawn at random from all lines that chapters reach.
NUMBER ?= 40
mutation: $(READY)
	@LOKY_MAX_CPU_COUNT=1 NUMBA_NUM_THREADS=1 \
	  $(BIN)/python tests/mutation/mutate.py --build _build/mutation --workers $(WORKERS)
	@LOKY_MAX_CPU_COUNT=1 NUMBA_NUM_THREADS=1 \
	  $(BIN)/python tests/mutation/draw.py --build _build/mutation --number $(NUMBER)

# Unit tests with other releases of what the numbers come from: those that pyproject.toml names
# as the oldest, and whatever is newest today; everything else as pip would choose it.
VERSIONED = numpy|scipy|numba|matplotlib

versions: versions-oldest versions-newest

versions-oldest versions-newest: versions-%: $(READY)
	@mkdir -p _build/versions
	@sed -nE 's/^  "($(VERSIONED))>=([0-9.]+)",$$/\1==\2/p' pyproject.toml > _build/versions/oldest.txt
	@test "$$(wc -l < _build/versions/oldest.txt)" -eq 4  # a bound for each
	@: > _build/versions/newest.txt
	@echo 'versions: installing the $* ones into _build/versions/$*'
	@$(UV) venv --quiet --clear --python '$(PYTHON)' _build/versions/$*
	@$(UV) pip install --quiet --python _build/versions/$* \
	  --constraints _build/versions/$*.txt --editable '.[book,test]'
	@$(UV) pip list --quiet --python _build/versions/$* | grep -E '^($(VERSIONED)|jax) '
	@NUMBA_CACHE_DIR=$(CURDIR)/_build/versions/$*/numba OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  _build/versions/$*/bin/python -m pytest --numprocesses auto --dist loadscope \
	  --ignore tests/book -p no:cacheprovider -m '' lib tests

# --------------------------------------------------------------------------------- upkeep

benchmark: $(READY)
	@echo 'benchmark: installing what it compares with'
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[benchmark]' --no-build-isolation
	@$(BIN)/python benchmarks/run.py

# The chapters from nothing, caches of compiled code included, and then the tests.
profile: $(READY)
	@echo 'profile: installing py-spy'
	@$(BIN)/python -m pip install --quiet --quiet --editable '.[profile]' --no-build-isolation
	@rm -rf _build/profile _build/numba _build/jax
	@$(BIN)/python benchmarks/breakdown.py 'the $(PROFILE) book' -- \
	  $(MAKE) --no-print-directory $(SIDE) ledger B=_build/profile
	@$(MAKE) --no-print-directory $(SIDE) book PROFILE=quick
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/breakdown.py 'the tests' -- \
	  $(BIN)/python -m pytest --numprocesses auto --dist loadscope $(EVERY)

COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --upgrade

# What rerunning a chapter needs (Binder) is a part of the whole, at the same versions.
lock: $(READY)
	@echo 'lock: resolving pyproject.toml for all platforms'
	@$(COMPILE) pyproject.toml --extra book --extra test --output-file requirements.lock.part
	@$(COMPILE) pyproject.toml --extra lab --constraint requirements.lock.part \
	  --output-file requirements-lab.lock.part
	@echo uv | $(COMPILE) --output-file requirements-uv.lock.part -
	@for lock in requirements requirements-lab requirements-uv; do mv $$lock.lock.part $$lock.lock; done
	@echo 'lock: requirements.lock, requirements-lab.lock and requirements-uv.lock written'

clean:
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache

distclean: clean
	rm -rf $(VENV)
