"""What a command asks for: an example's script, a strategy, and the values of its parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devhost.errors import ParameterError
from devhost.home import HOME
from devhost.models.scripted.file import FollowUp
from devhost.models.scripted.recorded import Recorded
from devhost.models.scripted.script import Script
from devhost.node.memory import files_among
from devhost.node.parameters import read_setting, resolved
from devhost.node.variables import NodeVariables
from devhost.plugin.declaration import Strategy
from devhost.plugin.guesses import guesses
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.scenario.attached import FILES, AttachedFiles, file_setting
from devhost.scenario.settings import checked_settings
from devhost.tools.setup import ToolSetup

EXAMPLES = "examples"
SCRIPT = "script.yaml"
SCENARIOS = "scenarios"
"""The folder of an example's other scripts."""
QUESTION = "sys.query"
"""The variable that the node's query is, as in a chatflow."""
CONVERSATION = "sys.conversation_id"
"""Empty outside a conversation."""


def examples_of(plugin: Path) -> Path:
    """The folder of the plugin's own examples, or else that of devhost's."""
    return plugin / EXAMPLES if (plugin / EXAMPLES).is_dir() else HOME / EXAMPLES


@dataclass(frozen=True)
class Example:
    name: str
    directory: Path
    file: Path
    """The script that was chosen."""

    @classmethod
    def find(cls, examples: Path, name: str, scenario: str | None = None) -> "Example":
        names = sorted(file.parent.name for file in examples.glob(f"*/{SCRIPT}"))
        if name not in names:
            raise ParameterError(
                f"there is no example {name!r}; there are: {', '.join(names) or f'none in {examples}'}"
            )
        return cls(name, examples / name, _script_file(examples / name, scenario))

    @property
    def files(self) -> tuple[Path, ...]:
        """All its scripts, the default one first."""
        return (self.directory / SCRIPT, *sorted((self.directory / SCENARIOS).glob("*.yaml")))


def _script_file(example: Path, scenario: str | None) -> Path:
    if scenario is None:
        return example / SCRIPT
    names = sorted(file.stem for file in (example / SCENARIOS).glob("*.yaml"))
    if scenario not in names:
        raise ParameterError(
            f"the example {example.name} has no scenario {scenario!r}; there are: {', '.join(names) or 'none'}"
        )
    return example / SCENARIOS / f"{scenario}.yaml"


@dataclass(frozen=True)
class Scenario:
    """What a command asks for, apart from the question."""

    name: str
    """The example's; empty without one."""
    script: Script | None
    """Without one, only a real model can answer."""
    plugin: Path
    strategy: Strategy
    tools: tuple[ToolSetup, ...]
    given: JsonObject
    """Settings of the strategy's parameters, over the script's."""
    given_variables: JsonObject = field(default_factory=dict)
    """Of the workflow, over the script's."""
    attached: AttachedFiles = field(default_factory=AttachedFiles)
    scripts: tuple[Path, ...] = ()
    """The example's, among which one may fit if this one does not."""

    @property
    def description(self) -> str:
        return "" if self.script is None else self.script.description

    @property
    def api_fails(self) -> Mapping[str, ApiFault]:
        """By tool; ParameterError for a tool that is not offered."""
        faults = {} if self.script is None else self.script.api_fails
        names = {offered.declared.identity.name for setup in self.tools for offered in setup.tools}
        names |= set(self.recorded_names)
        for name in faults:
            if name not in names:
                there_are = ", ".join(sorted(names)) or "none"
                raise ParameterError(f"api_fails names the tool {name!r}, which is not offered; there are: {there_are}")
        return faults

    @property
    def recorded(self) -> Recorded | None:
        return None if self.script is None else self.script.recorded

    @property
    def recorded_names(self) -> tuple[str, ...]:
        """Of tools."""
        return () if self.recorded is None else self.recorded.names

    @property
    def notices(self) -> tuple[str, ...]:
        of_tools = tuple(notice for setup in self.tools for notice in setup.notices)
        if not self.recorded_names:
            return of_tools
        return (*of_tools, f"tools that answer from a recording: {', '.join(self.recorded_names)}")

    def guesses(self, question: str, *, raw: bool = False) -> tuple[str, ...]:
        """What Dify makes of odd values of the strategy's parameters; of raw ones it makes nothing."""
        return () if raw else tuple(guesses(self.strategy.parameters, self._resolved(question), "parameter "))

    def question(self, query: str | None) -> str:
        if query is not None:
            return query
        if self.script is None:
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
        return self.script.query

    def sets(self, name: str) -> bool:
        """Whether the script or the command line sets the parameter."""
        return name in self.given or (self.script is not None and name in self.script.params)

    def follow_ups(self, question: str) -> tuple[FollowUp, ...]:
        """What the script's user says after this question, which is the script's own or another."""
        if self.script is None or not self.script.begins_with(question):
            return ()
        for number, said in enumerate(self.script.then, start=1):
            if said.approval is not None and "approval" not in {each.name for each in self.strategy.parameters}:
                raise ParameterError(f"then {number}: {self.strategy.identity.name} has no parameter 'approval'")
        return self.script.then

    def check(self, question: str, *, raw: bool = False) -> None:
        """ParameterError for what the node would refuse, before anything starts: files have no URLs yet."""
        for files in self.attached.of_turns():
            self.values(question, [file.described("") for file in files], raw=raw)

    def values(self, question: str, files: Sequence[JsonObject] = (), *, raw: bool = False) -> JsonObject:
        """The settings: the script's, over them the question, over them the command line's; raw ones go unchecked."""
        params = {} if self.script is None else self.script.params
        if raw:
            return {**params, **file_setting(self.strategy, files, list(files)), "query": question, **self.given}
        values = {**params, "query": {"variable": QUESTION}, **self.given}
        if FILES not in str(values):
            values = {**file_setting(self.strategy, files, {"variable": FILES}), **values}
        return checked_settings(self.strategy, values, NodeVariables(self.variables(question, files)))

    def variables(self, question: str, files: Sequence[JsonObject] = ()) -> JsonObject:
        """By `node.name`; includes the system variables that a chatflow always has."""
        variables = {**({} if self.script is None else self.script.variables), **self.given_variables}
        if QUESTION in variables:
            raise ParameterError(f"variable {QUESTION!r} is the question itself: give it as query, or with --query")
        if files and FILES in variables:
            raise ParameterError(f"variable {FILES!r} is what --file and a script's files give: leave out one of them")
        return {FILES: list(files), CONVERSATION: "", **variables, QUESTION: question}

    @property
    def conversation_variables(self) -> tuple[str, ...]:
        return () if self.script is None else self.script.conversation_variables

    def files(self, question: str, files: Sequence[JsonObject] = (), *, raw: bool = False) -> tuple[JsonObject, ...]:
        """The question's files, from any parameter."""
        return files_among(self.values(question, files, raw=True) if raw else self._resolved(question, files))

    def _resolved(self, question: str, files: Sequence[JsonObject] = ()) -> JsonObject:
        """The values before Dify casts them."""
        variables = NodeVariables(self.variables(question, files))
        return {name: resolved(read_setting(value), variables) for name, value in self.values(question, files).items()}
