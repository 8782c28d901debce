"""Option values that many commands share: parameters, tools with their credentials, and an example."""

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
"""The variable that holds the files of a question, as in a chatflow."""
LIST_OF_FILES = "array[file]"


def file_parameter(strategy: Strategy) -> str:
    """Return the parameter in which the strategy takes files."""
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
    """Parse KEY=VALUE pairs. A value that is JSON is parsed, and any other value is a text."""
    return {key: json_or(text, text) for key, text in pairs(assignments, option)}


def typed_settings(strategy: Strategy, assignments: Iterable[str]) -> JsonObject:
    """Parse `--param KEY=VALUE` pairs. A text field keeps the typed text, and other widgets get the parsed JSON."""
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
    """Split KEY=VALUE pairs. With `hidden`, errors do not quote a pair, because all of it may be a secret.

    A secret in base64 may end with equals signs, so trailing equals signs do not make a pair.
    """
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        is_secret = hidden and "." not in key and not text.strip("=")
        if not equals or not key or is_secret:
            raise ParameterError(f"{option}{'' if hidden else f' {key!r}'} is not KEY=VALUE")
        yield key, text


def _is_text_field(parameter: Parameter) -> bool:
    """Return whether the user types the value as text. A number with both bounds is a slider."""
    is_slider = parameter.min is not None and parameter.max is not None
    return parameter.type in TEXT_FIELDS or (parameter.type == "number" and not is_slider)


# The options about tools, grouped by plugin.
#
# No message ever quotes a value, because it may be a secret.


def read_tool_setups(  # noqa: PLR0913 - a command's options about tools
    directories: Iterable[Path],
    credentials: Iterable[str],
    settings: Iterable[str],
    environment: MutableMapping[str, str],
    panel: Texts | None = None,
    *,
    validated: bool = True,
) -> list[ToolSetup]:
    """Read the tool plugins with their credentials and settings. Settings override the `panel` of a script.

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
    """Return the credentials by full provider id.

    Given credentials override those in the environment, which are removed from it.
    """
    providers = {plugin.provider_id(each): each for plugin in plugins for each in plugin.tool_providers}
    names = {full: each.identity.name for full, each in providers.items()}
    given = _by_owner(credentials, "--credential", "tool provider", names)
    texts = {
        full: {**credentials_in(environment, names[full], providers[full].credentials), **given.get(full, {})}
        for full in names
    }
    for name in (environment_name(names[full], key) for full in names for key in providers[full].credentials):
        environment.pop(name, None)  # two providers with the same name read the same variable
    return texts


def _by_owner(
    assignments: Iterable[str], option: str, kind: str, names: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Group OWNER.KEY=VALUE pairs by the owner's full id. OWNER is the id, the name, or the last part of the name."""
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
    """Return the folder of the plugin's own examples, or else the examples of devhost's repository."""
    own = plugin / EXAMPLES
    if own.is_dir() or REPOSITORY is None:
        return own
    return REPOSITORY / EXAMPLES


@dataclass(frozen=True)
class Example:
    name: str
    directory: Path
    file: Path
    """The chosen script."""

    @classmethod
    def find(cls, examples: Path, name: str, scenario: str | None = None) -> "Example":
        refuse_unknown("example", name, sorted(file.parent.name for file in examples.glob(f"*/{SCRIPT}")))
        folder = examples / name
        if scenario is None:
            return cls(name, folder, folder / SCRIPT)
        files = {file.stem: file for file in sorted((folder / SCENARIOS).glob("*.yaml"))}
        refuse_unknown(f"scenario of {name}", scenario, files)
        return cls(name, folder, files[scenario])
