"""All checks of a flow.

In: the file and what is given for it. Out: notices, or one FlowFileError with every sentence.
"""

from collections.abc import Iterable, Mapping

from packaging.version import InvalidVersion, Version

from devhost.errors import FlowFileError
from devhost.flow.checks.graph import wrong_in_graph
from devhost.flow.checks.inputs import wrong_inputs, wrong_variables
from devhost.flow.checks.outside import not_allowed
from devhost.flow.checks.publishing import missing_dependencies, not_published
from devhost.flow.checks.references import unset_variables
from devhost.flow.checks.strategies import of_other_providers, wrong_strategies
from devhost.flow.document import FlowFile
from devhost.flow.forms.declared import wrong_forms
from devhost.flow.outside.allowed import NOTHING, Allowed
from devhost.flow.tools.named import missing_tools
from devhost.flow.tools.parameters import unknown_parameters
from devhost.plugin.declaration import PluginDeclaration, Strategy

DSL = Version("0.6.0")
"""The newest version of Dify's DSL that devhost was written for."""


def check_flow(
    file: FlowFile,
    inputs: Mapping[str, object],
    plugin: PluginDeclaration | None,
    tools: Iterable[PluginDeclaration] = (),
    allowed: Allowed = NOTHING,
) -> tuple[str, ...]:
    """`plugin`: that of the flow's agents, None for a flow without one; `tools`: tool plugins. Out: the notices."""
    strategies, tools = _strategies(plugin), tuple(tools)
    wrong = wrong_in_file(file, plugin)
    if not list(wrong_in_graph(file)):  # what follows would only repeat it in other words
        wrong += wrong_inputs(file, inputs)
        wrong += not_allowed(file, allowed)
        wrong += missing_tools(file, strategies.values(), tools)
        wrong += unknown_parameters(file, tools)
    refuse(file, wrong)
    others = () if plugin is None else of_other_providers(file, plugin)
    return (*_newer(file), *seen_in_the_editor(file, plugin), *others)


def wrong_in_file(file: FlowFile, plugin: PluginDeclaration | None) -> list[str]:
    """What makes the file unplayable, whatever else is given."""
    if wrong := [*_wrong_version(file), *wrong_in_graph(file)]:
        return wrong
    wrong = [*unset_variables(file, _strategies(plugin)), *wrong_forms(file), *wrong_variables(file)]
    return wrong if plugin is None else [*wrong, *wrong_strategies(file, plugin)]


def seen_in_the_editor(file: FlowFile, plugin: PluginDeclaration | None) -> list[str]:
    """What Dify's editor says about the app when it is imported or published."""
    strategies = _strategies(plugin)
    return [*not_published(file, strategies), *missing_dependencies(file, strategies.values())]


def _strategies(plugin: PluginDeclaration | None) -> dict[str, Strategy]:
    return {} if plugin is None else {name: strategy for name, (_, strategy) in plugin.strategies.items()}


def refuse(file: FlowFile, wrong: Iterable[str]) -> None:
    """FlowFileError if anything is wrong; one sentence a line."""
    sentences = list(wrong)
    if sentences:
        raise FlowFileError(f"{file.path} cannot be played:" + "".join(f"\n  {sentence}" for sentence in sentences))


def _wrong_version(file: FlowFile) -> list[str]:
    try:
        version = Version(file.version or str(DSL))
    except InvalidVersion:
        return [f"version: {file.version!r} is not a version of Dify's DSL, such as {DSL}"]
    if version.major > DSL.major:
        return [f"version: the file is DSL {version}, and devhost reads {DSL.major}.x; export it from an older Dify"]
    return []


def _newer(file: FlowFile) -> list[str]:
    if not file.version or Version(file.version) <= DSL:
        return []
    return [f"the file is DSL {file.version}, newer than {DSL}: new fields of its nodes have no effect here"]
