"""`devhost check` and `devhost list`: any plugin, from any folder, without starting it."""

from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.plugin.check import check_plugin
from support.breaches import broken
from support.plugins import CHARTS, ODDMENTS, PUPPET, TOOLBOX


@pytest.mark.parametrize("plugin", [PUPPET, TOOLBOX, ODDMENTS, CHARTS], ids=lambda path: path.name)
def test_a_good_plugin_has_no_refusal(plugin: Path) -> None:
    assert check_plugin(plugin).refusals == ()


TOOL, STRATEGY = "tools/repeat.yaml", "strategies/puppet.yaml"
PROVIDER_OF_TOOLS, PROVIDER = "ToolProviderDeclaration", "AgentStrategyProviderDeclaration"
MANIFEST = "PluginDeclaration.PluginDeclarationWithoutAdvancedFields"


def invalid(struct: str, way: str, tag: str) -> str:
    field = way.rpartition(".")[2].partition("[")[0]
    return f"Key: '{struct}.{way}' Error:Field validation for '{field}' failed on the '{tag}' tag"


def mistyped(struct: str, way: str, wanted: str) -> str:
    return f"json: cannot unmarshal string into Go struct field {struct}.{way} of type {wanted}"


@pytest.mark.parametrize(
    ("source", "file", "way", "value", "key", "words"),
    [
        (TOOLBOX, "manifest.yaml", "version", "1.0", "version", invalid(MANIFEST, "Version", "version")),
        (TOOLBOX, "manifest.yaml", "label", {}, "label.en_US", invalid(MANIFEST, "Label.EnUS", "required")),
        (
            TOOLBOX,
            "manifest.yaml",
            "resource.memory",
            "much",
            "resource.memory",
            mistyped("PluginDeclaration", "resource.memory", "int64"),
        ),
        (TOOLBOX, "manifest.yaml", "created_at", "yesterday", "created_at", 'parsing time "yesterday"'),
        (TOOLBOX, "manifest.yaml", "icon", "gone.svg", "icon", "plugin icon not found: gone.svg"),
        (
            TOOLBOX,
            "manifest.yaml",
            "meta.arch",
            ["riscv"],
            "meta.arch[0]",
            invalid(MANIFEST, "Meta.Arch[0]", "is_available_arch"),
        ),
        (
            TOOLBOX,
            "manifest.yaml",
            "plugins",
            {},
            "plugins",
            "at least one of endpoint, model, tool, or agent_strategy must be provided",
        ),
        (
            PUPPET,
            "manifest.yaml",
            "plugins.tools",
            ["provider/puppet.yaml"],
            "plugins",
            "agent_strategy and tool, model, or endpoint cannot be provided at the same time",
        ),
        (TOOLBOX, "manifest.yaml", "plugins.tools", ["gone.yaml"], "", "open gone.yaml: no such file or directory"),
        (TOOLBOX, "provider/toolbox.yaml", "tools", ["gone.yaml"], "", "open gone.yaml: no such file or directory"),
        (
            TOOLBOX,
            "provider/toolbox.yaml",
            "identity.tags",
            ["robots"],
            "identity.tags[0]",
            invalid(PROVIDER_OF_TOOLS, "Identity.Tags[0]", "plugin_tag"),
        ),
        (TOOLBOX, "provider/toolbox.yaml", "extra.python.source", "gone.py", "extra.python.source", ""),
        (
            CHARTS,
            "provider/charts.yaml",
            "credentials_for_provider.api_key.type",
            "key",
            "credentials_for_provider.api_key.type",
            "failed on the 'credential_type' tag",
        ),
        (
            TOOLBOX,
            TOOL,
            "identity.name",
            "two words",
            "identity.name",
            invalid(PROVIDER_OF_TOOLS, "Tools[0].Identity.Name", "tool_identity_name"),
        ),
        (
            TOOLBOX,
            TOOL,
            "description.llm",
            None,
            "description.llm",
            invalid(PROVIDER_OF_TOOLS, "Tools[0].Description.LLM", "required"),
        ),
        (
            TOOLBOX,
            TOOL,
            "parameters.1.type",
            "integer",
            "parameters[1].type",
            invalid(PROVIDER_OF_TOOLS, "Tools[0].Parameters[1].Type", "tool_parameter_type"),
        ),
        (TOOLBOX, TOOL, "parameters.0.form", "chat", "parameters[0].form", "failed on the 'tool_parameter_form' tag"),
        (
            TOOLBOX,
            TOOL,
            "parameters.0.required",
            "yes",
            "parameters[0].required",
            mistyped("ToolProviderDeclaration", "tools.parameters.required", "bool"),
        ),
        (
            CHARTS,
            "provider/charts.yaml",
            "credentials_for_provider.region.default",
            [1],
            "credentials_for_provider.region.default",
            "failed on the 'is_basic_type' tag",
        ),
        (
            PUPPET,
            STRATEGY,
            "parameters.2.scope",
            "text",
            "parameters[2].scope",
            invalid(PROVIDER, "Strategies[0].Parameters[2].Scope", "is_scope"),
        ),
        (
            PUPPET,
            STRATEGY,
            "parameters.3.type",
            "object",
            "parameters[3].type",
            "failed on the 'agent_strategy_parameter_type' tag",
        ),
        (
            PUPPET,
            STRATEGY,
            "parameters.3.min",
            "1",
            "parameters[3].min",
            mistyped("AgentStrategyProviderDeclaration", "strategies.parameters.min", "float64"),
        ),
        (PUPPET, STRATEGY, "parameters.0.name", "n" * 1024, "parameters[0].name", "failed on the 'lt' tag"),
    ],
)
def test_a_fault_is_told_with_file_key_and_the_daemons_words(
    *, source: Path, file: str, way: str, value: object, key: str, words: str, tmp_path: Path
) -> None:
    refusal, *_ = check_plugin(broken(source, tmp_path, file, way, value)).refusals
    where = value[0] if isinstance(value, list) and key == "" else file
    assert (refusal.file, refusal.key) == (where, key)
    assert words in refusal.words
    assert bool(refusal.words) is bool(words)


def test_the_command_tells_every_fault_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = broken(TOOLBOX, tmp_path, TOOL, "parameters.1.type", "integer")
    (plugin / "tools" / "draw.yaml").write_text("identity: [")
    assert main(["check", str(plugin), "--no-color"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tools/draw.yaml: ")
    assert any(line.startswith("tools/repeat.yaml: parameters[1].type: Input should be") for line in lines)
    assert lines[-1] == "2 refusals in 4 declarations and 14 files"


def test_both_find_the_nearest_plugin_of_any_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TOOLBOX / "tools")
    assert main(["check", "--no-color"]) == 0
    assert main(["list", "--no-color"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "4 declarations and 14 files, as Dify takes them" in lines
    assert lines[5].startswith("plugin devhost-tests/toolbox 0.0.1")
    assert lines[6].startswith("tool toolbox/repeat  Says a word several times")


@pytest.mark.parametrize("command", ["check", "list"])
def test_a_folder_without_a_plugin_is_a_mistake(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    assert main([command, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no plugin was found" in said
    assert "manifest.yaml is missing" in said


def test_kinds_of_providers_without_rules_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = broken(TOOLBOX, tmp_path, "manifest.yaml", "plugins.endpoints", ["group/x.yaml"])
    broken_too = broken(plugin, tmp_path / "again", "manifest.yaml", "plugins.models", ["provider/y.yaml"])
    assert main(["check", str(broken_too), "--no-color"]) == 0
    said = capsys.readouterr().out
    assert "not checked: models, endpoints (devhost has rules for the manifest, tools and strategies only)\n" in said
