"""What the options of many commands say: values of parameters, tools with their credentials, an example."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.errors import ParameterError, naming
from devhost.home import REPOSITORY
from devhost.node.parameters import is_marked
from devhost.plugin.credentials import credentials_in, environment_name
from devhost.plugin.declaration import Parameter, PluginDeclaration, Strategy
from devhost.protocol.wire import JsonObject
from devhost.text import json_or, real_path
from devhost.tools.setup import Texts, ToolSetup
from devhost.words import refuse_unknown

FILES = "sys.files"
"""The variable that the files of a question are, as in a chatflow."""
LIST_OF_FILES = "array[file]"


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
        if is_text:
            settings[name] = text
        else:
            settings[name] = value
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


# The examples.

EXAMPLES = "examples"
SCRIPT = "script.yaml"
SCENARIOS = "scenarios"
"""The folder of an example's other scripts."""


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
