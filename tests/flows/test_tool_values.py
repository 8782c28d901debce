"""What a tool gets of a Tool node, beside Dify's own decisions."""

from typing import Any, cast

from graphon.nodes.tool.entities import ToolNodeData
from graphon.nodes.tool.exc import ToolNodeError
from graphon.nodes.tool.tool_node import ToolNode
from graphon.nodes.tool_runtime_entities import ToolRuntimeParameter
from graphon.runtime.variable_pool import VariablePool

from devhost.errors import NodeParameterError
from devhost.flow.engine.nodes import settings_of
from devhost.flow.loaded import as_handed_on
from devhost.plugin.casting import cast_given
from devhost.protocol.wire import JsonObject
from support.flow_documents import node
from support.tool_values import VARIABLES, Decision, decisions, differing

POOL = VariablePool()
for name, value in VARIABLES.items():
    POOL.add(name.split("."), value)


def decided(decision: Decision) -> JsonObject:
    kind = {"form": "tool_configurations", "llm": "tool_parameters"}[str(decision.declared.form)]
    version = {"legacy": {}, "2": {"tool_node_version": "2"}}[decision.version]
    data: JsonObject = {
        **dict.fromkeys(("provider_id", "provider_name", "tool_name", "tool_label"), "x"),
        "provider_type": "builtin",
        "tool_configurations": {},
        "tool_parameters": {},
        **version,
        kind: decision.given,
    }
    (handed,) = as_handed_on({"nodes": [node("tool", "t", **data)], "edges": []})["nodes"]
    try:
        return _outcome(decision, ToolNodeData.model_validate(handed["data"]))
    except NodeParameterError as error:
        return {"fails": error.words}
    except ToolNodeError as error:
        return {"fails": str(error)}


def _outcome(decision: Decision, data: ToolNodeData) -> JsonObject:
    settings = settings_of([decision.declared], data, {"legacy": None, "2": POOL}[decision.version])
    given = ToolNode._generate_parameters(
        cast("Any", None),  # it reads nothing of the node
        tool_parameters=[ToolRuntimeParameter("p", decision.declared.required)],
        variable_pool=POOL,
        node_data=data,
    )
    values = cast_given([decision.declared], {**given, **settings})
    if "p" not in values:
        return {}
    return {"gets": values["p"]}


def test_a_tool_gets_what_difys_tool_node_gives_it() -> None:
    assert differing(decisions("tool"), decided) == []
