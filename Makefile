# make demo   a question, answered with real tools over a real database; no Dify, no key
# make test   the whole gate: format, lint, types, tests with coverage
# Both make .venv first when it is missing or out of date.

.PHONY: demo test format lint types unit heavy e2e docs clean setup

demo: setup
	@.venv/bin/python -m devhost run --example helpdesk

test: setup
	@scripts/test

# format rewrites; the gate only looks
format: setup
	@.venv/bin/python -m ruff check --fix .
	@.venv/bin/python -m ruff format .

lint types unit heavy e2e: setup
	@scripts/test $@

# the parameter tables of README, readme/ and docs/, from the strategy's YAML
docs: setup
	@.venv/bin/python scripts/docs.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@scripts/setup
