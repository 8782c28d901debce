"""A plugin's introduction over TCP: what the daemon demands of it, field by field."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost import PluginStartError
from devhost.errors import RegistrationError
from devhost.plugin.declaration import PluginDeclaration
from devhost.plugin.registration import Registration
from devhost.process.plugin_process import PluginProcess
from devhost.protocol.wire import JsonObject
from support.plugins import PUPPET

KEY = {"type": "handshake", "data": {"key": "k"}}
ICON = {"type": "asset_chunk", "data": {"filename": "icon.svg", "data": "PHN2Zy8+", "end": True}}
END: JsonObject = {"type": "end", "data": {}}


def manifest() -> JsonObject:
    data = yaml.safe_load((PUPPET / "manifest.yaml").read_text(encoding="utf-8"))
    return {"type": "manifest_declaration", "data": data}


def strategies() -> JsonObject:
    provider = yaml.safe_load((PUPPET / "provider" / "puppet.yaml").read_text(encoding="utf-8"))
    strategy = yaml.safe_load((PUPPET / "strategies" / "puppet.yaml").read_text(encoding="utf-8"))
    del strategy["output_schema"]  # the SDK leaves it out
    return {"type": "agent_strategy_declaration", "data": [{**provider, "strategies": [strategy]}]}


def introduce(*messages: JsonObject) -> PluginDeclaration | None:
    registration = Registration("k", PluginDeclaration.read(PUPPET))
    declaration = None
    for message in messages:
        declaration = registration.add(message)
    return declaration


def put(message: JsonObject, path: str, value: object) -> JsonObject:
    """A copy of the message with one field changed; None takes it away, as it does for the daemon."""
    changed = copy.deepcopy(message)
    place: Any = changed["data"]
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        place = place[part]
    place[last] = value
    return changed


def test_a_plugin_that_registers() -> None:
    declaration = introduce(KEY, manifest(), strategies(), ICON, END)
    assert declaration is not None
    _, strategy = declaration.strategies["puppet"]
    assert [parameter.name for parameter in strategy.parameters] == [
        *("model", "tools", "query", "rounds", "loud", "mood", "files", "approval", "state")
    ]
    assert declaration.manifest.resource.permission.allows("llm")
    assert "chunks" in (strategy.output_schema or {})["properties"]  # from the files, as when it is installed


def test_null_counts_as_absent() -> None:
    declared = put(put(strategies(), "0.strategies.0.parameters.2.scope", None), "0.identity.icon_dark", None)
    assert introduce(KEY, put(manifest(), "icon_dark", None), declared, ICON, END) is not None


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"type": "handshake", "data": {"key": "other"}}], "the key is wrong"),
        ([manifest()], "a manifest_declaration message came before the handshake's key"),
        ([KEY, strategies()], "a agent_strategy_declaration message came before the manifest_declaration"),
        ([KEY, END], "end message came before the manifest"),
        ([KEY, manifest(), END], "no registration transferred"),
        ([KEY, manifest(), strategies(), strategies()], "agent_strategy_declaration came twice"),
        ([KEY, manifest(), strategies(), END], r"manifest_declaration\.icon is 'icon\.svg', which is not among"),
        (
            [KEY, manifest(), {"type": "asset_chunk", "data": {"filename": "i", "data": "?"}}],
            "of i: data is not base64",
        ),
        ([KEY, manifest(), {"type": "surprise", "data": {}}], "not a message of the handshake"),
        (
            [KEY, manifest(), strategies(), {"type": "tool_declaration", "data": [{}]}, ICON, END],
            "agent_strategy_declaration cannot share a plugin with tool_declaration",
        ),
    ],
)
def test_registrations_that_the_daemon_refuses(messages: list[JsonObject], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        introduce(*messages)


PARAMETER = "0.strategies.0.parameters"


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("version", "1.0", "version: '1.0' is not a version such as 0.2.0"),
        ("type", "bundle", "type: Input should be 'plugin'"),
        ("author", "Someone", "author: String should match pattern"),
        ("name", "has.dot", "name: String should match pattern"),
        ("label", {}, "label.en_US: Field required"),
        ("icon", "", "icon: String should have at least 1"),
        ("created_at", "yesterday", "created_at: 'yesterday' is not a time as in RFC 3339"),
        ("resource.memory", 0, "resource.memory: Input should be greater than 0"),
        (
            "resource.permission.storage",
            {"enabled": False, "size": 1},
            "resource.permission.storage.size: Input should be",
        ),
        ("plugins.agent_strategies", ["p" * 129], "plugins.agent_strategies[0]: String should have at most 128"),
        ("meta.arch", [], "meta.arch: List should have at least 1"),
        ("meta.arch", ["riscv"], "meta.arch[0]: Input should be 'amd64' or 'arm64'"),
        ("meta.runner.language", "go", "meta.runner.language: Input should be 'python'"),
        ("tags", ["robots"], "tags[0]: 'robots' is none of"),
    ],
)
def test_a_manifests_fields(path: str, value: object, words: str) -> None:
    changed = manifest()
    changed["data"]["resource"]["permission"]["storage"] = {"enabled": False, "size": 1024}
    with pytest.raises(RegistrationError) as refused:
        introduce(KEY, put(changed, path, value))
    assert str(refused.value).startswith(f"manifest_declaration: {words}")


def test_every_fault_is_named_at_once() -> None:
    declared = put(put(strategies(), f"{PARAMETER}.2.scope", "x"), "0.strategies.0.identity.name", "é")
    with pytest.raises(RegistrationError, match=r"identity\.name: .*; strategies\[0\]\.parameters\[2\]\.scope: "):
        introduce(KEY, manifest(), declared)


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
