"""The models of a flow's nodes: those behind an API if a key or a base URL is set, else the script's.

In: the options about models, the environment, and a turn of the script. Out: a `ModelOfNode`.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from devhost.cli.options.model_options import BASE_URL, KEY, ModelOptions
from devhost.errors import ParameterError
from devhost.flow.document import FlowFile, FlowNode

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel

ASKING = frozenset({"agent", "llm", "question-classifier", "parameter-extractor"})
"""The types of nodes that ask a model."""


def selected_name(node: FlowNode) -> str | None:
    """The name of the model that the node selects in the DSL."""
    match node.data:
        case {"model": {"name": str(name)}}:
            return name
        case {"agent_parameters": dict(parameters)}:
            selectors = (parameter.get("value") for parameter in parameters.values() if isinstance(parameter, dict))
            return next(filter(None, map(_name_in, selectors)), None)
    return None


def _name_in(selector: object) -> str | None:
    match selector:
        case {"type": "model-selector", "model": str(name)}:
            return name
    return None


class ModelsBehindAnApi:
    """One model for each node, named as the node names it or as --model says. Thread-safe."""

    def __init__(self, options: ModelOptions, environment: Mapping[str, str]) -> None:
        self._options = options
        self._environment = {name: environment.get(name, "") for name in (KEY, BASE_URL)}
        self._models: dict[str, OpenAIModel] = {}
        self._opening = threading.Lock()

    def __call__(self, node: FlowNode, _question: str) -> "OpenAIModel":
        with self._opening:
            if node.id not in self._models:
                self._models[node.id] = self._options.open(self._environment, selected_name(node))
            return self._models[node.id]

    @property
    def notice(self) -> str:
        names = f"with the name {self._options.name}" if self._options.name else "with the names in the file"
        return f"the models of the nodes are called behind an API, {names}: that costs money; see --scripted"


def models_behind_an_api(options: ModelOptions, environment: Mapping[str, str]) -> ModelsBehindAnApi | None:
    """None if the script answers; ParameterError for an option that it would ignore."""
    if not options.asks_the_script(environment):
        return ModelsBehindAnApi(options, environment)
    options.refuse_for_a_script()
    return None


def refuse_without_models(file: FlowFile) -> None:
    """ParameterError for a flow whose nodes ask models, where neither a script nor an API answers."""
    asking = [str(node) for node in file.nodes.values() if node.type in ASKING]
    if asking:
        raise ParameterError(
            f"no model is configured for {', '.join(asking)}: give --script FILE with what it answers, or set {KEY}"
        )
