"""The options about tools, sorted by the plugins that they are about.

In: `--tools`, `--credential PROVIDER.KEY=VALUE`, `--set TOOL.PARAM=VALUE`, the environment. Out: a `ToolSetup` for each
plugin. No sentence ever quotes a value: it may be a secret.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from pathlib import Path

from devhost.errors import ParameterError
from devhost.plugin.credentials import environment_name
from devhost.plugin.declaration import PluginDeclaration
from devhost.text.user_file import real_path
from devhost.tools.setup import Texts, ToolSetup

type Owners = dict[str, list[str]]
"""The full names for each name that may be written: a short name can mean several."""


def read_tool_setups(
    directories: Iterable[Path],
    credentials: Iterable[str],
    settings: Iterable[str],
    environment: MutableMapping[str, str],
    panel: Texts | None = None,
) -> list[ToolSetup]:
    """`panel`: of a script; the settings go before it.

    Credentials are removed from the environment, because every process that devhost starts inherits it.
    """
    plugins = [PluginDeclaration.read(directory) for directory in dict.fromkeys(map(real_path, directories))]
    credential_texts = read_credentials(plugins, credentials, environment)
    scripted = [f"{tool}.{name}={text}" for tool, texts in (panel or {}).items() for name, text in texts.items()]
    of_script, given = (
        _by_owner(assignments, option, "TOOL.PARAM=VALUE", "tool", _owners(plugins, _tools))
        for assignments, option in ((scripted, "panel"), (settings, "--set"))
    )
    setups = []
    for plugin in plugins:
        of_providers = {name: credential_texts[full] for full, name in _providers(plugin)}
        of_tools = {name: {**of_script.get(full, {}), **given.get(full, {})} for full, name in _tools(plugin)}
        setups.append(ToolSetup.of(plugin, of_providers, of_tools))
    return setups


def read_credentials(
    plugins: Sequence[PluginDeclaration], credentials: Iterable[str], environment: MutableMapping[str, str]
) -> Texts:
    """By the whole id of a provider: those of the environment, which are removed from it, and over them the given."""
    given = _by_owner(credentials, "--credential", "PROVIDER.KEY=VALUE", "tool provider", _owners(plugins, _providers))
    return {full: {**taken, **given.get(full, {})} for full, taken in _taken_from(environment, plugins).items()}


def _providers(plugin: PluginDeclaration) -> list[tuple[str, str]]:
    return [(plugin.provider_id(provider), provider.identity.name) for provider in plugin.tool_providers]


def _tools(plugin: PluginDeclaration) -> list[tuple[str, str]]:
    return [
        (f"{plugin.provider_id(provider)}/{tool.identity.name}", f"{provider.identity.name}/{tool.identity.name}")
        for provider in plugin.tool_providers
        for tool in provider.tools
    ]


def _owners(
    plugins: Sequence[PluginDeclaration], named: Callable[[PluginDeclaration], list[tuple[str, str]]]
) -> Owners:
    """A tool is known by its name, provider/name, and both with the whole id of the provider; a provider likewise."""
    owners: Owners = defaultdict(list)
    for plugin in plugins:
        for full, short in named(plugin):
            for name in dict.fromkeys((short.rpartition("/")[2], short, full)):
                owners[name].append(full)
    return owners


def _by_owner(assignments: Iterable[str], option: str, form: str, kind: str, owners: Owners) -> Texts:
    sorted_out: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        target, equals, value = assignment.partition("=")
        owner, dot, key = target.rpartition(".")
        if not (equals and dot and owner and key):
            written = f" {target!r}" if equals else ""  # without a sign of equality all of it may be the secret
            raise ParameterError(f"{option}{written} is not {form}")
        full_names = owners.get(owner, [])
        if not full_names:
            there_are = ", ".join(name for name in owners if "/" not in name) or "none"
            raise ParameterError(f"{option} {target}: there is no {kind} {owner!r}; there are: {there_are}")
        if len(full_names) > 1:
            raise ParameterError(
                f"{option} {target}: {owner!r} is the name of several; say which: {', '.join(full_names)}"
            )
        sorted_out.setdefault(full_names[0], {})[key] = value
    return sorted_out


def _taken_from(
    environment: MutableMapping[str, str], plugins: Iterable[PluginDeclaration]
) -> dict[str, dict[str, str]]:
    fields = [
        (plugin.provider_id(provider), key, environment_name(provider.identity.name, key))
        for plugin in plugins
        for provider in plugin.tool_providers
        for key in provider.credentials_for_provider
    ]
    taken: dict[str, dict[str, str]] = {
        plugin.provider_id(provider): {} for plugin in plugins for provider in plugin.tool_providers
    }
    for full, key, name in fields:
        if name in environment:
            taken[full][key] = environment[name]
    for _, _, name in fields:  # two providers of one name read the same variable
        environment.pop(name, None)
    return taken
