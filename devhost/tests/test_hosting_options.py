"""--limit, as it is given on a command line."""

import json

import pytest

from devhost.cli.commands import main
from support.plugins import PUPPET, TOOLBOX

pytestmark = pytest.mark.usefixtures("lent_plugins")

PLUGIN = ["run", "--json", "--plugin", str(PUPPET), "--script", str(TOOLBOX / "script.yaml")]


def test_limits_hold(capsys: pytest.CaptureFixture[str]) -> None:
    long = json.dumps([{"say": "x" * 10_000}])
    assert main([*PLUGIN, "--query", long, "--limit", "line-bytes=10000"]) == 1
    assert "more than 10,000 bytes" in json.loads(capsys.readouterr().out)["error"]["message"]


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
