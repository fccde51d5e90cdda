# One environment for everything, with the versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
PEERS := jax pgx mctx open_spiel envpool stable-baselines3 sb3-contrib gymnasium
export OMP_NUM_THREADS = 1
# The tests start many interpreters: those that find bytecode start in half the time.
unexport PYTHONDONTWRITEBYTECODE
STUDY := records=docs/records jobs=2

.PHONY: demo tables test test-python test-engines test-browser test-slow test-long format format-check lint types \
	coverage check bench bench-peers reproduce strength intervals agents storm pictures site site-check dist clean

# Installs rlgames without the tools of contributors.
demo: .venv/rlgames
	$(BIN)/rlgames train game=tictactoe

# docs/configs/, and the tables in docs/games and docs/learners, from the schemas and conf/.
tables: .venv/installed
	$(BIN)/python scripts/docs/tables.py

test: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal

# On Debian's newest Pythons, in a small system in build/pythons: needs root and Debian's mmdebstrap.
test-python: dist
	$(BIN)/python scripts/checks/python_versions.py

# Against other programs and published values: docs/dev/checked.md.
test-engines: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[engines]'
	$(BIN)/python -m pytest -m others

# The page in a browser: Debian's chromium, unless CHROMIUM names another one.
test-browser: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest -m browser

test-slow: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-long: .venv/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

format-check: .venv/installed
	$(BIN)/ruff format --check .

lint: .venv/installed
	$(BIN)/ruff check .

types: .venv/installed
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 rlgames

# The same tests as `make test`, measured: lines that no test runs, also in processes that tests start.
coverage: .venv/installed
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n 2 --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: format-check lint types coverage

bench: .venv/installed
	$(BIN)/python scripts/bench/bench.py

bench-peers: .venv/installed .venv-bench/installed
	$(BIN)/python scripts/bench/bench.py peers

reproduce: .venv/installed
	for study in landy ramesh open_questions hickman connect_zero dedieu_amar; do \
		$(BIN)/rlgames study $$study page=docs/dev/reproductions.md $(STUDY) || exit; \
	done

strength: .venv/installed
	for study in strength exact; do \
		$(BIN)/rlgames study $$study page=docs/dev/strength.md $(STUDY) || exit; \
	done

intervals: .venv/installed
	$(BIN)/python scripts/checks/interval_coverage.py

# The agents that come with rlgames.
agents: .venv/installed
	$(BIN)/rlgames study agents
	for run in outputs/studies/agents/*/[0-9]*; do \
		cp $$run/checkpoints/best.safetensors rlgames/agents/$$(basename $$(dirname $$run)).safetensors; \
	done

storm: .venv/installed
	KILLS=112 $(BIN)/python -m pytest -n 2 -m slow tests/test_storm.py

pictures: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	$(BIN)/python scripts/docs/figures.py
	$(BIN)/python scripts/docs/screenshots.py
	$(BIN)/python scripts/docs/exported_pages.py

.venv/rlgames: pyproject.toml constraints.txt
	@echo "Installing rlgames and 30 packages into .venv: 1.3 GB with the CPU build of torch, 5 GB or more"
	@echo "with the CUDA build that PyPI has for Linux. This takes minutes; docs/install.md avoids CUDA."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

.venv/installed: .venv/rlgames
	@echo "Installing the tools of contributors into .venv: 0.5 GB more"
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

# The peers have versions of their own; a range of torch would bring another build of it.
.venv-bench/installed: constraints-bench.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet -c constraints-bench.txt torch==2.13.0 $(PEERS)
	touch $@

# The source archive, and the wheel that is built from it.
dist: .venv/installed
	rm -rf dist
	$(BIN)/python -m build --no-isolation

site: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[site]'
	$(BIN)/python -m properdocs build --quiet --strict --config-file .properdocs.yml

# Opens pages of the site in Chromium.
site-check: site
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	$(BIN)/python scripts/docs/check_site.py

clean:
	rm -rf .venv .venv-bench build dist .coverage* .pytest_cache .mypy_cache .ruff_cache
