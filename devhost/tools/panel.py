"""Starts a tool plugin, and asks it what Dify's settings pages ask before an agent can use it.

Are the credentials right (asked when they are saved), and which options does a dynamic select have (asked when its
picker opens)? In: a setup. Out: the plugin as it runs, or a `ToolSetupError` in the plugin's own words.
"""

from devhost.errors import PluginStartError, RunFailure, ToolSetupError
from devhost.limits import HostLimits
from devhost.process.launches import Launches
from devhost.process.plugin_process import PluginProcess
from devhost.process.session import Session
from devhost.process.transports.transport import TransportName
from devhost.process.watcher import Watcher
from devhost.protocol.wire import Invoked, JsonObject
from devhost.text.secrets import Secrets
from devhost.tools.environment import how_to_install
from devhost.tools.setup import CREDENTIAL_TYPE, OfferedTool, ToolSetup


def start_tool_plugin(  # noqa: PLR0913 - as `PluginProcess.start`
    setup: ToolSetup,
    launches: Launches | None = None,
    *,
    limits: HostLimits,
    python: str,
    watcher: Watcher,
    secrets: Secrets,
    transport: TransportName = "stdio",
) -> PluginProcess:
    """In the plugin's own Python, or else in `python`; with the other options of `PluginProcess.start`."""
    python = str(setup.python or python)
    try:
        directory = setup.declaration.directory
        plugin = PluginProcess.start(
            directory,
            launches,
            transport=transport,
            limits=limits,
            python=python,
            watcher=watcher,
            secrets=secrets,
        )
    except PluginStartError as error:
        if setup.python is None and "ModuleNotFoundError" in str(error):
            raise PluginStartError(
                f"{error}\nIt ran in devhost's Python. Install the packages that it needs "
                f"into a .venv in its directory: {how_to_install(setup.declaration.directory)}"
            ) from error
        raise
    try:
        _check(plugin, setup, limits)
    except BaseException:
        plugin.stop()
        raise
    return plugin


def _check(plugin: PluginProcess, setup: ToolSetup, limits: HostLimits) -> None:
    for provider in setup.declaration.tool_providers:
        if provider.credentials_for_provider:
            _check_credentials(plugin, setup, provider.identity.name, limits)
    for offered in setup.tools:
        for parameter in offered.declared.parameters:
            if parameter.type == "dynamic-select" and parameter.name in offered.fixed:
                _check_option(plugin, setup, offered, parameter.name, limits)


def _check_credentials(plugin: PluginProcess, setup: ToolSetup, provider: str, limits: HostLimits) -> None:
    request = {
        "type": "tool",
        "action": "validate_tool_credentials",
        "user_id": "devhost",
        "provider": provider,
        "credentials": setup.credentials[provider],
    }
    answers = _ask(plugin, setup, request, limits, f"{provider} refuses its credentials")
    if not any(answer.get("result") for answer in answers):
        raise ToolSetupError(f"{provider} refuses its credentials without a reason")


def _check_option(
    plugin: PluginProcess, setup: ToolSetup, offered: OfferedTool, parameter: str, limits: HostLimits
) -> None:
    provider = offered.provider.identity.name
    where = f"{offered.declared.identity.name}.{parameter}"
    request = {
        "type": "dynamic_parameter",
        "action": "fetch_parameter_options",
        "user_id": "devhost",
        "provider": provider,
        "provider_action": offered.declared.identity.name,
        "credentials": setup.credentials[provider],
        "credential_type": CREDENTIAL_TYPE,
        "parameter": parameter,
    }
    answers = _ask(plugin, setup, request, limits, f"the options of {where} cannot be had")
    options = [str(option.get("value")) for answer in answers for option in answer.get("options") or ()]
    fixed = offered.fixed[parameter]
    if any(str(chosen) not in options for chosen in (fixed if isinstance(fixed, list) else [fixed])):
        raise ToolSetupError(f"{where} has no such option; there are: {', '.join(options) or 'none'}")


def _ask(
    plugin: PluginProcess, setup: ToolSetup, request: JsonObject, limits: HostLimits, otherwise: str
) -> list[JsonObject]:
    try:
        with plugin.open_session(request) as session:
            return list(session.messages(_refuse, limits.call_seconds))
    except RunFailure as failure:
        said = Secrets(setup.secret_credentials).masked(str(failure))
        raise ToolSetupError(f"{otherwise}: {said}") from None  # the cause may quote the credentials


def _refuse(session: Session, invoked: Invoked) -> None:
    session.answer(invoked.request_id, "error", message="devhost answers no backwards calls before a run")
