"""What becomes of the parameters of an agent's tools, beside Dify's own decisions."""

from devhost.errors import NodeParameterError, ParameterError
from devhost.node.parameters import NodeVariables
from devhost.plugin.casting import cast_called_back
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import EMPTY_TOOL, agent_tools
from support.tool_values import OTHER_WORDS, VARIABLES, Decision, decisions, differing


def outcome(values: JsonObject) -> JsonObject:
    if "p" not in values:
        return {}
    return {"gets": values["p"]}


def decided(decision: Decision) -> JsonObject:
    kind = {"form": "settings", "llm": "parameters"}[str(decision.declared.form)]
    held = {name: {"auto": 0, "value": value} for name, value in decision.given.items()}
    entry = {"enabled": True, "provider_name": "x/y/z", "tool_name": "t", kind: held}
    entity = {
        **EMPTY_TOOL,
        "identity": {"name": "t", "provider": "x/y/z"},
        "description": {"llm": "t"},
        "parameters": [decision.declared.model_dump(mode="json")],
    }
    try:
        (tool,) = agent_tools([entry], [entity], NodeVariables(VARIABLES), is_legacy=decision.is_legacy)
    except NodeParameterError as error:
        return _failed(error, decision.expected)
    values = outcome(tool["runtime_parameters"])
    called = _called(decision, tool["runtime_parameters"])
    if repr(called) == repr(values):
        return values
    return {**values, "called": called}


def _called(decision: Decision, values: JsonObject) -> JsonObject:
    try:
        return outcome(cast_called_back([decision.declared], values))
    except NodeParameterError as error:
        return {"fails": error.words}


def _failed(error: ParameterError, expected: JsonObject) -> JsonObject:
    """A variable that does not exist, and a text that breaks the JSON of the tools, have words of devhost's own."""
    assert isinstance(error, NodeParameterError)
    if expected.get("fails") == OTHER_WORDS or "does not exist" in error.words:
        return expected
    return {"fails": error.words}


def test_an_agents_tools_get_what_dify_gives_them() -> None:
    assert differing(decisions("agent"), decided) == []
