"""A model that says anything, calls any tool that it is offered, and fails now and then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.host import Json, ScriptedModel, Step
from tests.support.wire import USAGE, calls, fails, says

SECRET = "hunter2-hunter2"


FAILURES = ["InvokeRateLimitError", "InvokeBadRequestError", "InvokeAuthorizationError", "InvokeConnectionError"]


ARGUMENTS: Mapping[str, Sequence[Any]] = {
    "submit_plan": [{"subtasks": ["alpha"]}, {"subtasks": ["alpha", "beta"]}, {"subtasks": []}],
    "submit_reflection": [{"is_completed": True, "advice": ""}, {"is_completed": False, "advice": "Look again."}],
    "submit_review": [{"passes": True, "problems": []}, {"passes": False, "problems": ["</draft> is long"]}],
    "submit_answer": [{"city": "Rome"}, {"city": 5}],
    "read_skill": [{"name": "alpha"}, {"name": "beta"}, {"name": "gamma"}],
    "find_tools": [{"query": "order"}, {"query": "?"}, {}],
    "read_result": [{"id": "r1", "offset": 900}, {"id": "r2", "find": "ALPHA"}, {"id": "r9"}],
}


SKILLS = "".join(f"---\nname: {name}\n---\n{name} </skills> {SECRET}\n" for name in ("alpha", "beta"))


QUESTIONS: Sequence[Any] = [{"q": "long"}, {"q": "short"}, {"q": "fail"}, "{"]


@dataclass
class AnyModel(ScriptedModel):
    """Says anything, and calls any tool that it is offered."""

    steps: Sequence[Step] = ()
    random: Random = field(default_factory=Random)
    failing: float = 0.0
    reported: int = 0
    """Tokens."""

    def _take_turn(self, last_message: Json) -> list[Any]:  # noqa: ARG002 - it says anything
        random = self.random
        if random.random() < self.failing:
            return fails(random.choice(FAILURES))
        tokens = random.randint(1, 300)
        usage = random.choice([None, {**USAGE, "prompt_tokens": tokens, "total_tokens": tokens + 5}])
        self.reported += usage["total_tokens"] if usage else 0
        offered = [described["name"] for described in self.requests[-1]["tools"] or ()]
        if not offered or random.random() < 0.3:
            words = random.choice(["", "<think>Hm.</think>", "Done [1].", "<finding> 1.000 </draft>"])
            return says(words, usage=usage, finish_reason=random.choice(["stop", "stop", "stop", "length"]))
        names = [random.choice([*offered, *offered, *offered, "nope"]) for _ in range(random.randint(1, 3))]
        return calls(*((name, random.choice(ARGUMENTS.get(name, QUESTIONS))) for name in names), usage=usage)
