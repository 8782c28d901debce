"""A flow, read and checked, with all that it is played with.

In: what `flow_options` read. Out: the turns, the surroundings of each, and the host.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from devhost.cli.options.hosting_options import HostOptions
from devhost.conversation.script import refuse_alone
from devhost.errors import ParameterError
from devhost.files.run_folder import run_folder
from devhost.flow.document import FlowFile
from devhost.flow.forms.answers import Answers, Ask, GivenAnswers, scripted_answers, together
from devhost.flow.knowledge import Knowledge
from devhost.flow.outside.allowed import NOTHING, Allowed
from devhost.flow.script import FlowScript, ScriptedModels, TurnScript
from devhost.flow.surroundings import ModelOfNode, Surroundings
from devhost.host.host import Host
from devhost.host.tool_host import ToolHost, start_tools
from devhost.models.scripted.script import gist
from devhost.process.stop import Stop
from devhost.process.watcher import Watcher
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup


@dataclass(frozen=True)
class FlowSetup:
    """What a flow is played with, read and checked."""

    file: FlowFile
    script: FlowScript
    place: str
    """Where the script is written, for people."""
    inputs: JsonObject
    """The fields of the Start node: of the command line, or else the script's, or else the form's defaults."""
    answers: GivenAnswers
    """Of the command line: they go before the script's."""
    plugin: Path | None
    """That of the flow's agents."""
    tools: tuple[ToolSetup, ...]
    notices: tuple[str, ...] = ()
    """What a person should know before the flow starts."""
    behind_an_api: ModelOfNode | None = None
    """None if the script answers."""
    knowledge: Knowledge = field(default_factory=dict)
    """Of the command line: it goes before the script's."""
    allowed: Allowed = NOTHING

    def turns(self, query: str | None, *, alone: bool) -> list[tuple[TurnScript, str]]:
        """What the script's user says, turn by turn: its question or another one, and what follows its question.

        What follows was written for the answers of a scripted model.
        """
        if query is not None and not self.file.is_chatflow:
            raise ParameterError(
                f"--query: {self.file.path} is a workflow and takes no question: give it --input KEY=VALUE"
            )
        if alone:
            refuse_alone(self.script.then)
        script, question = self.script, self.script.query if query is None else query
        if self.file.is_chatflow and not question:
            raise ParameterError("there is no question: give --query TEXT, or a script that has a query")
        if gist(question) != gist(script.query):
            return [(script.model_copy(update={"expect": None}), question)]
        goes_on = not alone and self.behind_an_api is None
        return [(script, question), *((turn, turn.query) for turn in script.then if goes_on)]

    def around(
        self, host: ToolHost, turn: TurnScript, *, ask: Ask | None = None, stop: Stop | None = None
    ) -> Surroundings:
        """What stands in the place of Dify's services in this turn; `ask` is for forms without a given answer."""
        models = self.behind_an_api or ScriptedModels(turn, self.script.model, self.place)
        knowledge = {**self.script.knowledge, **turn.knowledge, **self.knowledge}
        answers = together(scripted_answers(self.file, turn.answers, self.place), self.answers)
        return Surroundings(host, models, Answers(answers, ask, host.limits), knowledge, stop, self.allowed)

    @property
    def secrets(self) -> list[str]:
        """The credentials of the tools, and the flow's secret environment variables."""
        return [*(value for setup in self.tools for value in setup.secrets), *self.file.secrets]

    @contextmanager
    def host(self, options: HostOptions, watcher: Watcher, trace_file: Path | None = None) -> Iterator[ToolHost]:
        """A `Host` if the flow has Agent nodes. Files and what plugins store stay beside the trace, if there is one."""
        start: Callable[..., AbstractContextManager[ToolHost]] = partial(start_tools, self.tools)
        if self.plugin is not None:
            start = partial(Host.start, self.plugin, tools=self.tools, transport=options.transport)
        storage = options.storage_beside(trace_file)
        with (
            run_folder("flow", trace_file) as files,
            start(limits=options.limits, files=files, watcher=watcher, storage=storage) as host,
        ):
            yield host
