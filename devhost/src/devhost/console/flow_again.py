"""Runs a flow again with another question, other inputs, or other answers to its forms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devhost.console.forms import WRONG, RunForm, inputs_of
from devhost.console.found import CASE, kind_of
from devhost.console.setup import FLOW, QUESTION, TYPED, Setup, Values, source_file
from devhost.console.web import Console
from devhost.errors import TraceError
from devhost.flow.document import FlowFile
from devhost.flow.forms import HUMAN_INPUT
from devhost.protocol.wire import JsonObject
from devhost.recording.case import RecordedCase, recorded_case, write_case
from devhost.recording.turns import KeptFiles
from devhost.trace.lines import Trace
from devhost.trace.turns import last_conversation

LABELS = {
    "script": ("answers-script", "The run's script"),
    **dict.fromkeys(("model", "completion", "api"), ("answers-real", "Model")),
    "allow-http": ("http", "send HTTP requests"),
    "allow-code": ("code", "run its code nodes"),
    QUESTION: ("p.query", "Question"),
}
KEPT = ("plugin", "tools", "http", "code")
"""The form values that the new run takes over from the earlier one."""


@dataclass(frozen=True, kw_only=True)
class FlowAgain(RunForm):
    """A form that runs a recorded flow again."""

    labels = LABELS
    name: str
    questions: Sequence[str]
    """The questions of all turns of the conversation, or the name of a workflow that takes no question."""
    was: Setup
    """The setup of the recorded run."""
    script: Path | None
    """The script of the recorded run, if a form started that run with one."""
    has_forms: bool
    recorded: Path
    """The script that repeats the recorded answers, which is written when the new run starts."""

    @property
    def answers(self) -> str:
        """The source of the model's answers: `recorded`, `script` or `real`."""
        if self.script is None:
            return self.values.get("answers", "recorded")
        return self.values.get("answers", "script")

    @property
    def asks(self) -> bool:
        """Whether a person answers the forms."""
        return self.values.get("forms", "ask") == "ask"

    @property
    def setup(self) -> Setup:
        typed = {name: text for name, text in self.was.values.items() if name.startswith(TYPED)}
        values = {name: self.was.values[name] for name in KEPT if self.was.values.get(name)}
        values |= {name: self.values[name] for name in ("model", "completion") if self.values.get(name)}
        values["source"] = f"{FLOW}{self.recorded}"
        if self.answers == "script":
            values["source"] = f"{FLOW}{self.script}"
            values |= typed
        if self.answers == "real":
            values["real"] = "yes"
        if self.question is None:
            values["play"] = "run"
        else:
            values[TYPED + QUESTION] = self.question.strip()
        return Setup(kind="flow", of=self.name, values={**values, **self.changed})


def form_of(console: Console, name: str, trace: Trace, values: Values) -> FlowAgain:
    """Returns the form filled with `values`.

    Raises TraceError if the flow did not begin, and FlowFileError if its file no longer exists.
    """
    was = console.folder.setup(name) or Setup()
    turns = last_conversation(trace)
    if not turns:
        raise TraceError(f"the run {name} ended before its flow began: start a new one")
    facts = turns[0].facts
    file = FlowFile.read(Path(facts.file))
    script = source_file(was.values)
    if script is None or kind_of(script) != "flow script":
        script = None
    question = None
    if file.is_chatflow:
        question = values.get(TYPED + QUESTION, facts.query)
    form = FlowAgain(
        values=values,
        fields=inputs_of(file, facts.inputs, values),
        question=question,
        name=name,
        questions=[turn.question or facts.name for turn in turns],
        was=was,
        script=script,
        has_forms=any(node.type == HUMAN_INPUT for node in file.nodes.values()),
        recorded=Path(),
    )
    ending = "again"
    if form.asks:
        ending = "asked"
    return replace(form, recorded=console.folder.beside(name, f".{ending}{CASE}"))


def with_recording(form: FlowAgain, trace: Trace, file: Path) -> FlowAgain:
    """Writes the script that the new run plays. If the run cannot be recorded, the returned form has the mistake."""
    if form.answers == "script":
        return form
    try:
        case = recorded_case(trace, file, KeptFiles(file, form.recorded))
        write_case(RecordedCase(_without(case.script, asks=form.asks), case.lacks), form.recorded)
    except WRONG as error:
        return form.refused(error)
    return form


def _without(script: JsonObject, *, asks: bool) -> JsonObject:
    """Returns the script without expectations, which do not apply to another question.

    With `asks`, the answers to forms are removed, too, because a person answers them.
    """
    left_out = {"expect"}
    if asks:
        left_out.add("answers")
    kept = {key: value for key, value in script.items() if key not in left_out}
    later: Sequence[Mapping[str, object]] = kept.get("then", ())
    if later:
        kept["then"] = [{key: value for key, value in turn.items() if key not in left_out} for turn in later]
    return kept
