# make demo           a question, answered with real tools over a real database; no Dify, no key
# make test           the gate: format, lint, types, tests with coverage
# make quick          what breaks first: types, declarations and imports of the plugin, its unit and agent tests
# make lint           one step of the gate; also: types, tests
# make branches       steps beside the gate, by what you touched (CONTRIBUTING.md); also: properties, compat,
#                     processes, examples, flows, browser, wheel
# make format         reformats the code
# make package        dist/gpt5_agent-VERSION.difypkg, checked and installed once; MARKETPLACE=1: by its rules, too;
#                     and dist/workflows/, the example apps for these packages
#                     EXAMPLE=answers packs an example's tools instead
# make docs           writes strategies/*.yaml and the parts of pages and example apps that come from declarations.yaml
#                     in strategies/source/ and from the manifest
# make conversations  writes tests/agent/conversations/ again
# make fuzz           20,000 conversations of an attacker against approvals; FIRST=N begins at another seed
# make setup          makes .venv, as all others do first when it is missing or out of date
# make clean          removes what the others made
# make help           these lines; scripts/test says how long each step takes

.PHONY: demo test format lint types tests quick branches properties processes examples compat browser package wheel flows docs conversations fuzz clean setup help

# Scripted, whatever keys the environment holds: the demo costs nothing, and looks as in docs/first-workflow.md.
demo: setup
	@.venv/bin/python -m devhost run --example helpdesk --scripted
	@echo
	@echo 'The model was scripted. To ask a real one:'
	@echo '  OPENAI_API_KEY=… .venv/bin/devhost run --example helpdesk'
	@echo 'To change something and see what gets better, read devhost/docs/evaluate.md, or open the console:'
	@echo '  .venv/bin/devhost ui'

test: setup
	@scripts/test

# Reformats the code; the gate only checks it.
format: setup
	@.venv/bin/python -m ruff check --fix .
	@.venv/bin/python -m ruff format .

lint types tests quick branches properties processes examples compat browser package wheel flows: setup
	@scripts/test $@

# Writes strategies/*.yaml, docs/parameters.md and the Agent nodes of the example apps from
# strategies/source/declarations.yaml, and repository and contact from manifest.yaml into the pages that show them.
docs: setup
	@.venv/bin/python -m scripts.docs
	@.venv/bin/python scripts/publisher.py
	@.venv/bin/python scripts/example_apps.py

# Writes tests/agent/conversations/ again, after a change in what models read or Dify gets that is meant.
conversations: setup
	@.venv/bin/python -m pytest tests/agent/test_conversations.py --write-conversations

# Ten minutes on an idle machine. A seed that it finds goes into tests/attack/test_attack.py, with the repair.
fuzz: setup
	@.venv/bin/python -m tests.attack 20000 $(FIRST)

clean:
	rm -rf dist .venv .venv-flow .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@scripts/setup

help:
	@sed -n -e 's/^# make/make/p' -e 's/^# \( \)/\1/p' Makefile
