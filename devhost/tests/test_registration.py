"""A plugin's introduction over TCP: what the daemon demands of it. The rules field by field: test_check_rules.py."""

import shutil
from pathlib import Path

import pytest
import yaml

from devhost import PluginStartError
from devhost.errors import RegistrationError
from devhost.plugin.registration import Registration
from devhost.process.plugin_process import PluginProcess
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET

KEY = {"type": "handshake", "data": {"key": "k"}}
ICON = {"type": "asset_chunk", "data": {"filename": "icon.svg", "data": "PHN2Zy8+", "end": True}}
END: JsonObject = {"type": "end", "data": {}}


def manifest(**changed: object) -> JsonObject:
    data = yaml.safe_load((PUPPET / "manifest.yaml").read_text(encoding="utf-8"))
    return {"type": "manifest_declaration", "data": {**data, **changed}}


def strategies(**changed: object) -> JsonObject:
    """`changed`: fields of the strategy."""
    provider = yaml.safe_load((PUPPET / "provider" / "puppet.yaml").read_text(encoding="utf-8"))
    strategy = yaml.safe_load((PUPPET / "strategies" / "puppet.yaml").read_text(encoding="utf-8"))
    del strategy["output_schema"]  # the SDK leaves it out
    return {"type": "agent_strategy_declaration", "data": [{**provider, "strategies": [{**strategy, **changed}]}]}


def introduce(*messages: JsonObject) -> list[bool]:
    registration = Registration("k")
    return [registration.add(message) for message in messages]


def test_a_plugin_that_registers_and_null_that_counts_as_absent() -> None:
    said = introduce(KEY, manifest(icon_dark=None), strategies(features=None), ICON, END)
    assert said == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"type": "handshake", "data": {"key": "other"}}], "the key is wrong"),
        ([manifest()], "a manifest_declaration message came before the handshake's key"),
        ([KEY, END], "not a message of the handshake at this place: {'type': 'end'"),
        ([KEY, manifest(), END], "no registration transferred"),
        ([KEY, manifest(), {"type": "surprise", "data": {}}], "not a message of the handshake"),
        (
            [KEY, manifest(), strategies(), {"type": "tool_declaration", "data": [{}]}, ICON, END],
            "agent_strategy_declaration cannot share a plugin with tool_declaration",
        ),
        ([KEY, manifest(version="1.0")], "^manifest_declaration: version: '1.0' is not a version such as 0.2.0"),
        (
            [
                KEY,
                manifest(),
                strategies(description={}, identity={"author": "a", "name": "é", "label": {"en_US": "É"}}),
            ],
            r"strategies\[0\]\.identity\.name: .*; strategies\[0\]\.description\.en_US: Field required",
        ),
    ],
)
def test_registrations_that_the_daemon_refuses(messages: list[JsonObject], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        introduce(*messages)


@pytest.mark.processes
def test_rules_that_only_registration_checks(tmp_path: Path) -> None:
    """The SDK and a zip install let a scope pass that the daemon knows nothing of."""
    plugin = tmp_path / "puppet"
    shutil.copytree(PUPPET, plugin)
    file = plugin / "strategies" / "puppet.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("type: string\n    required", "type: string\n    scope: text\n    required"), "utf-8")
    with PluginProcess.start(plugin):
        pass
    with pytest.raises(
        PluginStartError, match=r"refuses to register it: .*parameters\[2\]\.scope: a parameter of type"
    ):
        PluginProcess.start(plugin, transport="tcp")
