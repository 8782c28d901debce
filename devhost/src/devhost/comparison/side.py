"""One of two turns that are compared: what the user got, what the nodes did, and the turn's inputs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from devhost.fork import rounds_in
from devhost.node.outputs.run import plugin_error
from devhost.page.calls import PromptPart, offered_tools, prompt_of
from devhost.recording.turns import model_calls, model_in, settings, tool_calls
from devhost.tools.recorded import NOT_RECORDED
from devhost.trace.flow import FIELD
from devhost.trace.played import NodeRow
from devhost.trace.runs import Call
from devhost.trace.turns import TracedTurn
from devhost.words import counted, preview, price_text

SECONDS = "seconds in models"
AS_RECORDED = "as recorded"
"""The text that is shown in place of usage if a model did not read its prompts."""
ELAPSED = frozenset({"elapsed_seconds", "elapsed_time"})
"""Keys of times, which are not compared because no two runs take the same time."""
LONGEST = 300
"""The maximum number of characters of a value that is shown whole."""
BEGINNING = 100
"""The number of characters shown from the beginning of a longer value."""
STRATEGY = "the strategy"
"""The caller's name in a run without a flow.

It is the same for all strategies, so that their rounds can be compared.
"""


@dataclass(frozen=True)
class Side:
    """One of two turns that are compared."""

    turn: TracedTurn
    repeats: bool = False
    """Whether the model repeats what the other turn's model said, whatever the prompt is."""

    @property
    def answer(self) -> list[str]:
        if self.turn.is_direct:
            return "\n".join(run.outputs.text for run in self.turn.outcomes).splitlines()
        return self.turn.answer.splitlines()

    @property
    def forms(self) -> list[str]:
        """Lines about each form: what it asks, what was filled in, and the button."""
        return [line for _, row in self.turn.flat if row.form is not None for line in _form(row)]

    @property
    def path(self) -> list[str]:
        """A line for each node that ran. A strategy that is played alone has no such lines."""
        if self.turn.is_direct:
            return []
        return [f"{'  ' * depth}{row.label} ({row.node.type}){_ended(row)}" for depth, row in self.turn.flat]

    @cached_property
    def variables(self) -> Mapping[str, object]:
        """The outputs of a workflow, the conversation variables, and the variables of a strategy that is played alone.

        Elapsed times are left out.
        """
        found = {**self.turn.outputs, **self.turn.end.conversation}
        if self.turn.is_direct:
            found |= self.turn.outcomes[-1].outputs.variables
        return {name: _without_times(value) for name, value in found.items()}

    @property
    def calls(self) -> list[str]:
        """A line for each tool call: name, arguments, and whether it failed."""
        return [_called(call) for call in self._tool_calls]

    @property
    def not_recorded(self) -> list[str]:
        """The tool calls that no recorded answer matched."""
        return [_called(call) for call in self._tool_calls if _raised(call) == NOT_RECORDED]

    @property
    def _tool_calls(self) -> list[Call]:
        """The tool calls of agents and of other nodes."""
        found = [call for run in self.turn.traced for call in tool_calls(run.calls)]
        found += [call for calls in self.turn.calls.values() for call in calls if call.kind == "tool"]
        return sorted(found, key=lambda call: call.began)

    @property
    def _askers(self) -> Iterator[tuple[str, list[Call]]]:
        """The name and the model calls of each agent's run and of each other node that called a model."""
        for execution, row in self.turn.rows.items():
            for run in self.turn.agents.get(execution, ()):
                yield STRATEGY if self.turn.is_direct else row.label, model_calls(run.calls)
        labels = {row.node.id: row.label for row in self.turn.rows.values()}
        for node, calls in self.turn.calls.items():
            if asked := model_calls(calls):
                yield labels.get(node, node), asked

    @property
    def model_calls(self) -> int:
        return sum(len(calls) for _, calls in self._askers)

    @property
    def prompts(self) -> dict[tuple[str, int], list[str]]:
        """The lines of each prompt that earlier prompts did not have, by the caller's name and the number of the round.

        The lines of the first round begin with the names of the tools.
        """
        found: dict[tuple[str, int], list[str]] = {}
        known: dict[str, set[PromptPart]] = {}
        for name, calls in self._askers:
            before = known.setdefault(name, set())
            for each in rounds_in(calls):
                last = each.calls[-1]
                number = sum(asker == name for asker, _ in found) + 1
                lines = list(_lines(prompt_of(last), before))
                if number == 1:
                    tools = ", ".join(tool.name for tool in offered_tools(last))
                    lines.insert(0, f"tools: {tools or 'none'}")
                found[name, number] = lines
                before |= set(prompt_of(last))
        return found

    @property
    def settings(self) -> Mapping[str, object]:
        """The inputs of the turn: the question, the fields, the parameters and the files."""
        facts = self.turn.facts
        values: dict[str, object] = {"question": facts.query, **facts.inputs}
        if self.turn.is_direct:
            for run in self.turn.traced:
                values |= _set(run.parameters)
        if facts.files:
            values["files"] = ", ".join(facts.files)
        return values

    @property
    def facts(self) -> dict[str, str]:
        """The facts by name.

        Tokens and seconds are those that the model's answers reported, even for recorded turns.
        """
        usages = [call.usage for run in self.turn.traced for call in run.calls]
        usages += [call.usage for calls in self.turn.calls.values() for call in calls]
        ended = f"{self.turn.ending}"
        if not self.turn.is_direct:
            ended = ": ".join(filter(None, (ended, self.turn.end.error)))
        elif (error := self.turn.outcomes[-1].error) is not None:
            ended = f"{ended}: {error.kind}: {error.message}"
        of_model = {
            "prompt tokens": f"{_sum(usages, 'prompt_tokens'):,.0f}",
            "completion tokens": f"{_sum(usages, 'completion_tokens'):,.0f}",
            "price": price_text(self.turn.price),
            SECONDS: f"{_sum(usages, 'latency'):.2f}",
        }
        if self.repeats:
            of_model = dict.fromkeys(of_model, AS_RECORDED)
        models = [str(model_in(run.parameters).get("model", "")) for run in self.turn.traced]  # from the parameters
        models += [call.name for calls in self.turn.calls.values() for call in model_calls(calls)]
        return {
            "model": ", ".join(dict.fromkeys(filter(None, models))),
            "ended": ended,
            "model calls": f"{self.model_calls:,}",
            "tool calls": f"{len(self.calls):,}",
            **of_model,
        }


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_times(each) for name, each in value.items() if name not in ELAPSED}
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    return value


def _set(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a strategy by name, with variables replaced by their values."""
    known = settings(parameters)
    values: dict[str, object] = {}
    for name, written in sorted(known["params"].items()):
        values[name] = written
        if isinstance(written, dict):
            values[name] = known["variables"].get(written["variable"], written)
    return values


def _form(row: NodeRow) -> Iterator[str]:
    form = row.form
    if form is None:
        return
    values = form.values
    if row.answer is not None:
        values |= row.answer.values
    yield f"{row.label}:"
    asked = FIELD.sub(lambda found: f"[{values.get(found[1], '')}]", form.content)
    yield from (f"  {line}" for line in asked.splitlines() if line.strip())
    placed = set(FIELD.findall(form.content))
    yield from (f"  {name}: {value}" for name, value in values.items() if name not in placed)
    if row.answer is None:
        yield "  not answered"
    else:
        yield f"  button: {row.pressed}"


def _ended(row: NodeRow) -> str:
    if row.ended is None:
        return ": not ended"
    if row.status == "succeeded":
        return ""
    if row.ended.went_on:
        return f": failed, goes on with its {row.ended.went_on}"
    return ": failed"


def _lines(prompt: Iterable[PromptPart], known: set[PromptPart]) -> Iterator[str]:
    for said in prompt:
        if said not in known:
            yield f"{said.role}:"
            yield from said.text.splitlines()


def _called(call: Call) -> str:
    given = json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)
    if call.error:
        return f"{call.name} {given} → {_raised(call)}"
    return f"{call.name} {given}"


def _raised(call: Call) -> str:
    """Return the type of the call's error; empty without an error."""
    if not call.error:
        return ""
    found = plugin_error(call.error)
    if found is None:
        return "error"
    return found[1].kind


def _sum(usages: Iterable[Mapping[str, object]], name: str) -> float:
    return sum(value for usage in usages if isinstance(value := usage.get(name), int | float))


def summary(value: object) -> str:
    """Return a short value as it is, and a long value as its beginning and its length.

    A long text without white space, such as a state, counts as packed, and only its length is shown.
    """
    if isinstance(value, str):
        text = value
    else:
        text = preview(value)
    if len(text) <= LONGEST:
        return text
    if isinstance(value, str) and not is_prose(value):
        return f"packed, {counted(len(text), 'character')}"
    return f"{text[:BEGINNING]}… ({counted(len(text), 'character')})"


def is_prose(value: object) -> bool:
    return isinstance(value, str) and any(letter.isspace() for letter in value)
