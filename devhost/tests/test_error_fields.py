"""An error about one thing that a person gave names it, so that a form and a command line can point to it."""

from collections.abc import Callable
from typing import Any

import pytest

from devhost.errors import HostError
from devhost.host.host import find_strategy
from devhost.models.openai_api.backend import open_model
from devhost.node.parameters import NodeVariables, node_parameters
from devhost.plugin.declaration import PluginDeclaration
from devhost.tools.setup import ToolSetup
from support.plugins import CHARTS, PUPPET

KEY = {"charts": {"api_key": "ck_1234567890"}}


def settle(name: str, value: object) -> None:
    (strategy,) = PluginDeclaration.read(PUPPET).strategy_providers[0].strategies
    declared = [parameter for parameter in strategy.parameters if parameter.name == name]
    node_parameters(declared, {name: value}, NodeVariables({}))


def charts(tool: dict[str, str], **credentials: str) -> None:
    ToolSetup.read(CHARTS, credentials={"charts": {**KEY["charts"], **credentials}}, fixed={"draw_chart": tool})


def asked(**options: object) -> None:
    given: dict[str, Any] = {"key": "", "base_url": "", "api": "chat", "name": "gpt-5", "completion_params": {}}
    open_model(**{**given, "features": None, **options})


@pytest.mark.parametrize(
    ("mistake", "field"),
    [
        (lambda: settle("files", {"variable": "start.gone"}), "param.files"),
        (lambda: settle("mood", "furious"), "param.mood"),
        (lambda: charts({}, api_key="", region="mars"), "credential.charts.api_key"),
        (lambda: charts({}, colour="red"), "credential.charts.colour"),
        (lambda: charts({"depth": "1"}), "set.draw_chart.depth"),
        (lambda: charts({"kind": "pie"}), "set.draw_chart.kind"),
        (lambda: ToolSetup.read(PUPPET), "tools"),
        (lambda: find_strategy(PluginDeclaration.read(PUPPET), "nope"), "strategy"),
        (lambda: asked(name=None, base_url="http://127.0.0.1:1/v1"), "model"),
        (lambda: asked(features=("sight",)), "features"),
    ],
)
def test_an_error_names_its_field(mistake: Callable[[], object], field: str) -> None:
    with pytest.raises(HostError) as refused:
        mistake()

    assert refused.value.field == field
