"""The steps of `gpt5_plan_and_reflect`, one by one: from a Python prompt, or `python -m examples.helpdesk step`.

Each runs the strategy's own code (internal/plan_and_reflect.py) in a plugin process: `strategy.py` says which. What a
step puts out is added to what is known, and the next step reads it.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devhost import Host, ModelBackend

from .plugin import STRATEGY, made_plugin

STEPS = ("plan", "select", "execute", "write", "reflect", "answer")
HELPDESK = Path(__file__).resolve().parents[1]

type Known = dict[str, Any]


class StepError(Exception):
    """A step failed, or what it was given is not enough."""


@dataclass(frozen=True)
class Steps:
    host: Host
    model: ModelBackend
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Parameters of `gpt5_plan_and_reflect`, such as `instruction` and `prompt_policy_overrides`."""

    def take(self, step: str, known: Known) -> Known:
        """What is known after the step; `known` needs the `question` and what the steps before put out."""
        given = {name: value for name, value in known.items() if name != "question"}
        asked = {"query": known["question"], "step": step, "given": json.dumps(given, ensure_ascii=False)}
        run = self.host.run(STRATEGY, {**self.parameters, **asked}, model=self.model)
        if run.error is not None:
            raise StepError(run.error.message)
        return {**known, **run.outputs.variables["step"]}


@contextmanager
def steps(model: ModelBackend, parameters: Mapping[str, object] | None = None) -> Iterator[Steps]:
    """The steps with the help desk's tools, as long as the block lasts."""
    with (
        tempfile.TemporaryDirectory(prefix="helpdesk-steps-") as folder,
        Host.start(made_plugin(Path(folder) / "gpt5_agent"), tools=[HELPDESK]) as host,
    ):
        yield Steps(host, model, parameters or {})
