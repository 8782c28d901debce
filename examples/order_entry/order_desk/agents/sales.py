"""The sales agent: each message is a run, which goes on from the state of the last one."""

from collections import Counter
from typing import Protocol

from devhost import Host, ModelBackend, Run
from devhost.conversation import KeptState
from devhost.models.scripted.script import Script

NEEDS_APPROVAL = "request_order"
"""The one tool that acts on the world."""
OUTPUTS = "state, tool_results"


class ChooseModel(Protocol):
    def __call__(self, script: Script, question: str, *, asked: int) -> ModelBackend: ...


class SalesAgent:
    def __init__(self, host: Host, script: Script, strategy: str, conversation: str, choose: ChooseModel) -> None:
        self._host = host
        self._script = script
        self._strategy = strategy
        self._conversation = conversation
        self._choose = choose
        self._state = KeptState()
        self._asked: Counter[str] = Counter()

    @property
    def waits(self) -> bool:
        """Whether a call waits for the user's approval."""
        return bool(self._state.waiting)

    def run(self, text: str, message: str) -> Run:
        """`text`: what the user wrote. `message`: the same with its context."""
        model = self._choose(self._script, text, asked=self._asked[text])
        self._asked[text] += 1
        parameters = {
            **self._script.params,
            "query": {"constant": message},
            "approval_required": NEEDS_APPROVAL,
            "approval": {"constant": text},
            "state": {"constant": self._state.text},
            "extra_outputs": OUTPUTS,
        }
        run = self._host.run(self._strategy, parameters, model=model, conversation_id=self._conversation)
        self._state = self._state.after(run)
        return run
