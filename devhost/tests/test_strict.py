"""A strategy that breaks every rule is caught, with the name of each; what breaks one: test_outputs, test_node_end."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host, Run, ScriptedModel
from devhost.cli.commands import main

BAD = Path(__file__).parent / "fixtures" / "bad_strategy"
DEVHOST = Path(__file__).parents[1] / "src" / "devhost"
RULES = {
    rule
    for module in DEVHOST.rglob("*.py")
    for rule in re.findall(r"(?:_found|Finding|NodeFailedError)\(\s*\"([a-z-]+)\"", module.read_text(encoding="utf-8"))
} | {"message-malformed"}
LOSSES = {"answer-dropped"}
"""What a strategy alone cannot bring about."""
OF_A_TOOL = {"output-schema-invalid", "output-schema-misfit", "variable-missing"}
"""Only a tool that is called directly is compared with its output_schema."""

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(BAD) as host:
        yield host


def run(host: Host, faults: str, *, strict: bool = True) -> Run:
    model = ScriptedModel.of([{"text": "unused"}])
    return host.run("bad", {"query": faults}, model=model, strict=strict)


def test_all_at_once_and_no_rule_is_left_out(host: Host) -> None:
    ended = run(host, "all")
    assert {finding.rule for finding in ended.findings} == RULES - LOSSES - OF_A_TOOL
    assert ended.error is not None
    assert ended.error.kind == "message-malformed"  # what came first; Dify would have stopped there


def test_without_strict_a_node_stops_at_the_first_error(host: Host) -> None:
    ended = run(host, "open-thought variable-text file", strict=False)
    assert [finding.rule for finding in ended.findings] == ["variable-name-reserved", "think-left-open"]


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_a_finding_is_an_exit_code_under_strict(
    capsys: pytest.CaptureFixture[str], options: list[str], code: int
) -> None:
    where = ["--plugin", str(BAD), "--script", str(BAD / "script.yaml")]
    assert main(["run", *where, "--query", "unfinished-log open-thought", "--json", *options]) == code
    report = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in report["findings"]] == ["log-left-open", "think-left-open"]
    assert report["error"] is None
