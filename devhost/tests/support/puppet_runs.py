"""Runs of the puppet in a host of the test's own, and copies of the puppet with another main.py."""

import json
import shutil
from pathlib import Path

from devhost import Host, Run, ScriptedModel
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET


def perform(host: Host, *steps: JsonObject, turns: list[JsonObject] | None = None) -> Run:
    return host.run("puppet", {"query": json.dumps(steps)}, model=ScriptedModel.of(turns or [{"text": "x"}]))


def failure(run: Run) -> str:
    assert run.error is not None
    return f"{run.error.kind}: {run.error.message}"


def plugin_with_main(folder: Path, main: str) -> Path:
    plugin = folder / "plugin"
    shutil.copytree(PUPPET, plugin)
    (plugin / "main.py").write_text(main, encoding="utf-8")
    return plugin
