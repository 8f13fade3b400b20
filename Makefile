# `make run` and `make test` do all the set-up that they need. Any setting may be given: make run PORT=8001

PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv/bin

.PHONY: run setup test faults lint format lock messages demo-reset python

run: setup
	@exec $(VENV)/python -m dev.run

setup: python
	@$(PYTHON) -m dev.setup

setup-dev: python
	@$(PYTHON) -m dev.setup --dev

test: setup-dev
	@$(VENV)/python -m dev.browser
	@$(VENV)/python -m pytest

# Kill, freeze and cut off real processes by seeded schedules: make faults COUNT=500 SEED=123
COUNT = 10000
SEED = 1

faults: setup-dev
	@$(VENV)/python -m tests.faults --seed $(SEED) --count $(COUNT)

lint: setup-dev
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-logo
	$(VENV)/djlint --lint --quiet templates

format: setup-dev
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

# Newer versions within requirements*.in: make lock UPGRADE=--upgrade
LOCK = $(VENV)/uv pip compile --quiet --universal --no-header --python-version 3.11 $(UPGRADE)

lock: setup-dev
	$(LOCK) requirements.in -o requirements.lock
	$(LOCK) requirements-dev.in -o requirements-dev.lock

# Collect the texts of pages and errors into the catalogues.
messages: setup-dev
	$(VENV)/pybabel extract -F babel.toml -o var/messages.pot --no-location --omit-header .
	$(VENV)/pybabel update -i var/messages.pot -d app/web/translations -l zh --no-fuzzy-matching --ignore-pot-creation-date

# Empty the demo's tables and load them again; works beside a running `make run`.
demo-reset: setup
	@$(VENV)/python -m dev.command demo reset

python:
	@test -n "$(PYTHON)" || { echo "DraftDesk needs Python 3.11 or newer; none was found on this machine."; exit 1; }
