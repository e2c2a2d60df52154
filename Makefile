# Everything happens in .venv; a target installs only when what it needs has changed.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: run test test-slow test-browser lint docs bench table codes proof clean

run: $(INSTALLED)  ## fit and certify a model on the shipped COMPAS table, and write its report
	rm -rf results/run
	$(BIN)/fairbits fit compas --max-disparity 0.2 --favourable 0 -o results/run

test: $(INSTALLED) lint  ## style, types and the whole default suite
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(INSTALLED)  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

test-browser: $(INSTALLED)  ## the report in a chromium of this machine; skipped where there is none
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[e2e]'
	$(BIN)/python -m pytest -m browser -rs tests/browser

lint: $(INSTALLED)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

docs: $(INSTALLED)  ## the documentation as a site in build/docs; warnings are errors
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going docs build/docs

bench: $(INSTALLED)  ## speed against other libraries, as ratios in one run on one thread, and docs/speed.md
	$(BIN)/python -m benchmarks

table: $(INSTALLED)  ## the numbers of the README; keeps what it has finished in results/core
	$(BIN)/python -m benchmarks.results

codes: $(INSTALLED)  ## what our best codes reach, certified; keeps what it has finished in results/codes
	$(BIN)/python -m benchmarks.codes

proof: $(INSTALLED)  ## what the certificate is worth on real data; keeps what it has finished in results/proof
	$(BIN)/python -m benchmarks.proof

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[experiments,report,export,dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache results/run build/docs docs/gallery docs/reference
