# One environment for everything, with the versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS = 1

.PHONY: demo test test-engines test-slow check bench reproduce strength pictures clean

demo: .venv/installed
	$(BIN)/rlgames train game=salvo board=4 shots=2
	$(BIN)/rlgames eval "$$(ls -td outputs/salvo/*/ | head -n 1)" trace=1

test: .venv/installed
	$(BIN)/python -m pytest -n 2

test-engines: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[engines]'
	$(BIN)/python -m pytest tests/test_cross_play.py

test-slow: .venv/installed
	$(BIN)/python -m pytest -m slow

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

bench: .venv/installed
	$(BIN)/python scripts/bench_play.py
	$(BIN)/python scripts/bench.py

reproduce: .venv/installed
	$(BIN)/python scripts/reproduce.py

strength: .venv/installed
	$(BIN)/python scripts/strength.py

pictures: .venv/installed
	$(BIN)/python scripts/screenshots.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache
