PYTHON ?= python3
BIN := .venv/bin

# Next to the links, new links would take the compiled kernels with them.
export NUMBA_CACHE_DIR := $(CURDIR)/.venv/kernels
# The networks' compiled code, too: four fifths of the CPU of their tests.
export JAX_COMPILATION_CACHE_DIR := $(CURDIR)/.venv/networks
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES := -1
# Compiled modules, too: where this is set, each process would compile them anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-fresh test-dates test-long test-experiments test-all test-portable mutants test-oldest test-newest test-elsewhere test-clusters cluster-packages venv generated lint docs bench bench-page chaos clean clean-kernels FORCE

demo: venv
	$(BIN)/bags demo configs/demo.yaml

# As many workers as cores: a thread that spins for work takes the time of others.
TESTS := test test-fresh test-dates test-long test-experiments test-all test-portable
$(TESTS): export OMP_WAIT_POLICY = passive
$(TESTS): export OPENBLAS_THREAD_TIMEOUT = 4
# Small networks are compiled for longer than they run: these take 40 % of that time.
$(TESTS): export XLA_FLAGS = --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
# Freed memory stays for the next arrays: half of the page faults of tests that fit models.
$(TESTS): export MALLOC_TOP_PAD_ = 16777216
test: venv
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile --no-loadscope-reorder $(if $(ALL),-m 'not ($(ON_CLUSTERS) or packaging)' --durations=50)

# What takes a second of CPU or more: clusters and jobs in processes of their own, writers that die before
# each of their writes, jobs from end to end, levels over many draws, every value for every parameter.
test-long: venv
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile --no-loadscope-reorder -m 'long and not experiments'

# All but the two cheapest, each run at small scale: the tables of kept results are in `test`.
test-experiments: venv
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile -m experiments tests/jobs/experiments

# Other draws than every other run has: the seed is printed first, and TESTS_SEED= repeats it.
test-fresh: export TESTS_SEED := $(or $(TESTS_SEED),$(shell date +%s))
test-fresh: venv
	@echo "TESTS_SEED=$(TESTS_SEED)"
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile --no-loadscope-reorder -m 'not ($(ON_CLUSTERS) or packaging)' \
		tests/contract $$(grep --recursive --files-with-matches --include='test_*.py' 'from hypothesis import' tests)

# What draws values or reads the clock, on three dates in three time zones; needs the command faketime.
test-dates: venv
	$(BIN)/python -m tests.dates --numprocesses logical --dist loadfile

ON_CLUSTERS := slurm or gateway or tls or kubernetes or accounts or browser

# These three in one run, `make test ALL=1` as in .ci/run: tests are collected once, and what a file
# makes for tests of several of the three (stores, models, workers) is made once.
test-all:
	$(MAKE) test ALL=1

# As on machines of other kinds: other kernels of OpenBLAS, Numba's code for any processor, other cores.
test-portable: venv
	$(BIN)/python -m tests.portable

# What share of small faults the tests find, by package: into docs/mutants.jsonl. MUTANTS=, SEED=.
mutants: export OMP_WAIT_POLICY = passive
mutants: export OPENBLAS_THREAD_TIMEOUT = 4
mutants: venv
	$(BIN)/python -m tests.mutants --reach --without '$(ON_CLUSTERS)' --mutants $(or $(MUTANTS),300) --seed $(or $(SEED),0)

# The core with the oldest dependencies that pyproject.toml allows, in .venv/oldest, and with the newest.
test-oldest: venv
	$(BIN)/python -m tests.oldest

test-newest: venv
	$(BIN)/python -m tests.oldest --newest

# The core without what Windows and macOS lack: flock, an exchange of names, forks, owners of files.
test-elsewhere: export OMP_WAIT_POLICY = passive
test-elsewhere: export OPENBLAS_THREAD_TIMEOUT = 4
test-elsewhere: venv
	$(BIN)/python -m tests.elsewhere

test-clusters: .venv/clusters cluster-packages
	deploy/slurm/test-cluster run $(BIN)/python -m pytest tests/clusters -m '$(ON_CLUSTERS)'

cluster-packages:
	deploy/slurm/test-cluster install

# uv takes a sixth of pip's time. pip, where it alone is told of an index of packages. Modules are
# compiled when they are first imported: to compile all 20,000 takes six times as long as the rest.
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) \
	|| $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1)

.venv/clusters: .venv/ready
	$(call install,--constraint constraints.txt --editable '.[clusters]')
	touch $@

venv: .venv/ready

.venv/installed: pyproject.toml setup.py constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(call install,--constraint constraints.txt --editable '.[dev]')
	@# The text files in it are read, and nothing is imported: it asks for an older numba.
	$(call install,--constraint constraints.txt --no-deps aeon)
	touch $@

# The editable install is a tree of links: a new or renamed module needs new links.
MODULES := $(shell find pipeline jobs configs -name '*.py' -o -name '*.pyi' -o -name '*.yaml' -o -name '*.html' -o -name keys.txt | sort)

.venv/ready: .venv/installed FORCE
	@echo '$(MODULES)' | cmp --silent - $@ || { $(call install,--no-deps --editable .) && echo '$(MODULES)' > $@; }

generated: venv
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.stubs
	$(BIN)/python -m bagbasis.jobs.configs.printed configs

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.words
	$(BIN)/python -m pytest -m packaging tests/test_packaging.py

# Whatever Sphinx warns of is an error, a link that leads nowhere among it; tutorials run. All pages are
# read anew: of pages that it keeps, Sphinx forgets the entries of the index, which the search shows.
docs: venv
	$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --keep-going docs build/docs
	$(BIN)/python -m tests.docs_search build/docs/searchindex.js

bench: venv
	$(BIN)/python -m tests.benchmarks

# All suites, or SUITES="floor peers": also into docs/bench.jsonl, and from there into docs/performance.md.
bench-page: venv
	$(BIN)/python -m tests.benchmarks --keep $(SUITES)

# Five minutes, or MINUTES=, or HOURS=; as root with full disks and lost networks, too.
chaos: venv
	$(BIN)/python -m tests.chaos $(if $(HOURS),--hours $(HOURS)) $(if $(MINUTES),--minutes $(MINUTES))

clean: clean-kernels
	rm -rf .venv build docs/api docs/commands docs/configuration.md docs/experiments docs/gallery docs/pictures/made demo-output bench-output experiment-output

clean-kernels:
	rm -rf .venv/kernels .venv/networks
