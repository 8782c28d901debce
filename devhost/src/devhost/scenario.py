"""What a command runs: an example's script, a strategy, the values of its parameters, its tools."""

import json
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError, about, naming
from devhost.files import LocalFile, local_files
from devhost.home import REPOSITORY
from devhost.limits import HostLimits
from devhost.models.scripted.script import FollowUp, Script, gist
from devhost.models.spending import PriceLimit
from devhost.node.parameters import NodeVariables, files_among, is_marked, node_parameters, resolved
from devhost.plugin.casting import doubts
from devhost.plugin.credentials import credentials_in, environment_name
from devhost.plugin.declaration import Parameter, PluginDeclaration, Strategy
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.text import json_or, real_path
from devhost.tools.mcp import McpServer
from devhost.tools.setup import Texts, ToolSetup
from devhost.words import refuse_unknown

FILES = "sys.files"
"""The variable that the files of a question are, as in a chatflow."""
LIST_OF_FILES = "array[file]"
UNWRITTEN = Script.model_construct(place="")
"""In place of a script where there is none."""


@dataclass(frozen=True)
class AttachedFiles:
    first: tuple[LocalFile, ...] = ()
    """Of the first question, whatever it is."""
    said: tuple[tuple[str, tuple[LocalFile, ...]], ...] = ()
    """What the script's user says, in order, each with its files."""
    limits: HostLimits = field(default_factory=HostLimits)

    @classmethod
    def of(cls, script: Script | None, given: Sequence[Path], limits: HostLimits) -> Self:
        """`given` take the place of the script's files for its first question."""
        script = script or UNWRITTEN
        with about("files"):
            first = local_files(given or script.files, limits)
        later = [(each.query, local_files(each.files, limits)) for each in script.then]
        return cls(first, ((script.query, first), *later), limits)

    def of_question(self, question: str, asked: int, *, is_first: bool) -> tuple[LocalFile, ...]:
        """`asked`: how often the conversation had this question before."""
        if is_first:
            return self.first
        written = [files for said, files in self.said if gist(said) == gist(question)]
        if asked < len(written):
            return written[asked]
        return ()


def file_parameter(strategy: Strategy) -> str:
    """The parameter in which the strategy takes files."""
    takers = [
        parameter.name
        for parameter in strategy.parameters
        if parameter.type in {"file", "files"} or (parameter.type == "any" and parameter.scope == LIST_OF_FILES)
    ]
    if not takers:
        raise ParameterError(
            f"{strategy.identity.name} has no parameter for files, which is one of type any with the scope "
            f'{LIST_OF_FILES}. Choose another with --param \'NAME={{"variable": "{FILES}"}}\''
        )
    return takers[0]


# Values for a strategy's parameters, as the node's panel would hold them.

PICKED = frozenset({"model-selector", "array[tools]"})
"""Types of parameters that devhost fills itself, as the node's pickers do."""
TEXT_FIELDS = frozenset({"string", "secret-input", "select"})


def parse_assignments(assignments: Iterable[str], *, option: str = "--param") -> JsonObject:
    """KEY=VALUE pairs; a value that is JSON is parsed, any other is a text."""
    return {key: json_or(text, text) for key, text in pairs(assignments, option)}


def typed_settings(strategy: Strategy, assignments: Iterable[str]) -> JsonObject:
    """`--param KEY=VALUE` pairs: a text field holds what is typed, other widgets hold what the JSON says."""
    declared = {parameter.name: parameter for parameter in strategy.parameters}
    settings: JsonObject = {}
    for name, text in pairs(assignments, "--param"):
        value = json_or(text, text)
        is_text = name in declared and _is_text_field(declared[name]) and not is_marked(value)
        settings[name] = text if is_text else value
    return settings


def pairs(assignments: Iterable[str], option: str, *, hidden: bool = False) -> Iterator[tuple[str, str]]:
    """`hidden`: without a sign of equality all of it may be a secret. One in base64 may have them at its end."""
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        is_secret = hidden and "." not in key and not text.strip("=")
        if not equals or not key or is_secret:
            raise ParameterError(f"{option}{'' if hidden else f' {key!r}'} is not KEY=VALUE")
        yield key, text


def _is_text_field(parameter: Parameter) -> bool:
    """A number without both bounds is typed, too; with them it is a slider."""
    is_slider = parameter.min is not None and parameter.max is not None
    return parameter.type in TEXT_FIELDS or (parameter.type == "number" and not is_slider)


# The options about tools, sorted by the plugins that they are about.
#
# No sentence ever quotes a value: it may be a secret.


def read_tool_setups(  # noqa: PLR0913 - what a command says of tools
    directories: Iterable[Path],
    credentials: Iterable[str],
    settings: Iterable[str],
    environment: MutableMapping[str, str],
    panel: Texts | None = None,
    *,
    validated: bool = True,
) -> list[ToolSetup]:
    """`panel`: of a script; the settings go before it.

    Credentials are removed from the environment, because every process that devhost starts inherits it.
    """
    plugins = [PluginDeclaration.read(directory) for directory in dict.fromkeys(map(real_path, directories))]
    credential_texts = read_credentials(plugins, credentials, environment)
    names = {full: name for plugin in plugins for _, name, full in (tool.names for tool in plugin.tools)}
    scripted = [f"{tool}.{name}={text}" for tool, texts in (panel or {}).items() for name, text in texts.items()]
    of_script = _by_owner(scripted, "panel", "tool", names)
    given = _by_owner(settings, "--set", "tool", names)
    setups = []
    for plugin in plugins:
        of_providers = {
            each.identity.name: credential_texts[plugin.provider_id(each)] for each in plugin.tool_providers
        }
        of_tools = {
            name: {**of_script.get(full, {}), **given.get(full, {})}
            for _, name, full in (tool.names for tool in plugin.tools)
        }
        setups.append(replace(ToolSetup.of(plugin, of_providers, of_tools), is_validated=validated))
    return setups


def read_credentials(
    plugins: Sequence[PluginDeclaration], credentials: Iterable[str], environment: MutableMapping[str, str]
) -> Texts:
    """By the whole id of a provider: those of the environment, which are removed from it, and over them the given."""
    providers = {plugin.provider_id(each): each for plugin in plugins for each in plugin.tool_providers}
    names = {full: each.identity.name for full, each in providers.items()}
    given = _by_owner(credentials, "--credential", "tool provider", names)
    texts = {
        full: {**credentials_in(environment, names[full], providers[full].credentials), **given.get(full, {})}
        for full in names
    }
    for name in (environment_name(names[full], key) for full in names for key in providers[full].credentials):
        environment.pop(name, None)  # two providers of one name read the same variable
    return texts


def _by_owner(
    assignments: Iterable[str], option: str, kind: str, names: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """OWNER.KEY=VALUE pairs by the owner's whole id; it is known by that, by its name, and by the name's last part."""
    found: dict[str, dict[str, str]] = {}
    for target, value in pairs(assignments, option, hidden=True):
        owner, _, key = target.rpartition(".")
        owners = [full for full, name in names.items() if owner in {full, name, name.rpartition("/")[2]}]
        if len(owners) != 1:
            raise ParameterError(f"{option} {target}: {owner!r} is not the name of one {kind}; {naming(names)}")
        found.setdefault(owners[0], {})[key] = value
    return found


# What a command asks for: an example's script, a strategy, and the values of its parameters.

EXAMPLES = "examples"
SCRIPT = "script.yaml"
SCENARIOS = "scenarios"
"""The folder of an example's other scripts."""
QUESTION = "sys.query"
"""The variable that the node's query is, as in a chatflow."""
CONVERSATION = "sys.conversation_id"
"""Empty outside a conversation."""
DIALOGUE_COUNT = "sys.dialogue_count"
"""Which message of the conversation's user is answered, counted from 1."""


def examples_of(plugin: Path) -> Path:
    """The folder of the plugin's own examples, or else that of devhost's repository."""
    own = plugin / EXAMPLES
    if own.is_dir() or REPOSITORY is None:
        return own
    return REPOSITORY / EXAMPLES


@dataclass(frozen=True)
class Example:
    name: str
    directory: Path
    file: Path
    """The script that was chosen."""

    @classmethod
    def find(cls, examples: Path, name: str, scenario: str | None = None) -> "Example":
        refuse_unknown("example", name, sorted(file.parent.name for file in examples.glob(f"*/{SCRIPT}")))
        folder = examples / name
        if scenario is None:
            return cls(name, folder, folder / SCRIPT)
        files = {file.stem: file for file in sorted((folder / SCENARIOS).glob("*.yaml"))}
        refuse_unknown(f"scenario of {name}", scenario, files)
        return cls(name, folder, files[scenario])


@dataclass(frozen=True)
class Scenario:
    """What a command asks for, apart from the question."""

    name: str
    """The example's; empty without one."""
    script: Script | None
    """Without one, only a real model can answer."""
    plugin: PluginDeclaration
    strategy: Strategy
    tools: tuple[ToolSetup, ...]
    given: JsonObject
    """Settings of the strategy's parameters, over the script's."""
    given_variables: JsonObject = field(default_factory=dict)
    """Of the workflow, over the script's."""
    attached: AttachedFiles = field(default_factory=AttachedFiles)
    servers: tuple[McpServer, ...] = ()
    notice: str = ""
    """About the script; often empty."""

    @property
    def written(self) -> Script:
        """The script, or an empty one."""
        return self.script or UNWRITTEN

    @property
    def price_limit(self) -> PriceLimit | None:
        """For one run with all its turns; the command line's goes before the script's."""
        most = self.attached.limits.price or self.written.limits.price
        if most is None:
            return None
        return PriceLimit(most)

    @property
    def api_fails(self) -> Mapping[str, ApiFault]:
        """By tool; ParameterError for a tool that is not offered."""
        faults = self.written.api_fails
        names = {offered.name for setup in self.tools for offered in setup.tools}
        names |= set(self.recorded_names)
        for name in () if self.servers else faults:  # servers say what they have when they are asked
            refuse_unknown("tool for api_fails", name, sorted(names))
        return faults

    @property
    def recorded_names(self) -> tuple[str, ...]:
        """Of tools."""
        return tuple(name for _, name in self.written.recorded.tool_names)

    @property
    def notices(self) -> tuple[str, ...]:
        of_tools = (notice for setup in self.tools for notice in setup.notices)
        recorded = ", ".join(self.recorded_names)
        of_script = f"tools that answer from a recording: {recorded}" if recorded else ""
        doubtful = doubts(self.strategy.parameters, {**self.written.params, **self.given})
        return tuple(filter(None, (self.notice, *doubtful, *of_tools, of_script)))

    def question(self, query: str | None) -> str:
        if query is not None:
            return query
        if self.script is None:
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
        return self.script.query

    def with_settings(self, assignments: Iterable[str]) -> Self:
        """With `--param KEY=VALUE` pairs, the last of which counts."""
        given = typed_settings(self.strategy, assignments)
        if "query" in given:
            raise ParameterError("--param query: a question is given with --query, or typed in a chat")
        return replace(self, given={**self.given, **given})

    def sets(self, name: str) -> bool:
        """Whether the script or the command line sets the parameter."""
        return name in self.given or name in self.written.params

    def follow_ups(self, question: str) -> tuple[FollowUp, ...]:
        """What the script's user says after this question, which is the script's own or another."""
        if not self.written.begins_with(question):
            return ()
        for number, said in enumerate(self.written.then, start=1):
            if said.approval is not None and "approval" not in {each.name for each in self.strategy.parameters}:
                raise ParameterError(f"then {number}: {self.strategy.identity.name} has no parameter 'approval'")
        return self.written.then

    def check(self, question: str) -> None:
        """ParameterError for what the node would refuse, before anything starts: files have no URLs yet."""
        for files in (self.attached.first, *(files for _, files in self.attached.said[1:])):
            self.values(question, [file.described("") for file in files])

    def values(self, question: str, files: Sequence[JsonObject] = ()) -> JsonObject:
        """The settings: the script's, over them the question, over them the command line's.

        ParameterError for unknown parameters and for values that Dify's node refuses.
        """
        values = {**self.written.params, "query": {"variable": QUESTION}, **self.given}
        if files and FILES not in str(values):
            values = {file_parameter(self.strategy): {"variable": FILES}, **values}
        declared = [each for each in self.strategy.parameters if each.type not in PICKED]
        for each in declared:
            value = values.get(each.name)
            if each.type == "string" and isinstance(value, dict | list) and not is_marked(value):
                values[each.name] = json.dumps(value, ensure_ascii=False)  # as a person would type it
        node_parameters(declared, values, NodeVariables(self.variables(question, files)))
        return values

    def variables(self, question: str, files: Sequence[JsonObject] = (), turn: int = 1) -> JsonObject:
        """By `node.name`; includes the system variables that a chatflow always has."""
        variables = {**self.written.variables, **self.given_variables}
        if QUESTION in variables:
            raise ParameterError(f"variable {QUESTION!r} is the question itself: give it as query, or with --query")
        if files and FILES in variables:
            raise ParameterError(f"variable {FILES!r} is what --file and a script's files give: leave out one of them")
        return {FILES: list(files), CONVERSATION: "", DIALOGUE_COUNT: turn, **variables, QUESTION: question}

    def files(self, question: str, files: Sequence[JsonObject] = ()) -> tuple[JsonObject, ...]:
        """The question's files, from any parameter."""
        variables = NodeVariables(self.variables(question, files))
        values = self.values(question, files)
        return files_among({name: resolved(value, variables) for name, value in values.items()})


# Whether a script has turns for the strategy that runs.


def for_another_strategy(script: Script, strategy: Strategy, written_for: str) -> tuple[Script, str]:
    """The script for a strategy that has not all its parameters, and what a person should know about it."""
    known = {parameter.name for parameter in strategy.parameters}
    left_out = ", ".join(name for name in script.params if name not in known)
    return (
        script.model_copy(update={"params": {name: script.params[name] for name in script.params.keys() & known}}),
        f"the script is written for {written_for}, which the plugin does not have: {strategy.identity.name} runs"
        + (f", without {left_out}" if left_out else ""),
    )


def refuse_misfit(scenario: Scenario) -> None:
    """For a scripted model: a real one answers whatever is asked."""
    script = scenario.script
    strategy = scenario.strategy.identity.name
    if script is None or script.fits:
        return
    both = ", ".join((*script.written_for, strategy))
    with about("script"):
        raise ParameterError(
            f"{script.place} has no turns for the strategy {strategy}, only for {' and '.join(script.written_for)}: "
            f"run one of those, or write `strategy: [{both}]` into the script if its turns fit both, "
            "or set OPENAI_API_KEY for a real model"
        )
