"""The types of nodes, and what each puts into the variable pool (graphon 0.8.0; the Agent node is Dify's own)."""

from collections.abc import Callable, Mapping

from devhost.flow.document import FlowNode
from devhost.plugin.declaration import Strategy

type Outputs = frozenset[str] | None
"""None if any name may be there."""

PLAYED = frozenset(
    {
        *("start", "end", "answer", "if-else", "agent", "llm", "question-classifier", "parameter-extractor"),
        *("knowledge-retrieval", "code", "template-transform", "assigner", "variable-aggregator"),
        *("iteration", "iteration-start", "loop", "loop-start", "loop-end", "list-operator", "document-extractor"),
        *("http-request", "tool", "human-input"),
    }
)
HELP = {
    "trigger-webhook": "give the flow a Start node, and what the trigger brings as its fields",
    "trigger-schedule": "give the flow a Start node",
    "trigger-plugin": "give the flow a Start node, and what the trigger brings as its fields",
    "variable-assigner": "it is the old Variable Aggregator: add a new one in its place",
    "datasource": "a knowledge pipeline runs only in Dify",
    "knowledge-index": "a knowledge pipeline runs only in Dify",
}
"""What would help, by the type of a node that devhost does not play."""
OF_A_FAILURE = frozenset({"error_message", "error_type"})
OF_AN_AGENT = frozenset({"text", "files", "json", "usage"})
FIXED: Mapping[str, frozenset[str]] = {
    "llm": frozenset({"text", "usage", "reasoning_content", "structured_output", "files", "finish_reason"}),
    "knowledge-retrieval": frozenset({"result"}),
    "template-transform": frozenset({"output"}),
    "question-classifier": frozenset({"class_name", "class_id", "class_label", "usage"}),
    "http-request": frozenset({"body", "status_code", "headers", "files"}),
    "list-operator": frozenset({"result", "first_record", "last_record"}),
    "document-extractor": frozenset({"text"}),
    "iteration": frozenset({"output", "item", "index"}),
    "if-else": frozenset({"result", "selected_case_id"}),
    "answer": frozenset({"answer", "files"}),
}


def outputs_of(node: FlowNode, strategies: Mapping[str, Strategy]) -> Outputs:
    """The names behind which another node may find something."""
    found = _own_outputs(node, strategies)
    return found if found is None or not node.data.get("error_strategy") else found | OF_A_FAILURE


def _own_outputs(node: FlowNode, strategies: Mapping[str, Strategy]) -> Outputs:
    if node.type in FIXED:
        return FIXED[node.type]
    named = NAMED.get(node.type)
    if named is not None:
        return named(node)
    if node.type == "agent":
        strategy = strategies.get(str(node.data.get("agent_strategy_name")))
        return None if strategy is None or strategy.output_schema is None else OF_AN_AGENT | _properties(strategy)
    return None


def _properties(strategy: Strategy) -> frozenset[str]:
    properties = (strategy.output_schema or {}).get("properties")
    return frozenset(properties if isinstance(properties, dict) else ())


def _names(entries: object, key: str) -> frozenset[str]:
    """What each entry of a list has under a key."""
    listed = entries if isinstance(entries, list) else []
    return frozenset(str(entry[key]) for entry in listed if isinstance(entry, dict) and key in entry)


def _of_code(node: FlowNode) -> Outputs:
    outputs = node.data.get("outputs")
    return frozenset(outputs if isinstance(outputs, dict) else ())


def _of_aggregator(node: FlowNode) -> Outputs:
    settings = node.data.get("advanced_settings")
    if isinstance(settings, dict) and settings.get("group_enabled"):
        return _names(settings.get("groups"), "group_name")
    return frozenset({"output"})


NAMED: Mapping[str, Callable[[FlowNode], Outputs]] = {
    "start": lambda node: _names(node.data.get("variables"), "variable"),
    "code": _of_code,
    "variable-aggregator": _of_aggregator,
    "parameter-extractor": lambda node: (
        _names(node.data.get("parameters"), "name") | {"__is_success", "__reason", "__usage"}
    ),
    "loop": lambda node: _names(node.data.get("loop_variables"), "label") | {"loop_round"},
    "human-input": lambda node: (
        _names(node.data.get("inputs"), "output_variable_name") | {"__action_id", "__rendered_content"}
    ),
}

SOURCE = "source"
"""Where an edge leaves a node that has no branches."""
AFTER_AN_ERROR = frozenset({"success-branch", "fail-branch"})


def handles_of(node: FlowNode) -> frozenset[str]:
    """Where edges may leave the node."""
    match node.type:
        case "if-else":
            return (_names(node.data.get("cases"), "case_id") or frozenset({"true"})) | {"false"}
        case "question-classifier":
            branches = _names(node.data.get("classes"), "id")
        case "human-input":
            return _names(node.data.get("user_actions"), "id") | {"__timeout"}
        case _:
            branches = frozenset({SOURCE})
    return branches | AFTER_AN_ERROR if node.data.get("error_strategy") == "fail-branch" else branches
