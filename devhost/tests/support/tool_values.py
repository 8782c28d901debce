"""The recording of what becomes of a tool's parameter in a node: `tool-values.jsonl`, one setting at a time.

Each line of the file is one parameter of one node with a decision for every setting that its `sets` names.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from devhost.plugin.declaration import Parameter
from devhost.protocol.wire import JsonObject
from support.recordings import TOOL_VALUES, recorded

ABOUT: JsonObject = json.loads(TOOL_VALUES.read_text(encoding="utf-8").partition("\n")[0])
VARIABLES: Mapping[str, object] = ABOUT["variables"]
NOT_SET = "not set"
OTHER_WORDS = "'str' object has no attribute 'get'"
"""What Python says where the text of a variable broke the JSON of an agent's tools: devhost says that instead."""


@dataclass(frozen=True)
class Decision:
    """`setting`: as in the node's DSL, None if there is none. `expected`: the value under `gets`, or words."""

    declared: Parameter
    version: str
    setting: Any
    expected: JsonObject

    @property
    def is_legacy(self) -> bool:
        return self.version == "legacy"

    @property
    def given(self) -> JsonObject:
        if self.setting == NOT_SET:
            return {}
        return {"p": self.setting}

    def __str__(self) -> str:
        declared = self.declared.model_dump(include={"type", "form", "multiple", "required", "default"})
        return f"{declared} {self.version} {json.dumps(self.setting)}"


def decisions(node: str) -> Iterator[Decision]:
    for line in recorded(TOOL_VALUES, "tool_value"):
        if line["node"] == node:
            declared = {"name": "p", "label": {"en_US": "p"}, **line["declared"]}
            if declared["type"] == "select":
                declared["options"] = [
                    {"value": value, "label": {"en_US": value}} for value in ABOUT["options of a select"]
                ]
            parameter = Parameter.model_validate(declared)
            for setting, expected in zip(ABOUT["sets"][line["sets"]], line["decisions"], strict=True):
                yield Decision(parameter, line["version"], setting, expected)


def differing(found: Iterator[Decision], decide: Callable[[Decision], JsonObject]) -> list[str]:
    """One line for each decision that is not as recorded; booleans are not numbers."""
    told = ((each, decide(each)) for each in found)
    return [f"{each}: {said} in place of {each.expected}" for each, said in told if repr(said) != repr(each.expected)]
