"""Nodes that were saved with an earlier release load and run with this version.

tests/releases has them by version, as scripts/record_release.py wrote them from the YAML of the release.
"""

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost import Host, ScriptedModel
from scripts.record_release import recorded_strategy
from tests.support.releases import broken_promises

ROOT = Path(__file__).parent.parent
RELEASES = ROOT / "tests" / "releases"
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RECORDED = {f"{file.parent.name}/{file.stem}": file for file in sorted(RELEASES.glob("*/*.yaml"))}
STRATEGIES = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / "strategies").glob("*.yaml")}
VARIABLES = {
    "sys.query": "What is it?",
    "sys.files": [],
    "start.items": [{"title": "A page", "content": "A fact.", "metadata": {"document_id": "1"}}],
}

type Yaml = dict[str, Any]

FUNCTION_CALLING: Yaml = yaml.safe_load((RELEASES / "0.1.0" / "gpt5_function_calling.yaml").read_text("utf-8"))


def changes_since(version: str) -> str:
    newer, released, _ = CHANGELOG.partition(f"\n## [{version}]")
    assert released
    return newer


def saved(name: str) -> Yaml:
    recorded: Yaml = yaml.safe_load(RECORDED[name].read_text("utf-8"))
    return recorded


def test_every_released_version_is_recorded() -> None:
    """The newest version of the changelog may still be in the making: it is recorded once it has a successor."""
    released = re.findall(r"^## \[(\d[^]]*)\]", CHANGELOG, re.MULTILINE)

    assert {folder.name for folder in RELEASES.iterdir()} >= {"0.1.0", *released[1:]}


@pytest.mark.parametrize("name", RECORDED)
def test_no_promise_to_the_nodes_of_a_release_is_broken(name: str) -> None:
    broken = broken_promises(saved(name), STRATEGIES, changes_since(name.partition("/")[0]))
    assert broken == [], "; ".join(broken)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(ROOT) as host:
        yield host


@pytest.mark.e2e
@pytest.mark.parametrize("name", RECORDED)
def test_the_nodes_of_a_release_run(name: str, host: Host) -> None:
    recorded = saved(name)
    for node, settings in recorded["nodes"].items():
        model = ScriptedModel.of([{"text": "Hello"}])
        run = host.run(recorded["strategy"], settings, model=model, variables=VARIABLES)

        assert run.error is None, node
        assert run.outputs.text == "Hello", node


def test_the_script_records_a_node_for_each_way_to_set_it() -> None:
    recorded = recorded_strategy(STRATEGIES["gpt5_function_calling"])

    assert set(recorded["nodes"]) >= {"untouched", "cleared", "typed", "lowest", "highest"}


def released() -> dict[str, Yaml]:
    """A strategy of the release, as it would be declared today if nothing had changed."""
    variables = {name: {"type": kind} for name, kind in FUNCTION_CALLING["variables"].items()}
    parameters = copy.deepcopy(FUNCTION_CALLING["parameters"])
    return {"gpt5_function_calling": {"parameters": parameters, "output_schema": {"properties": variables}}}


def parameter_of(strategy: Yaml, name: str) -> Yaml:
    found: Yaml = next(parameter for parameter in strategy["parameters"] if parameter["name"] == name)
    return found


def renamed(strategy: Yaml) -> None:
    parameter_of(strategy, "context")["name"] = "knowledge"


def changed(name: str, **fields: object) -> Callable[[Yaml], None]:
    return lambda strategy: parameter_of(strategy, name).update(fields)


def new(**fields: object) -> Callable[[Yaml], None]:
    return lambda strategy: strategy["parameters"].append({"name": "extra", "type": "string", **fields})


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (renamed, "context was renamed or dropped"),
        (changed("query", type="any"), "query is of type any, and was of string"),
        (changed("instruction", required=True), "instruction has become required"),
        (changed("context", scope="string"), "context has a narrower scope"),
        (changed("model", scope="tool-call&llm&vision"), "model has a narrower scope"),
        (changed("maximum_iterations", max=50), "maximum_iterations has a narrower range"),
        (changed("maximum_iterations", min=2), "maximum_iterations has a narrower range"),
        (changed("maximum_iterations", default=7), "maximum_iterations has another default, and the changelog"),
        (new(required=True), "extra is new and required"),
        (new(default="yes"), "extra is new and on by default, and the changelog"),
        (lambda strategy: strategy["output_schema"]["properties"].pop("sources"), "the variable sources was dropped"),
    ],
)
def test_a_change_that_would_break_saved_nodes_is_named(change: Callable[[Yaml], object], broken: str) -> None:
    strategies = released()
    change(strategies["gpt5_function_calling"])

    (sentence,) = broken_promises(FUNCTION_CALLING, strategies, "")
    assert sentence.startswith(broken)


def test_another_default_needs_a_line_of_the_changelog() -> None:
    strategies = released()
    parameter_of(strategies["gpt5_function_calling"], "maximum_iterations")["default"] = 7
    changes = "### Changed\n\n- The default of `maximum_iterations`\n  is 7.\n"

    assert broken_promises(FUNCTION_CALLING, strategies, changes) == []
    assert broken_promises(FUNCTION_CALLING, strategies, "") != []
