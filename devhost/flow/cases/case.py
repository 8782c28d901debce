"""A case: a flow, and the script that plays it. In: the script. Out: a `FlowCase`, checked before anything starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.errors import FlowFileError, ScriptError
from devhost.flow.checks.inputs import filled_inputs, with_read_files
from devhost.flow.document import FlowFile
from devhost.flow.forms.answers import Answers, scripted_answers
from devhost.flow.outside.allowed import Allowed
from devhost.flow.script import FlowScript, ScriptedModels, TurnScript
from devhost.flow.surroundings import Surroundings
from devhost.host.tool_host import ToolHost
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class FlowCase:
    file: FlowFile
    script: FlowScript
    place: str
    """Where the script is written, for people."""
    inputs: JsonObject
    """The fields of the Start node."""
    limits: HostLimits

    @classmethod
    def read(cls, script: Path, limits: HostLimits | None = None) -> Self:
        """ScriptError if it does not name its flow, or does not fit it."""
        read, limits = FlowScript.read(script), limits or HostLimits()
        if read.flow is None:
            raise ScriptError(f"{script} does not name its flow: add the key flow, the path of a DSL file")
        file = FlowFile.read(read.flow)
        refuse_misfit(file, read, str(script))
        inputs = filled_inputs(file, with_read_files(file, read.inputs, script.parent, limits))
        return cls(file, read, str(script), inputs, limits)

    def around(self, host: ToolHost | None, said: TurnScript, allowed: Allowed) -> Surroundings:
        """Of one turn."""
        models = ScriptedModels(said, self.script.model, self.place)
        answers = Answers(scripted_answers(self.file, said.answers, self.place), None, self.limits)
        return Surroundings(host, models, answers, {**self.script.knowledge, **said.knowledge}, allowed=allowed)


def refuse_misfit(file: FlowFile, script: FlowScript, place: str) -> None:
    """ScriptError if a turn names a node that the flow does not have, in its models, knowledge or expectations.

    ParameterError for an answer to a form that the flow does not have.
    """
    for number, said in enumerate(script.turns, start=1):
        scripted_answers(file, said.answers, place)
        named = [*(("models", name) for name in said.models), *(("knowledge", name) for name in said.knowledge)]
        named += () if said.expect is None else ((f"expect: {key}", name) for key, name in said.expect.named())
        for key, name in named:
            try:
                file.node(name)
            except FlowFileError as error:
                raise ScriptError(f"{place}: turn {number}: {key}: {error}") from error
