PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-clusters venv lint bench clean clean-kernels

demo: venv
	$(BIN)/bags demo configs/demo.yaml

test: venv
	$(BIN)/python -m pytest --numprocesses logical --dist loadfile

test-clusters: .venv/clusters
	deploy/slurm/test-cluster install
	deploy/slurm/test-cluster run $(BIN)/python -m pytest tests/clusters -m 'slurm or gateway or tls or kubernetes'

.venv/clusters: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,clusters]'
	touch $@

venv: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: venv
	$(BIN)/python -m tests.benchmarks

clean: clean-kernels
	rm -rf .venv demo-output bench-output experiment-output

clean-kernels:
	find pipeline -name '*.nb[ci]' -delete
