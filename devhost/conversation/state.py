"""A strategy's state from run to run, as a chatflow keeps it in a conversation variable.

In: runs, one after the other. Out: the text for the next run's parameter `state`, and the calls that wait in it. The
text is never read here: only the strategy knows what it holds.
"""

from dataclasses import dataclass

from devhost.node.outputs.run import Run
from devhost.plugin.declaration import Strategy

STATE, APPROVAL = "state", "approval"
"""The parameters. The first is also the name of the variable that a run puts out."""
ACT_ON_NOTHING = frozenset({"llm", "llm_structured_output", "system_summary"})
"""Types of backwards calls."""


def takes_state(strategy: Strategy) -> bool:
    """Whether the node has a field for a state and one for the user's answer to calls that wait."""
    texts = {parameter.name for parameter in strategy.parameters if parameter.type == "string"}
    return {STATE, APPROVAL} <= texts


@dataclass(frozen=True)
class KeptState:
    """What the last run left; without a text, it left nothing."""

    text: str = ""
    waiting: tuple[object, ...] = ()
    """The calls that wait for the user's answer, as the run put them out."""

    def after(self, run: Run) -> "KeptState":
        """A failed run leaves the state as it was, unless a call that waited in it may have been made.

        With the old state, the user's next yes would make the call again.
        """
        if run.error is None:
            text = run.outputs.variables.get(STATE)
            return KeptState(text, tuple(run.outputs.pending_calls)) if text and isinstance(text, str) else KeptState()
        may_have_acted = bool(run.asked.keys() - ACT_ON_NOTHING)
        return KeptState() if self.waiting and may_have_acted else self

    def note_on(self, run: Run) -> str:
        """What the person has to know of the state after this run; empty after most."""
        if run.error is None or not self.waiting:
            return ""
        if self.after(run).text:
            return "This run called no tool, so the calls still wait."
        return (
            "The state is dropped: calls waited in it, and this run called tools before it ended. With that state, "
            "another yes could make the same calls twice. The node's memory is left."
        )
