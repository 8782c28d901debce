"""How many tokens and tool calls one run may use; all its loops and subtasks share one Budget.

In: what each try of a model call cost, and the judged calls of each turn. Out: the calls that may run, the limit that
is reached, and a note for the model when little is left.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from internal.report.events import StopReason
from internal.report.tool_calls import JudgedCall, RejectedCall, ValidCall
from internal.text.notes import OurWords
from internal.tools.toolbox import ToolKind
from prompt import template

NOTE_SHARE = 0.8
"""Of a limit; from then on little is left."""


@dataclass
class Budget:
    """What a run has used of its limits; a limit of 0 is none."""

    maximum_tokens: int = 0
    """Of prompts and completions, over all tries of all model calls."""
    maximum_calls: int = 0
    """That are sent to the host."""
    tokens: int = field(default=0, init=False)
    calls: int = field(default=0, init=False)
    """Sent, or about to be."""
    _has_estimates: bool = field(default=False, init=False)
    _told: set[Hashable] = field(default_factory=set, init=False)

    def spend(self, tokens: int, *, is_estimate: bool = False) -> None:
        self.tokens += tokens
        self._has_estimates = self._has_estimates or is_estimate

    def allow(self, judged: Iterable[JudgedCall]) -> tuple[JudgedCall, ...]:
        """Refuse the calls that go beyond a limit; the first ones may run, and are counted before they do.

        Calls that no tool has to run for stay as they are. Those that are not sent after all are given back.
        """
        return tuple(map(self._allow, judged))

    def give_back(self, calls: int) -> None:
        """Count so many calls less: they were allowed, and not sent."""
        self.calls -= calls

    def reached(self) -> StopReason | None:
        """The limit that is reached; of both the limit of tokens."""
        if 0 < self.maximum_tokens <= self.tokens:
            return StopReason.TOKEN_LIMIT
        if 0 < self.maximum_calls <= self.calls:
            return StopReason.CALL_LIMIT
        return None

    def refusal(self, reason: StopReason) -> str:
        """What the model reads as the result of a call that goes beyond this limit."""
        if reason is StopReason.TOKEN_LIMIT:
            return template.TOKENS_USED_UP.format(most=self.maximum_tokens)
        return template.CALLS_USED_UP.format(most=self.maximum_calls)

    def note(self, conversation: Hashable) -> str | None:
        """What a conversation with the model has to read once, when most of a limit is used."""
        used = ((self.tokens, self.maximum_tokens), (self.calls, self.maximum_calls))
        is_due = any(most > 0 and count >= NOTE_SHARE * most for count, most in used)
        if not is_due or conversation in self._told:
            return None
        self._told.add(conversation)
        wordings = (template.TOKENS_LEFT, template.CALLS_LEFT)
        left = [
            wording.format(left=max(0, most - count), most=most)
            for wording, (count, most) in zip(wordings, used, strict=True)
            if most
        ]
        return template.BUDGET_NOTE.format(left=" and ".join(left))

    def estimate_note(self) -> OurWords | None:
        """For the log: what was counted, where the provider did not report all of it and a limit rests on it."""
        if not (self._has_estimates and self.maximum_tokens):
            return None
        counted = f"with an estimate of the rest, the run used {self.tokens:,}"
        return OurWords(f"maximum_total_tokens: the provider did not report all tokens; {counted}")

    def _allow(self, call: JudgedCall) -> JudgedCall:
        if not isinstance(call, ValidCall) or call.tool.kind is not ToolKind.RUNS:
            return call
        if reason := self.reached():
            return RejectedCall(call.call, self.refusal(reason), call.tool)
        self.calls += 1
        return call
