"""The tools that an Agent node holds, as the strategy gets them; and those that no given plugin has."""

from pathlib import Path
from typing import Any

import pytest

from devhost.errors import NodeParameterError
from devhost.flow.document import FlowFile
from devhost.flow.tools import missing_tools, panel_settings, tools_of
from devhost.models.backend import ModelDescription
from devhost.node.parameters import NodeVariables, PickedValue
from devhost.plugin.declaration import PluginDeclaration
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup
from support.flow_documents import START, answer, chain, chatflow, node
from support.plugins import ODDMENTS, PUPPET, TOOLBOX

VARIABLES = {"sys.query": "hey", "start.separator": "+", "start.n": 3}
SCRIPTED = ModelDescription("devhost/scripted", "scripted-gpt-5", "", scripted=True)


def entry(tool: str, **changed: object) -> dict[str, Any]:
    return {
        "provider_name": "devhost-tests/toolbox/toolbox",
        "type": "builtin",
        "tool_name": tool,
        "enabled": True,
        "settings": {},
        "parameters": {},
        "extra": {"description": ""},
        **changed,
    }


STRATEGY = PluginDeclaration.read(PUPPET).strategies["puppet"][1]
SETUPS = [ToolSetup.read(folder).with_every_tool() for folder in (TOOLBOX, ODDMENTS)]
ENTITIES = [offered.entity for setup in SETUPS for offered in setup.tools]


def picked(
    *entries: object, model: object = None, given: ModelDescription = SCRIPTED, is_legacy: bool = False
) -> tuple[Any, Any]:
    """The tools and the model."""
    parameters: dict[str, Any] = {
        "tools": {"type": "constant", "value": list(entries)},
        "model": {"type": "constant", "value": model},
    }
    settings = panel_settings(STRATEGY, parameters, NodeVariables(VARIABLES), given, (), ENTITIES, is_legacy=is_legacy)
    tools = settings["tools"]
    selector = settings["model"]
    assert isinstance(tools, PickedValue)
    assert isinstance(selector, PickedValue)
    return tools.value, selector.value


def test_the_strategy_gets_the_tools_that_are_switched_on_with_the_panels_values() -> None:
    repeat = entry(
        "repeat",
        settings={"separator": {"value": {"type": "mixed", "value": "{{#start.separator#}}"}}},
        parameters={
            "word": {"auto": 1, "value": None},
            "times": {"auto": 0, "value": {"type": "variable", "value": ["start", "n"]}},
        },
        extra={"description": "Says it for {{#sys.query#}}"},
    )

    (tool,), _ = picked(entry("draw", enabled=False), repeat)

    declared = next(entity for entity in ENTITIES if entity["identity"]["name"] == "repeat")
    assert tool == {
        **declared,
        "parameters": [
            {**each, "form": {"word": "llm", "times": "form", "separator": "form"}[each["name"]]}
            for each in declared["parameters"]
        ],
        "description": {**declared["description"], "llm": "Says it for hey"},
        "runtime_parameters": {"separator": "+", "times": 3},
    }


@pytest.mark.parametrize(
    ("settings", "is_legacy", "given"),
    [
        ({}, True, {"separator": "-"}),
        ({}, False, {}),
        ({"separator": {"value": "/"}}, True, {"separator": "/"}),
        ({"separator": {"value": {"type": "constant", "value": "{{#start.n#}}"}}}, False, {"separator": "3"}),
        ({"separator": {"value": {"type": "variable", "value": ["sys", "query"]}}}, False, {"separator": "hey"}),
    ],
)
def test_a_setting_of_an_older_or_a_newer_node_is_filled(
    settings: object, *, is_legacy: bool, given: JsonObject
) -> None:
    (tool,), _ = picked(entry("repeat", settings=settings), is_legacy=is_legacy)

    assert tool["runtime_parameters"] == given
    assert tool["description"]["llm"] == "Says a word several times"


def test_a_provider_with_another_author_is_known_by_its_last_name() -> None:
    (tool,), _ = picked(entry("repeat", provider_name="langgenius/toolbox/toolbox"))

    assert tool["identity"]["provider"] == "devhost-tests/toolbox/toolbox"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (entry("repat"), "tool repat of provider devhost-tests/toolbox/toolbox not found"),
        (
            entry("weigh", provider_name="devhost-tests/oddments/oddments"),
            "file type parameter thing not supported in agent",
        ),
        (
            entry("repeat", settings={"separator": {"value": {"type": "variable", "value": ["start", "x"]}}}),
            "Variable '['start', 'x']' does not exist",
        ),
    ],
)
def test_a_tool_that_dify_refuses_fails_the_node_in_its_words(wrong: object, words: str) -> None:
    with pytest.raises(NodeParameterError) as refused:
        picked(wrong)

    assert refused.value.words == words


def test_the_model_keeps_the_nodes_parameters_and_those_of_the_command_come_first() -> None:
    chosen = {
        "provider": "langgenius/openai/openai",
        "model": "gpt-5",
        "completion_params": {"temperature": 0.5, "top_p": 1},
    }
    behind_an_api = ModelDescription("p", "gpt-5-mini", "", scripted=False, completion_params=(("temperature", 0.1),))

    _, scripted = picked(model=chosen)
    _, real = picked(model=chosen, given=behind_an_api)

    assert scripted == {**SCRIPTED.selector(()), **chosen, "entity": scripted["entity"]}
    assert scripted["entity"]["model"] == "gpt-5"
    assert (real["provider"], real["model"]) == ("p", "gpt-5-mini")
    assert real["completion_params"] == {"temperature": 0.1, "top_p": 1}


DECLARING = ModelDescription(
    "p",
    "m",
    "",
    scripted=False,
    entity={"parameter_rules": [{"name": "max_tokens", "default": 512}, {"name": "top_p", "default": None}]},
)


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ({}, {"max_tokens": 512}),
        ({"completion_params": {}}, {}),
        ({"completion_params": {"top_p": 1}}, {"top_p": 1}),
    ],
    ids=["none at all", "empty ones", "some"],
)
def test_a_node_without_completion_parameters_gets_the_defaults_of_the_model(chosen: object, sent: object) -> None:
    _, selector = picked(model=chosen, given=DECLARING)

    assert selector["completion_params"] == sent


def test_a_tool_that_no_given_plugin_has_is_told_with_its_node(tmp_path: Path) -> None:
    tools = [entry("repeat"), entry("draw", provider_name="other/box/box"), entry("gone", enabled=False)]
    agent = node(
        "agent", "agent", agent_strategy_name="puppet", agent_parameters={"tools": {"type": "constant", "value": tools}}
    )
    stamp = node("tool", "stamp", provider_id="devhost-tests/oddments/oddments", tool_name="stamp")
    file = FlowFile.read(
        chatflow(tmp_path, [START, agent, stamp, answer("x")], chain("start", "agent", "stamp", "answer"))
    )

    sentences = list(missing_tools(file, tools_of([PluginDeclaration.read(TOOLBOX)])))

    there_are = "no given plugin has that; there are: devhost-tests/toolbox/toolbox/repeat"
    assert len(sentences) == 2
    assert sentences[0].startswith(f"node 'Agent' (agent) uses draw of other/box/box: {there_are}")
    assert sentences[1].startswith(f"node 'Stamp' (stamp) uses stamp of devhost-tests/oddments/oddments: {there_are}")
    how = "Give the folder of the tool plugin with --tools DIR, or let the script answer for it: tool_answers"
    assert how in sentences[0]
