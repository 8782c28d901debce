"""What a command line and a script give for the parameters, as the node's panel would hold it."""

from typing import Any

import pytest

from devhost.alone import AgentAlone
from devhost.errors import ParameterError
from devhost.node.parameters import NodeVariables, node_parameters
from devhost.plugin.declaration import PluginDeclaration, Strategy
from devhost.scenario import typed_settings
from devhost.script import Script

pytestmark = pytest.mark.usefixtures("lent_plugins")

LABEL = {"en_US": "L"}
PARAMETERS: list[dict[str, Any]] = [
    {"name": "query", "type": "string"},
    {"name": "text", "type": "string", "default": "D"},
    {"name": "count", "type": "number", "default": 3},
    {"name": "slider", "type": "number", "min": 1, "max": 10},
    {"name": "loud", "type": "boolean"},
    {"name": "context", "type": "any"},
    {"name": "tools", "type": "array[tools]"},
]
STRATEGY = Strategy.model_validate(
    {
        "identity": {"author": "a", "name": "s", "label": LABEL},
        "description": LABEL,
        "parameters": [{**parameter, "label": LABEL} for parameter in PARAMETERS],
    }
)


def scenario(*assignments: str, params: object = None, variables: object = None, given: object = None) -> AgentAlone:
    script = Script.of({"query": "?", "params": params or {}, "variables": variables or {}, "turns": [{"text": "hi"}]})
    settings = typed_settings(STRATEGY, assignments)
    given_variables = given if isinstance(given, dict) else {}
    return AgentAlone.of(PluginDeclaration.model_construct(), STRATEGY, script, settings, given_variables)


def sent(asked: AgentAlone, question: str = "?") -> dict[str, Any]:
    """What the plugin gets."""
    return node_parameters(STRATEGY.parameters, asked.values(question), NodeVariables(asked.known(question)))


@pytest.mark.parametrize(
    ("assignment", "name", "value"),
    [
        ("text=true", "text", "true"),  # a text field holds what is typed
        ("text=1e3", "text", "1e3"),
        ('text={"a":  1}', "text", '{"a":  1}'),
        ("text=", "text", "D"),
        ("count=7", "count", 7),
        ("slider=7", "slider", 7),
        ("loud=true", "loud", True),
        ('context=[{"a": 1}]', "context", [{"a": 1}]),
        ("context=plain", "context", "plain"),
        ('context={"variable": "start.items"}', "context", ["a", "b"]),
        ('text={"variable": "start.items"}', "text", "['a', 'b']"),
        ("text=of {{#start.items#}} and {{#start.gone#}}", "text", 'of ["a", "b"] and start.gone'),
        ('text={"constant": {"a": 1}}', "text", "{'a': 1}"),
    ],
)
def test_a_value_is_given_as_a_constant_a_template_or_a_variable(assignment: str, name: str, value: object) -> None:
    assert sent(scenario(assignment, variables={"start.items": ["a", "b"]}))[name] == value


def test_a_script_gives_values_in_the_same_three_ways() -> None:
    params = {"context": {"variable": "start.items"}, "text": "{{#start.items#}}", "count": 5}
    values = sent(scenario(params=params, variables={"start.items": ["a"]}, given={"start.items": ["b"]}))
    assert (values["context"], values["text"], values["count"]) == (["b"], '["b"]', 5)


def test_an_object_for_a_text_parameter_in_a_script_becomes_json() -> None:
    assert sent(scenario(params={"text": {"a": "é"}}))["text"] == '{"a": "é"}'


@pytest.mark.parametrize("question", ["start.items", "{{#start.items#}}", "plain"])
def test_the_question_is_never_a_template(question: str) -> None:
    asked = scenario("text=you ask: {{#sys.query#}}", variables={"start.items": ["a"]})
    values = sent(asked, question)
    assert (values["query"], values["text"]) == (question, f"you ask: {question}")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("count=1e3", "count must be a number, got '1e3' (in Dify this fails the node)"),
        ("slider=many", "slider must be a number, got 'many' (in Dify this fails the node)"),
        ('context={"variable": "start.gone"}', "Variable '['start', 'gone']' does not exist"),
        ('context={"variable": 5}', "{variable: 5}: name the variable as NODE.NAME, such as start.items"),
        ("gone=1", "there is no parameter 'gone'; there are: query, text, count, slider, loud, context"),
    ],
)
def test_values_that_the_node_refuses_are_errors_before_anything_starts(assignment: str, words: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        scenario(assignment).values("?")
    assert str(refusal.value) == words


def test_the_question_cannot_be_set_as_a_variable() -> None:
    with pytest.raises(ParameterError, match=r"'sys.query' is the question itself"):
        scenario(given={"sys.query": "x"}).values("?")


def test_a_question_brings_the_files_that_a_variable_holds() -> None:
    file = {"dify_model_identity": "__dify__file__", "type": "image", "url": "u"}
    asked = scenario('context={"variable": "sys.files"}', given={"sys.files": [file]})
    assert asked.files("?") == (file,)
    assert scenario('context={"variable": "sys.files"}').files("?") == ()
