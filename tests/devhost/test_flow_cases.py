"""What a case names is read, and what it may not name is refused, before anything is installed or started."""

from pathlib import Path

import pytest
import yaml

from devhost.case import Case
from devhost.case_options import CaseOptions
from devhost.errors import ParameterError, ScriptError
from devhost.flow.document import FlowFile
from devhost.flow.outside import NOTHING, OutsideAccess
from devhost.flow.whole import WholeFlow
from devhost.hosting import ModelOptions
from devhost.limits import HostLimits
from tests.devhost import ROOT

WORKFLOWS = ROOT / "examples" / "workflows"


def read(script: Path | None, file: Path | None = None, *tools: Path, allowed: OutsideAccess = NOTHING) -> Case:
    asked = CaseOptions(file, script=script, tools=tools, plugins=(ROOT,), http=allowed.http, code=allowed.code)
    return asked.read(limits=HostLimits(), models=ModelOptions(scripted=True), environment={})


def file_of(case: Case) -> FlowFile:
    assert isinstance(case.played, WholeFlow)
    return case.played.file


def case(folder: Path, **keys: object) -> Path:
    file = folder / "case.yaml"
    script = {"flow": str(WORKFLOWS / "approval.yml"), "example": "injection", "query": "Hello", **keys}
    file.write_text(yaml.safe_dump({name: value for name, value in script.items() if value is not None}), "utf-8")
    return file


def test_paths_are_seen_from_the_folder_of_the_case() -> None:
    setup = read(WORKFLOWS / "cases" / "approval.yaml")

    assert file_of(setup).path.resolve() == WORKFLOWS / "approval.yml"
    assert [tools.declaration.manifest.name for tools in setup.setups] == ["harbour_hall_office"]


def test_the_command_line_stands_in_the_place_of_what_the_case_names(tmp_path: Path) -> None:
    injection = ROOT / "examples" / "injection"
    setup = read(case(tmp_path, flow="no.yml", example="none"), WORKFLOWS / "approval_form.yml", injection)

    assert file_of(setup).path == WORKFLOWS / "approval_form.yml"


def test_without_a_flow_the_error_says_where_one_can_stand() -> None:
    with pytest.raises(ParameterError, match="there is no flow: give FILE, or a --script that names it"):
        CaseOptions().refuse_strategy()


@pytest.mark.parametrize(
    ("expect", "key"),
    [({"ran": "agnet"}, "ran"), ({"not_run": ["save", "agnet"]}, "not_run"), ({"nodes": {"agnet": {}}}, "nodes")],
)
def test_an_expectation_of_a_node_that_the_flow_does_not_have_is_refused(
    tmp_path: Path, expect: dict[str, object], key: str
) -> None:
    file = case(tmp_path, then=[{"query": "yes", "expect": expect}])

    with pytest.raises(ScriptError, match=f"turn 2: expect: {key}: no node is 'agnet'; the ids are: start, agent, "):
        read(file)


@pytest.mark.parametrize("file", sorted((WORKFLOWS / "cases").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_case_of_the_examples_can_be_played(file: Path) -> None:
    """Its flow passes every check that comes before a start: of strategies, parameters, tools, variables and forms."""
    assert read(file, allowed=OutsideAccess(code=True)).notices == ()


@pytest.mark.parametrize("key", ["models", "knowledge"])
def test_a_node_that_the_flow_does_not_have_is_told(tmp_path: Path, key: str) -> None:
    said = {"models": [{"text": "Hi"}], "knowledge": ["Hi"]}

    with pytest.raises(ScriptError, match=rf"case\.yaml: turn 1: {key}: .*'agnt'"):
        read(case(tmp_path, **{key: {"agnt": said[key]}}))


def test_without_a_script_and_a_key_the_nodes_that_ask_a_model_are_named() -> None:
    with pytest.raises(ParameterError, match=r"no model is configured for node 'Agent' \(agent\): give --script FILE"):
        read(None, WORKFLOWS / "approval.yml", ROOT / "examples" / "injection")


def test_a_chatflow_needs_a_question(tmp_path: Path) -> None:
    setup = read(case(tmp_path, query=None, models={"agent": [{"text": "Hi"}]}))

    with pytest.raises(ParameterError, match="there is no question: give --query TEXT"):
        setup.turns(None)
    assert [turn.query for turn in setup.turns("Hello")] == ["Hello"]
