"""--transport, --limit and --strict, as they are given on a command line."""

import json

import pytest

from devhost.cli.commands import main
from support.plugins import PUPPET, TOOLBOX

pytestmark = pytest.mark.usefixtures("lent_plugins")

PLUGIN = ["run", "--json", "--plugin", str(PUPPET), "--script", str(TOOLBOX / "script.yaml")]


def report(capsys: pytest.CaptureFixture[str], *options: str, steps: object) -> tuple[int, dict[str, object]]:
    code = main([*PLUGIN, "--query", json.dumps(steps), *options])
    return code, json.loads(capsys.readouterr().out)


def test_limits_hold(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = report(capsys, "--limit", "line-bytes=10000", steps=[{"say": "x" * 10_000}])
    assert code == 1
    assert "more than 10,000 bytes" in str(shown["error"])


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("patience=3", "--limit: unknown key 'patience'. There are: line-bytes=5242880, launch-seconds=120,"),
        ("run-seconds=soon", "run_seconds: Input should be a valid number"),
        ("line-bytes", "--limit 'line-bytes' is not KEY=VALUE"),
    ],
)
def test_invalid_limits_are_refused(capsys: pytest.CaptureFixture[str], limit: str, words: str) -> None:
    assert main([*PLUGIN, "--limit", limit]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
