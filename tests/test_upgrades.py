"""Nodes that were saved with an earlier release load and run with this version, and later nodes read the same outputs.

tests/releases has them by version, as scripts/record_release.py wrote them from the YAML and the code of the release.
"""

import copy
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost import Host, ScriptedModel
from scripts.record_release import recorded_strategy
from scripts.release_runs import Scenario, play, scenarios
from tests.support.pages import section
from tests.support.releases import as_released, broken_promises

ROOT = Path(__file__).parent.parent
RELEASES = ROOT / "tests" / "releases"
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RECORDED = {f"{file.parent.name}/{file.stem}": file for file in sorted(RELEASES.glob("*/gpt5_*.yaml"))}
RUNS = {file.parent.name: yaml.safe_load(file.read_text("utf-8")) for file in sorted(RELEASES.glob("*/runs.yaml"))}
STRATEGIES = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in (ROOT / "strategies").glob("*.yaml")}
VARIABLES = {
    "sys.query": "What is it?",
    "sys.files": [],
    "start.items": [{"title": "A page", "content": "A fact.", "metadata": {"document_id": "1"}}],
}

type Yaml = dict[str, Any]

NEW_TEXTS = {
    "0.1.0": {
        "a cited source": "A fact [1].\n\n**Sources**\n\n- [1] A page",
        "an answer that was cut": "It is\n\n(The answer stops here: it reached the length limit.)",
        "an answer that a filter stopped": (
            "It is\n\n(The answer stops here: the provider's content filter stopped it.)"
        ),
        "no answer": (
            "The model returned no answer. A content filter may have stopped it; asking in other words may help."
        ),
    }
}
"""Texts that differ from those of a release on purpose, by scenario. The changelog says so."""
NEW_ROUNDS = {"0.1.0": {"answered": 1, "length": 1, "content_filter": 1, "empty": 1}}
"""Rounds that are now counted in addition, by how the run ended: 0.1.0 did not count the round of an answer."""

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


@pytest.mark.parametrize("version", RUNS)
def test_every_scenario_is_recorded_of_every_strategy_of_a_release(version: str) -> None:
    strategies = {name.partition("/")[2] for name in RECORDED if name.startswith(f"{version}/")}

    assert set(RUNS[version]) == strategies
    for recorded in RUNS[version].values():
        assert set(recorded) == {scenario.name for scenario in scenarios()}


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
@pytest.mark.parametrize(
    ("version", "strategy"), [(version, strategy) for version, runs in RUNS.items() for strategy in runs]
)
def test_a_node_of_a_release_has_the_outputs_that_it_had(
    version: str, strategy: str, scenario: Scenario, host: Host
) -> None:
    """Outputs may have more entries than those of the release, and no fewer."""
    expected = copy.deepcopy(RUNS[version][strategy][scenario.name])
    expected["text"] = NEW_TEXTS.get(version, {}).get(scenario.name, expected["text"])
    if "rounds" in expected["summary"]:
        expected["summary"]["rounds"] += NEW_ROUNDS.get(version, {}).get(expected["variables"]["stop_reason"], 0)

    played = play(host, strategy, scenario)

    assert played.prompt_faults == []
    assert as_released(played.outputs, expected) == expected


def test_the_command_of_the_page_moves_an_app_of_0_1_0_to_the_plugin_of_today(tmp_path: Path) -> None:
    """0.1.0 was called gpt5_agent_strategies, and a saved node names its plugin."""
    app = (ROOT / "examples" / "workflows" / "start_here.yml").read_text("utf-8")
    old = re.sub(r"\bgpt5_agent([:/])(?=0\.|gpt5_agent)", r"gpt5_agent_strategies\1", app)
    assert old.count("gpt5-agents/gpt5_agent_strategies") == 2
    (tmp_path / "old.yml").write_text(old, "utf-8")
    page = section(ROOT / "docs" / "install.md", "## Upgrade from 0.1.0")
    (command,) = re.findall(r"^ *(sed .+)$", page, re.MULTILINE)

    subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)

    assert (tmp_path / "new.yml").read_text("utf-8") == app


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
