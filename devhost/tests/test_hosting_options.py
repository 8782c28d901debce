"""--transport, --limit, --raw and --strict, as they are given on a command line."""

import json
import threading
from dataclasses import fields

import pytest

from devhost.cli.commands import main
from devhost.limits import HostLimits
from support.plugins import PUPPET, TOOLBOX

pytestmark = pytest.mark.usefixtures("lent_plugins")

PLUGIN = ["run", "--json", "--plugin", str(PUPPET), "--script", str(TOOLBOX / "script.yaml")]


def report(capsys: pytest.CaptureFixture[str], *options: str, steps: object) -> tuple[int, dict[str, object]]:
    code = main([*PLUGIN, "--query", json.dumps(steps), *options])
    return code, json.loads(capsys.readouterr().out)


def test_raw_values_are_sent_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--param", "rounds=many", "--param", "mood=odd", "--param", "model=null", "--param", "surprise=[1]"]
    code, shown = report(capsys, "--raw", *given, steps=[{"show_parameters": None}])
    variables = shown["variables"]
    assert isinstance(variables, dict)
    parameters = variables["parameters"]
    assert code == 0
    assert {name: parameters[name] for name in ("rounds", "mood", "model", "surprise")} == {
        "rounds": "many",
        "mood": "odd",
        "model": None,
        "surprise": [1],
    }
    assert "loud" not in parameters  # no default is filled in


def test_limits_hold(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = report(capsys, "--limit", "line-bytes=10000", steps=[{"say": "x" * 10_000}])
    assert code == 1
    assert "more than 10,000 bytes" in str(shown["error"])


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("patience=3", "--limit patience: unknown limit. There are: line-bytes=5242880, launch-seconds=120,"),
        ("run-seconds=soon", "run-seconds='soon' must be a number above 0"),
        ("line-bytes=1.5", "line-bytes=1.5 must be a whole number above 0"),
        ("run-seconds=NaN", "run-seconds=nan must be a number above 0, and 9,223,372,036 at most"),
        (f"line-bytes={10**23}", "must be a whole number above 0, and 1,099,511,627,776 at most"),
        ("line-bytes", "--limit 'line-bytes' is not KEY=VALUE"),
    ],
)
def test_invalid_limits_are_refused(capsys: pytest.CaptureFixture[str], limit: str, words: str) -> None:
    assert main([*PLUGIN, "--limit", limit]) == 2
    assert words in capsys.readouterr().err


def test_the_highest_limits_can_be_kept(capsys: pytest.CaptureFixture[str]) -> None:
    seconds, size = int(threading.TIMEOUT_MAX), 2**40
    limits = [
        f"--limit={field.name.replace('_', '-')}={size if field.type is int else seconds}"
        for field in fields(HostLimits)
    ]
    code, shown = report(capsys, *limits, steps=[{"ask": "x"}])
    assert (code, shown["error"]) == (0, None)
