"""manifest.yaml and the YAML of provider and strategies follow the rules of Dify's daemon and marketplace.

The daemon checks a strategy's YAML only under remote debugging (docs/host-facts.md, "Declarations"): an invalid one
would be installed, and fail in use.
"""

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version
from pydantic.fields import FieldInfo

from devhost.package import unknown_files
from devhost.plugin.contents import Contents
from internal.errors import StopReason
from internal.node.params import ExtraOutput, Limits, StrategyParams
from internal.plan_and_reflect import PlanAndReflectParams
from internal.policy import build_system_instruction
from scripts import declarations, docs

ROOT = Path(__file__).parent.parent
LANGUAGES = {"en_US", "ja_JP", "zh_Hans", "pt_BR"}
STRATEGIES = ["gpt5_function_calling", "gpt5_react", "gpt5_plan_and_reflect"]

type Yaml = dict[str, Any]


def read(path: str) -> Yaml:
    declared: Yaml = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return declared


MANIFEST = read("manifest.yaml")
PROVIDER = read("provider/gpt5_agent.yaml")
STRATEGY = {name: read(f"strategies/{name}.yaml") for name in STRATEGIES}
PARAMS_TYPES: dict[str, type[StrategyParams]] = {
    "gpt5_function_calling": StrategyParams,
    "gpt5_react": StrategyParams,
    "gpt5_plan_and_reflect": PlanAndReflectParams,
}
PARAMETERS: dict[str, Yaml] = {p["name"]: p for strategy in STRATEGY.values() for p in strategy["parameters"]}
FIELDS = {name: field for params_type in PARAMS_TYPES.values() for name, field in params_type.model_fields.items()}

each_strategy = pytest.mark.parametrize("strategy", STRATEGY.values(), ids=STRATEGY)
each_parameter = pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=PARAMETERS)
each_number = pytest.mark.parametrize(
    "parameter", [p for p in PARAMETERS.values() if p["type"] == "number"], ids=lambda parameter: parameter["name"]
)


# --- texts -----------------------------------------------------------------------------------------------------------


def texts(declared: object, where: str) -> Iterator[Any]:
    """Every translated text, with its place; an output schema's descriptions are plain strings."""
    if isinstance(declared, dict):
        for key, value in declared.items():
            if key in {"label", "description", "help"}:
                yield pytest.param(value, id=f"{where}.{key}")
            elif key != "output_schema":
                yield from texts(value, f"{where}.{key}")
    elif isinstance(declared, list):
        for position, value in enumerate(declared):
            name = value.get("name", position) if isinstance(value, dict) else position
            yield from texts(value, f"{where}.{name}")


@pytest.mark.parametrize(
    "text",
    [
        *texts(MANIFEST, "manifest"),
        *texts(PROVIDER, "provider"),
        *(text for name, strategy in STRATEGY.items() for text in texts(strategy, name)),
    ],
)
def test_every_text_has_exactly_the_four_languages(text: dict[str, str]) -> None:
    assert set(text) == LANGUAGES, f"a text needs {sorted(LANGUAGES)}, and this one has {sorted(text)}"
    for language, translation in text.items():
        assert translation == translation.strip(), f"the text in {language} has spaces at an end"
        assert 1 <= len(translation) < 1024, f"the text in {language} has {len(translation)} letters; Dify takes 1023"


@each_parameter
def test_the_help_of_every_parameter_is_translated(parameter: Yaml) -> None:
    assert len(set(parameter["help"].values())) == len(LANGUAGES), "two languages have the same text: translate it"


@each_number
def test_help_names_range_and_default_in_every_language(parameter: Yaml) -> None:
    named = {key: parameter[key] for key in ("min", "max", "default") if key in parameter}
    for language, text in parameter["help"].items():
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        last = numbers[-len(named) :]
        assert last == list(named.values()), f"the help in {language} has to end with the numbers of {named}"


def help_of(name: str) -> dict[str, str]:
    texts: dict[str, str] = PARAMETERS[name]["help"]
    return texts


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_help_of_the_overrides_shows_an_example_that_works(language: str) -> None:
    """It can be pasted: it is read without a note, and its text reaches the prompt."""
    text = help_of("prompt_policy_overrides")[language]
    example = text[text.index("{") : text.index("}") + 1]

    notes = list[str]()
    prompt = build_system_instruction("", example, note=notes.append)
    assert notes == []
    assert json.loads(example)["extra_policy"] in prompt
    assert "<tool_preamble>" not in prompt
    assert "<persistence>" in prompt, "a block that the example does not name stays"


# --- the manifest ----------------------------------------------------------------------------------------------------


def test_plugin_and_provider_have_the_name_that_saved_nodes_have() -> None:
    """One name for both, or Dify does not find a strategy's icon: docs/host-facts.md, "Icons and log look-ups"."""
    assert (MANIFEST["author"], MANIFEST["name"]) == ("gpt5-agents", "gpt5_agent")
    assert MANIFEST["name"] == PROVIDER["identity"]["name"]


def test_manifest_version_is_the_newest_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^]]*)\]", changelog, re.MULTILINE)
    assert released[0] == MANIFEST["version"]


def test_manifest_asks_for_tools_and_llms_only() -> None:
    assert MANIFEST["resource"]["memory"] > 0
    assert MANIFEST["resource"]["permission"] == {"tool": {"enabled": True}, "model": {"enabled": True, "llm": True}}


def test_manifest_meta() -> None:
    meta = MANIFEST["meta"]
    assert Version(meta["version"]) >= Version("0.0.2"), "Dify sends no MCP tools to an older one"
    assert set(meta["arch"]) == {"amd64", "arm64"}
    assert meta["runner"] == {"language": "python", "version": "3.12", "entrypoint": "main"}
    assert Version(meta["minimum_dify_version"]) >= Version("1.14"), "older versions of Dify were not tested"


def test_requirements_are_pinned_without_hashes_and_name_the_sdk() -> None:
    """With hashes, a wheel that was built for an installation without a network would be refused."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert "--hash" not in "".join(lines)
    assert Version(pins["dify-plugin"]) >= Version("0.10.2")


# --- the package -----------------------------------------------------------------------------------------------------

SHIPPED = {
    *("manifest.yaml", "main.py", "requirements.txt", "_assets", "provider", "strategies", "prompt", "internal"),
    *("README.md", "readme", "PRIVACY.md", "LICENSE"),
}


def test_only_the_plugin_and_its_documents_are_packaged() -> None:
    contents = Contents.of(ROOT)
    left_here = set(unknown_files(contents))  # by a person who tried something; `make package` refuses it
    assert {path.partition("/")[0] for path in contents.paths if path not in left_here} == SHIPPED
    assert declarations.SOURCE not in contents.paths
    assert "internal/host/error_words.toml" in contents.paths


# --- provider and strategies -----------------------------------------------------------------------------------------


def test_the_provider_lists_every_strategy() -> None:
    assert MANIFEST["plugins"] == {"agent_strategies": ["provider/gpt5_agent.yaml"]}
    assert PROVIDER["strategies"] == [f"strategies/{name}.yaml" for name in STRATEGIES]
    assert sorted(path.stem for path in (ROOT / "strategies").glob("*.yaml")) == sorted(STRATEGIES)
    identity = PROVIDER["identity"]
    assert identity["author"] == MANIFEST["author"]
    assert (identity["icon"], identity["icon_dark"]) == (MANIFEST["icon"], MANIFEST["icon_dark"])


@pytest.mark.parametrize(("name", "strategy"), STRATEGY.items(), ids=STRATEGY)
def test_strategy_identity(name: str, strategy: Yaml) -> None:
    assert strategy["identity"]["author"] == MANIFEST["author"]
    assert strategy["identity"]["name"] == name
    assert strategy["features"] == ["history-messages"]
    assert strategy["extra"] == {"python": {"source": f"strategies/{name}.py"}}


TYPES = {"string", "number", "boolean", "model-selector", "array[tools]", "any"}
"""The daemon's types that we use. Dify's panel cannot edit `file` and `files`."""


@each_parameter
def test_the_panel_can_edit_the_parameter(parameter: Yaml) -> None:
    kind = parameter["type"]
    assert kind in TYPES, f"the panel cannot edit a parameter of type {kind}; it can edit {sorted(TYPES)}"


@each_parameter
def test_only_model_and_query_are_required(parameter: Yaml) -> None:
    """Dify fails the node for a missing model, and would for an empty list of tools that is required."""
    is_required = parameter["name"] in {"model", "query"}
    assert parameter["required"] == is_required, f"write `required: {str(is_required).lower()}`"
    if parameter["type"] == "boolean":
        assert isinstance(parameter["default"], bool), "Dify would turn an absent value into false"


def width(text: str) -> int:
    """Pixels of a label in Dify's panel: 13 of a Chinese or Japanese sign, 9 of another capital letter."""
    return sum(13 if ord(letter) > 0x2E80 else 9 for letter in text)


@each_parameter
def test_a_label_fits_the_panel(parameter: Yaml) -> None:
    """One line; of a switch a second one, which says the default that Dify does not show."""
    most = space_for_label(parameter)
    for language, label in parameter["label"].items():
        parts = [label]
        if parameter["type"] == "boolean":
            parts = re.split(r" (?=\()|(?=（)", label)
            example = PARAMETERS["show_sources"]["label"][language]
            remedy = f"needs the default in parentheses behind it, as in {example!r}"
            assert len(parts) == 2, f"{label!r} ({language}) {remedy}"
        for part in parts:
            assert width(part) <= most, f"{part!r} ({language}) is {width(part)} pixels wide; the panel has {most}"


def space_for_label(parameter: Yaml) -> int:
    """Pixels beside a switch or a slider, beside a number's box, or above a text."""
    if parameter["type"] == "boolean" or {"min", "max"} <= set(parameter):
        return 139
    if parameter["type"] == "number":
        return 366
    return 218


def test_descriptions_say_it_in_what_dify_does_not_cut() -> None:
    """A list shows about 60 letters or 30 Chinese or Japanese signs of one; a card two such lines."""
    for declared in (MANIFEST, PROVIDER["identity"], *STRATEGY.values()):
        for text in declared["description"].values():
            first = re.split(r"(?<=[.。])", text, maxsplit=1)[0]
            assert letters(first) <= 60, first
            assert letters(text) <= 110, text


def letters(text: str) -> int:
    """A Chinese or Japanese sign is as wide as two letters."""
    return len(text) + sum(ord(letter) > 0x2E80 for letter in text)


@each_strategy
def test_a_help_names_no_block_that_the_panel_does_not_show(strategy: Yaml) -> None:
    """Only the help of `prompt_policy_overrides` does, which is where the blocks are set."""
    for parameter in strategy["parameters"]:
        if parameter["name"] != "prompt_policy_overrides":
            assert not re.search(r"_policy\b", str(parameter.get("help"))), parameter["name"]


@each_number
def test_numbers_are_whole_and_sliders_where_their_box_shows_the_default(parameter: Yaml) -> None:
    """Of a number without a slider the label says the default (docs/host-facts.md, "The panel of a node")."""
    default = parameter["default"]
    if 0 < default < 1000:
        assert "max" in parameter, "with a default from 1 to 999, `max` makes it a slider"
    else:
        assert "max" not in parameter, "a slider's box does not show the default: leave out `max`"
        for label in parameter["label"].values():
            assert re.findall(r"\d+", label) == [str(default)], f"{label!r} has to say the default {default}"
    bounds = [parameter[key] for key in ("min", "default", "max") if key in parameter]
    assert all(isinstance(bound, int) for bound in bounds)
    assert bounds == sorted(bounds), "`min`, `default` and `max` need this order"


@each_strategy
def test_every_variable_is_described_and_none_has_a_name_of_dify_itself(strategy: Yaml) -> None:
    """tests/agent/test_parameters_together.py compares what a run puts out with what is declared."""
    variables = strategy["output_schema"]["properties"]
    assert all(variable["description"] for variable in variables.values())
    assert not set(variables) & {"text", "files", "json", "usage"}


@each_strategy
def test_the_extra_outputs_are_variables_that_are_declared(strategy: Yaml) -> None:
    assert {extra.value for extra in ExtraOutput} <= set(strategy["output_schema"]["properties"])
    for text in help_of("extra_outputs").values():
        assert {extra.value for extra in ExtraOutput} <= set(re.findall(r"[a-z_]+", text))


@each_strategy
def test_every_stop_reason_is_named_where_the_variable_is_declared(strategy: Yaml) -> None:
    description = strategy["output_schema"]["properties"]["stop_reason"]["description"]
    named = set(re.findall(r"\w+", description))
    missing = sorted({reason.value for reason in StopReason} - named)
    assert missing == [], f"the description of stop_reason in {declarations.SOURCE} does not name {missing}"


# --- source, YAML and code agree ---------------------------------------------------------------------------------


def test_what_the_source_declares_is_what_dify_reads() -> None:
    """And what docs/parameters.md shows."""
    stale = ", ".join(docs.stale_files())
    assert stale == "", f"{stale} differ from {declarations.SOURCE}: change the source only, and run `make docs`"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_declared_parameters_are_the_fields_of_the_params_model(strategy: str) -> None:
    """In the model's order: fields that a strategy adds come last."""
    params_type = PARAMS_TYPES[strategy]
    where = f"{params_type.__name__} ({params_type.__module__})"
    parameters = declarations.read().parameters
    declared = [parameter.name for parameter in declarations.of_strategy(parameters, strategy)]
    fields = list(params_type.model_fields)

    shared = {parameter.name for parameter in parameters if parameter.only is None}
    without_field = sorted({*declared} - {*fields})
    owner = where
    if shared.issuperset(without_field):
        owner = f"{StrategyParams.__name__} ({StrategyParams.__module__})"
    assert without_field == [], f"{without_field} of {declarations.SOURCE}: add a field of this name to {owner}"
    without_entry = sorted({*fields} - {*declared})
    remedy = f"add an entry to {declarations.SOURCE}, and run `make docs`"
    assert without_entry == [], f"{without_entry} of {where}: {remedy}"
    moved = [(entry, field) for entry, field in zip(declared, fields, strict=True) if entry != field]
    needed = f"entries of {declarations.SOURCE} and fields of {where} need the same order"
    assert moved == [], f"{needed}: the entry {moved[0][0]} is where the field {moved[0][1]} is"


def test_the_agent_reads_every_parameter() -> None:
    code = "\n".join(file.read_text("utf-8") for file in (ROOT / "internal").rglob("*.py"))
    unread = [name for name in FIELDS if not re.search(rf"\bparams\.{name}\b", code)]
    assert unread == [], f"no code of internal/ reads params.{', params.'.join(unread)}"


def test_the_page_of_a_parameter_names_it() -> None:
    unnamed = [
        f"docs/{parameter.page}.md does not name {parameter.name}"
        for parameter in declarations.read().parameters
        if not re.search(
            rf"\b{parameter.name}\b", (ROOT / f"docs/{parameter.page}.md").read_text("utf-8"), re.IGNORECASE
        )
    ]
    assert unnamed == []


def field_of(parameter: Yaml) -> FieldInfo:
    name = parameter["name"]
    assert name in FIELDS, f"{name} of {declarations.SOURCE}: add a field of this name to the strategy's parameters"
    return FIELDS[name]


@each_parameter
def test_declared_defaults_are_those_of_the_params_model(parameter: Yaml) -> None:
    field = field_of(parameter)
    declared = parameter.get("default")
    if "default" in parameter:
        assert declared == field.default, f"the entry's default is {declared!r}, and the field's {field.default!r}"
    else:
        is_blank = not field.default or isinstance(field.default, StrEnum)  # blank means the first value of an enum
        assert field.is_required() or is_blank, f"the field's default is {field.default!r}: declare it"


@each_number
def test_declared_ranges_are_those_of_the_params_model(parameter: Yaml) -> None:
    limits = [each for each in field_of(parameter).metadata if isinstance(each, Limits)]
    assert limits, "declare the field as Annotated[int, Limits(least, most)]"
    least = limits[0].least
    most = limits[0].most
    assert parameter["min"] == least
    assert parameter.get("max") in {most, None}
    if most is not None:
        assert all(str(most) in text for text in parameter["help"].values())
