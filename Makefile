# Verbs only; what they do is in .make/, manage.py and docker-compose.yml. Options go into ARGS:
#   make demo ARGS="--no-serve --json"      make test ARGS="-k bundle -x"

python := .venv/bin/python
.DEFAULT_GOAL := help
.PHONY: help setup demo serve test lint doctor up down smoke-model
export PYTHON

help: ## say what there is
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: ## find a Python, make .venv, install from the lock
	@./.make/setup

demo: setup ## a whole run on the bundled seeds, then the web page
	@$(python) manage.py demo $(ARGS)

serve: setup ## web, workers and beat on this machine
	@$(python) manage.py serve $(ARGS)

test: setup ## all tests that this machine can run
	@./.make/test $(ARGS)

lint: setup ## format, lint, floors and types, looking only
	@$(python) -m ruff format --check . && $(python) -m ruff check . && .venv/bin/lint-imports && $(python) -m mypy

doctor: setup ## what works here, and what to do about what does not
	@$(python) manage.py doctor $(ARGS)

up: ## the same with Docker Compose: PostgreSQL, Redis, web, worker, beat
	@./.make/up

down: ## stop what `make up` started; the data stay
	@docker compose down

smoke-model: setup ## a small real model through doctor, solver and harness
	@$(python) .make/smoke_model.py
