"""The values for the templates of a new chatflow: the agent's panel, its tools, and a tool call for its script."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from devhost.errors import ParameterError, naming
from devhost.plugin.declaration import Parameter, PluginDeclaration, ProvidedTool, Strategy, StrategyProvider
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import refused_parameters
from devhost.words import misspelt

type Approval = Literal["chat", "form", "none"]

MODEL: JsonObject = {
    "type": "model-selector",
    "provider": "langgenius/openai/openai",
    "model": "gpt-5",
    "model_type": "llm",
    "mode": "chat",
    "completion_params": {},
}
QUESTION = "{{#sys.query#}}"
TYPED = frozenset({"string", "secret-input"})
"""The types of settings that Dify's panel keeps as `mixed`: a text that may contain variables."""


# The tools as an Agent node lists them, and one call as a model would make it.


def entry(tool: ProvidedTool) -> JsonObject:
    """Return a tool as Dify's editor adds it to an Agent node. The model sets the parameters of the form `llm`."""
    declared = tool.declared
    settings = {each.name: _setting(each) for each in _of_panel(declared.parameters)}
    return {
        "provider_name": tool.provider_id,
        "type": "builtin",
        "tool_name": tool.name,
        "tool_label": declared.identity.label.en_US,
        "tool_description": declared.description.human.en_US,
        "enabled": True,
        "settings": {name: {"value": value} for name, value in settings.items() if value is not None},
        "parameters": {each.name: {"auto": 1, "value": None} for each in _of_model(declared.parameters)},
        "extra": {"description": ""},
    }


def _of_panel(parameters: Iterable[Parameter]) -> list[Parameter]:
    return [each for each in parameters if each.form == "form"]


def _of_model(parameters: Iterable[Parameter]) -> list[Parameter]:
    return [each for each in parameters if each.form == "llm"]


def _setting(parameter: Parameter) -> JsonObject | None:
    if parameter.type in TYPED:
        return {"type": "mixed", "value": str(parameter.default or "")}
    if parameter.default is not None:
        return {"type": "constant", "value": parameter.default}
    return None


def unset(tools: Iterable[ProvidedTool]) -> list[str]:
    """Return the settings that Dify's editor requires before it publishes the app."""
    return [
        f"{tool.name}.{each.name}"
        for tool in tools
        for each in _of_panel(tool.declared.parameters)
        if each.required and each.default in (None, "")
    ]


SAMPLES: Mapping[str, object] = {
    "number": 1,
    "boolean": False,
    "checkbox": False,
    "object": {},
    "array": [],
    "date": "2026-01-31",
}
"""Sample values of required parameters, by type. Other types get a text."""


def sample_call(tool: ProvidedTool) -> JsonObject:
    """Return a tool call for the scripted model."""
    required = [each for each in _of_model(tool.declared.parameters) if each.required]
    return {"name": tool.name, "arguments": {each.name: _sample(each) for each in required}}


def _sample(parameter: Parameter) -> object:
    if parameter.default not in (None, ""):
        return parameter.default
    if parameter.options:
        return parameter.options[0].value
    if parameter.type == "number" and parameter.min is not None:
        return parameter.min
    return SAMPLES.get(parameter.type, "example")


# The agent: the first strategy of a plugin.


@dataclass(frozen=True)
class FlowAgent:
    """The agent of a new chatflow."""

    plugin: PluginDeclaration
    provider: StrategyProvider
    strategy: Strategy

    @classmethod
    def of(cls, plugin: PluginDeclaration) -> Self:
        if not plugin.strategies:
            raise ParameterError(f"{plugin.directory} has no strategies: name the folder of a strategy plugin")
        return cls(plugin, *next(iter(plugin.strategies.values())))

    def values(self, tools: Sequence[PluginDeclaration]) -> JsonObject:
        """Return values for the templates: how the node names the strategy, and which plugins the app needs."""
        return {
            "strategy": {
                "plugin": _name(self.plugin),
                "provider": self.plugin.provider_id(self.provider),
                "name": self.strategy.identity.name,
                "label": self.strategy.identity.label.en_US,
                "outputs": self.strategy.output_schema or {},
            },
            "dependencies": list(dict.fromkeys(map(_identifier, (self.plugin, *tools)))),
        }

    def panel(self, tools: Sequence[ProvidedTool], given: Mapping[str, str]) -> JsonObject:
        """Return the node's parameters: the given texts that the strategy declares, and values that have to be set."""
        filled = {each.name: self._filled(each, tools, given) for each in self.strategy.parameters}
        return {name: value for name, value in filled.items() if value is not None}

    @staticmethod
    def _filled(parameter: Parameter, tools: Sequence[ProvidedTool], given: Mapping[str, str]) -> object:
        """Return the value of a parameter, or None if it does not have to be set."""
        if parameter.type == "model-selector":
            return MODEL
        if parameter.type == "array[tools]":
            return [entry(tool) for tool in tools]
        if parameter.name in given:
            return given[parameter.name]
        if not parameter.required or parameter.default is not None:
            return None
        if parameter.options:
            return parameter.options[0].value
        if parameter.type == "number":
            return parameter.min or 0
        return ""

    def refuse_without_approval(self, approval: Approval) -> None:
        """Raise ParameterError if the strategy lacks a parameter or an output that the approval needs."""
        declared = {each.name for each in self.strategy.parameters}
        properties = (self.strategy.output_schema or {}).get("properties") or {}
        needed = [name for name in ("approval_required", "approval", "state") if name not in declared]
        outputs = ("state", "stop_reason", "approval_question") if approval == "form" else ("state", "stop_reason")
        needed += [f"the output {name}" for name in outputs if name not in properties]
        if needed:
            raise ParameterError(
                f"--approval {approval} needs a strategy that can ask: {self.strategy.identity.name} of "
                f"{self.plugin.directory} lacks {', '.join(needed)}. Choose --approval none, or another plugin with "
                "--plugin DIR"
            )


def _name(plugin: PluginDeclaration) -> str:
    return f"{plugin.manifest.author}/{plugin.manifest.name}"


def _identifier(plugin: PluginDeclaration) -> str:
    """Return the identifier of a plugin that an app needs. Its checksum is not known before the plugin is packed."""
    return f"{_name(plugin)}:{plugin.manifest.version}@{'0' * 64}"


# A flow for the tools of existing plugins.


@dataclass(frozen=True)
class AgentTools:
    """The tools of existing plugins, for the agent of a new chatflow."""

    plugins: tuple[PluginDeclaration, ...]

    def __post_init__(self) -> None:
        for plugin in self.plugins:
            if not plugin.tools:
                raise ParameterError(f"{plugin.directory} is not a tool plugin: its manifest names no tools")
        if not self.tools:
            raise ParameterError("every tool requires a file, and Dify does not offer such a tool to an agent")

    @property
    def tools(self) -> list[ProvidedTool]:
        """The tools that Dify offers to an agent."""
        return [tool for tool in self._every if not refused_parameters(tool.declared.parameters)]

    @property
    def _every(self) -> list[ProvidedTool]:
        return [tool for plugin in self.plugins for tool in plugin.tools]

    @property
    def notices(self) -> list[str]:
        offered = self.tools
        said = [
            f"left out: {tool.name}, which requires a file, so that Dify does not offer it to an agent"
            for tool in self._every
            if tool not in offered
        ]
        if names := unset(offered):
            said.append(f"set {', '.join(names)} in the Agent node: Dify's editor wants a value before it publishes")
        return said

    def asking(self, names: Sequence[str]) -> list[ProvidedTool]:
        """Return the tools with these names, or all tools if no name is given.

        Raises ParameterError for an unknown name.
        """
        offered = self.tools
        known = {name for tool in offered for name in tool.names}
        for name in names:
            if name not in known:
                there_are = [tool.name for tool in offered]
                raise ParameterError(f"--ask {misspelt(name, there_are)}: no tool has this name; {naming(there_are)}")
        return [tool for tool in offered if not names or set(names).intersection(tool.names)]

    def values(self, agent: FlowAgent, approval: Approval, names: Sequence[str]) -> JsonObject:
        """Return values for the templates: the panels by node, and the call that the script makes."""
        asking = self.asking(names)
        if approval != "none":
            agent.refuse_without_approval(approval)
        given = {
            "query": QUESTION,
            "instruction": "Do what the user asks for with the tools. Say what you did, in short sentences.",
        }
        waits = {"approval_required": self._listed(asking), "state": "{{#conversation.state#}}"}
        again = {"approval": "{{#decision.output#}}", "state": "{{#agent.state#}}"}
        nodes: Mapping[Approval, Mapping[str, Mapping[str, str]]] = {
            "none": {"agent": given},
            "chat": {"agent": {**given, **waits, "approval": QUESTION}},
            "form": {"agent": {**given, **waits}, "agent_again": {**given, **waits, **again}},
        }
        panels = {node: agent.panel(self.tools, texts) for node, texts in nodes[approval].items()}
        return {
            **agent.values(self.plugins),
            "approval": approval,
            "panels": panels,
            "asking": [tool.name for tool in asking],
            "call": sample_call(asking[0]),
        }

    def _listed(self, asking: Sequence[ProvidedTool]) -> str:
        """Format the names for the parameter `approval_required`. A name that several tools share gets its provider."""
        every = [tool.name for tool in self.tools]
        return ", ".join(tool.name if every.count(tool.name) == 1 else tool.names[1] for tool in asking)
