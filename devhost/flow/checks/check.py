"""All checks of a flow.

In: the file and what is given for it. Out: notices, or one FlowFileError with every sentence.
"""

from collections.abc import Iterable, Mapping

from packaging.version import InvalidVersion, Version

from devhost.errors import FlowFileError
from devhost.flow.checks.graph import unreached, wrong_in_graph
from devhost.flow.checks.inputs import wrong_inputs, wrong_variables
from devhost.flow.checks.outside import not_allowed
from devhost.flow.checks.references import unset_variables
from devhost.flow.checks.strategies import of_other_providers, wrong_strategies
from devhost.flow.document import FlowFile
from devhost.flow.forms.declared import wrong_forms
from devhost.flow.outside.allowed import NOTHING, Allowed
from devhost.flow.tools.named import missing_tools
from devhost.flow.tools.parameters import unknown_parameters
from devhost.plugin.declaration import PluginDeclaration

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
    strategies = {} if plugin is None else {name: strategy for name, (_, strategy) in plugin.strategies.items()}
    tools = tuple(tools)
    wrong = [*_wrong_version(file), *wrong_in_graph(file)]
    if not wrong:  # what follows would only repeat it in other words
        wrong = [*unset_variables(file, strategies), *wrong_inputs(file, inputs)]
        wrong += wrong_forms(file)
        wrong += not_allowed(file, allowed)
        wrong += missing_tools(file, strategies.values(), tools)
        wrong += unknown_parameters(file, tools)
        wrong += wrong_variables(file)
        wrong += [] if plugin is None else wrong_strategies(file, plugin)
    refuse(file, wrong)
    others = () if plugin is None else of_other_providers(file, plugin)
    return (*_newer(file), *unreached(file), *others)


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
