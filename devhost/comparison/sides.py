"""One of two runs, as far as they are compared.

In: a traced run. Out: a `Side`: its rounds with what was new in each prompt, its tool calls, its answer and its costs.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from devhost.fork.rounds import Round, rounds
from devhost.node.outputs.error import plugin_error
from devhost.node.outputs.run import Run
from devhost.page.calls.opened import ModelCall, Said, model_call
from devhost.protocol.wire import JsonObject
from devhost.recording.tool_calls import tool_calls
from devhost.tools.recorded.tool import NOT_RECORDED
from devhost.trace.calls import Call
from devhost.trace.outcome import run_of
from devhost.trace.runs import TracedRun


@dataclass(frozen=True)
class Asked:
    """One round."""

    number: int
    prompt: tuple[str, ...]
    """The lines that no earlier prompt of the run had; of the first one all, with the names of the tools."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True)
class Side:
    name: str
    model: str
    run: Run
    rounds: tuple[Asked, ...]
    calls: tuple[str, ...]
    """A line for each tool call: name, arguments, and whether it failed."""
    not_recorded: tuple[str, ...]
    """Those of them that no recorded answer fitted."""
    models: int
    """Calls of a model."""

    @classmethod
    def of(cls, name: str, model: str, traced: TracedRun, strategy: str) -> "Side":
        asked = tool_calls(traced.calls)
        made = rounds(traced)
        lines = tuple(map(_called, asked))
        missing = tuple(line for line, call in zip(lines, asked, strict=True) if raised(call) == NOT_RECORDED)
        run, models = run_of(traced, strategy), sum(len(each.calls) for each in made)
        return cls(name, model, run, _asked(made), lines, missing, models)

    @property
    def answer(self) -> list[str]:
        return self.run.outputs.text.splitlines()

    @property
    def ending(self) -> str:
        error = self.run.error
        return str(self.run.ending) if error is None else f"{self.run.ending}: {error.kind}: {error.message}"

    @property
    def usage(self) -> JsonObject:
        """What the answers of models reported."""
        return self.run.calls.spent

    def as_json(self) -> JsonObject:
        rounds = [{name: value for name, value in asdict(each).items() if name != "prompt"} for each in self.rounds]
        return {
            "model": self.model,
            "ended": self.ending,
            "text": self.run.outputs.text,
            "usage": self.usage,
            "elapsed_seconds": self.run.elapsed_seconds,
            "rounds": rounds,
            "calls": list(self.calls),
        }


def _asked(made: Sequence[Round]) -> tuple[Asked, ...]:
    found, known = [], set[Said]()
    for each in made:
        last = model_call(each.calls[-1])
        found.append(
            Asked(
                each.number,
                tuple(_new_lines(last, known, with_tools=each is made[0])),
                sum(_tokens(call, "prompt_tokens") for call in each.calls),
                sum(_tokens(call, "completion_tokens") for call in each.calls),
                sum(map(_seconds, each.calls)),
            )
        )
        known |= set(last.prompt)
    return tuple(found)


def _new_lines(call: ModelCall, known: set[Said], *, with_tools: bool) -> list[str]:
    lines = [f"tools: {', '.join(tool.name for tool in call.tools) or 'none'}"] if with_tools else []
    for said in call.prompt:
        if said not in known:
            lines += [f"{said.role}:", *said.text.splitlines()]
    return lines


def _seconds(call: Call) -> float:
    """As the model reported it: a recorded turn, which takes no time, has its own again. Else on the clock."""
    reported = call.usage.get("latency")
    return float(reported) if isinstance(reported, int | float) else (call.ended or call.began) - call.began


def _tokens(call: Call, name: str) -> int:
    value = call.usage.get(name)
    return value if isinstance(value, int) else 0


def _called(call: Call) -> str:
    given = json.dumps(call.request.get("tool_parameters"), ensure_ascii=False, sort_keys=True)
    return f"{call.name} {given}{f' → {raised(call)}' if call.error else ''}"


def raised(call: Call) -> str:
    """The type of its error."""
    found = plugin_error(call.error) if call.error else None
    return found.error_type if found else "error" if call.error else ""
