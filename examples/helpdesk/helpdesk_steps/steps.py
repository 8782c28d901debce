"""The steps of `gpt5_plan_and_reflect`, to be called alone: from a Python prompt, or `python -m examples.helpdesk`.

Each is one run of the agent with the request that the strategy makes; what the strategy takes by a call of its own tool
comes by `answer_schema` here. The README shows both ways.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devhost import Host, ModelBackend, Run
from prompt import template

STRATEGY = "gpt5_function_calling"
MOST = 4
"""Subtasks of a plan."""


@dataclass(frozen=True)
class Finding:
    subtask: str
    answer: str
    results: tuple[str, ...] = ()
    """What the tools returned."""


@dataclass(frozen=True)
class Steps:
    host: Host
    """With the help desk's tools."""
    model: ModelBackend
    instruction: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)
    """Texts in place of PLAN_POLICY, REFLECTION_POLICY and ANSWER_POLICY, by these names."""

    def plan(self, question: str) -> list[str]:
        request = template.PLAN_REQUEST.format(
            task=question, policy=self._policy("PLAN_POLICY").replace("{most}", str(MOST))
        )
        schema = {"subtasks": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST}}
        return list(self._object(request, schema)["subtasks"])

    def subtask(self, question: str, plan: Sequence[str], number: int) -> Finding:
        """`number` counts from 1."""
        name = plan[number - 1]
        request = template.SUBTASK_REQUEST.format(task=question, plan=_numbered(plan), subtask=name)
        run = self._run(
            request, {"extra_outputs": "tool_results", "maximum_iterations": 4, "show_sources": False}, with_tools=True
        )
        results = tuple(each["text"] for each in run.outputs.variables["tool_results"])
        return Finding(name, run.outputs.text, results)

    def reflect(self, plan: Sequence[str], finding: Finding) -> Mapping[str, Any]:
        """Has `is_completed`, and `advice` for the next attempt."""
        request = template.REFLECTION_REQUEST.format(
            plan=_numbered(plan),
            results="\n\n".join(finding.results) or template.NO_RESULTS,
            answer=finding.answer,
            subtask=finding.subtask,
            policy=self._policy("REFLECTION_POLICY"),
            earlier="",
        )
        return self._object(request, {"is_completed": {"type": "boolean"}, "advice": {"type": "string"}})

    def answer(self, question: str, findings: Sequence[Finding]) -> str:
        found = "\n\n".join(f"{each.subtask}\n{each.answer}" for each in findings)
        policy = self._policy("ANSWER_POLICY")
        return self._run(template.ANSWER_REQUEST.format(task=question, findings=found, policy=policy)).outputs.text

    def _policy(self, name: str) -> str:
        return self.policies.get(name, getattr(template, name))

    def _object(self, request: str, properties: Mapping[str, object]) -> Mapping[str, Any]:
        schema = {"type": "object", "properties": properties, "required": [*properties]}
        request = request.replace("submit_plan", "submit_answer").replace("submit_reflection", "submit_answer")
        return dict(self._run(request, {"answer_schema": schema}).outputs.variables["structured_output"])

    def _run(self, request: str, given: Mapping[str, object] | None = None, *, with_tools: bool = False) -> Run:
        parameters = {"instruction": self.instruction, "query": request, **(given or {})}
        run = self.host.run(STRATEGY, parameters, model=self.model, tools=None if with_tools else ())
        if run.error is not None:
            raise RuntimeError(run.error.message)
        return run


def _numbered(plan: Sequence[str]) -> str:
    return "\n".join(f"{number}. {subtask}" for number, subtask in enumerate(plan, start=1))
