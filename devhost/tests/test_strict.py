"""A strategy that breaks every rule is caught, with the name of each; what breaks one: test_outputs, test_node_end."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost import Host, ScriptedModel
from devhost.cli.commands import main

BAD = Path(__file__).parent / "fixtures" / "bad_strategy"
DEVHOST = Path(__file__).parents[1] / "src" / "devhost"
RULES = {
    rule
    for module in DEVHOST.rglob("*.py")
    for rule in re.findall(
        r"\b(?:_found|self\.found|Finding|NodeFailedError)\(\s*\"([a-z-]+)\"", module.read_text(encoding="utf-8")
    )
} | {"message-malformed"}
LOSSES = {"answer-dropped"}
"""What a strategy alone cannot bring about."""
OF_A_TOOL = {"output-schema-invalid", "output-schema-misfit", "variable-missing"}
"""Only a tool that is called directly is compared with its output_schema."""

BROKEN = re.findall(r'^    "([a-z-]+)": \[', (BAD / "strategies" / "bad.py").read_text(encoding="utf-8"), re.MULTILINE)

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host.start(BAD) as host:
        yield host


def test_no_rule_is_left_out(host: Host) -> None:
    """An error that fails the node ends its run."""
    found = set()
    for faults in BROKEN:
        run = host.run("bad", {"query": faults}, model=ScriptedModel.of([{"text": "unused"}]))
        assert run.findings
        found |= {finding.rule for finding in run.findings}
    assert found == RULES - LOSSES - OF_A_TOOL


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_a_finding_is_an_exit_code_under_strict(
    capsys: pytest.CaptureFixture[str], options: list[str], code: int
) -> None:
    where = ["--plugin", str(BAD), "--script", str(BAD / "script.yaml")]
    assert main(["run", *where, "--query", "unfinished-log open-thought", "--json", *options]) == code
    report = json.loads(capsys.readouterr().out)
    assert [finding["rule"] for finding in report["findings"]] == ["log-left-open", "think-left-open"]
    assert report["error"] is None
