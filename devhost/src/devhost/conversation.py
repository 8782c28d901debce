"""Question after question to one strategy, and what each run leaves to the next."""

import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

from devhost.errors import RunStoppedError
from devhost.files import LocalFile, local_files
from devhost.host.host import Host, OnMessage
from devhost.models.backend import ModelBackend
from devhost.models.scripted.script import FollowUp, gist
from devhost.models.spending import limited, refuse_unpriced
from devhost.node.outputs.run import Run, report
from devhost.node.parameters import PastTurn, messages_of, window
from devhost.plugin.declaration import Strategy
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.scenario import CONVERSATION, QUESTION, Scenario
from devhost.tools.recorded import recorded_tools
from devhost.tools.tool import Tool
from devhost.words import counted

STATE = "state"
APPROVAL = "approval"
"""The parameters. The first is also the name of the variable that a run puts out."""


def takes_state(strategy: Strategy) -> bool:
    """Whether the node has a field for a state and one for the user's answer to calls that wait."""
    texts = {parameter.name for parameter in strategy.parameters if parameter.type == "string"}
    return {STATE, APPROVAL} <= texts


@dataclass(frozen=True)
class KeptState:
    """A strategy's state, as a chatflow keeps it in a conversation variable; without a text, the last run left none."""

    text: str = ""
    """Never read here: only the strategy knows what it holds."""
    waiting: tuple[object, ...] = ()
    """The calls that wait for the user's answer, as the run put them out."""

    def after(self, run: Run) -> "KeptState":
        """A failed run leaves the state as it was, unless a call that waited in it may have been made.

        With the old state, the user's next yes would make the call again.
        """
        if run.error is None:
            text = run.outputs.variables.get(STATE)
            if text and isinstance(text, str):
                return KeptState(text, tuple(run.outputs.pending_calls))
            return KeptState()
        may_have_acted = run.asked.keys() - {"llm", "llm_structured_output", "system_summary"}
        if self.waiting and may_have_acted:
            return KeptState()
        return self

    def note_on(self, run: Run) -> str:
        """What the person has to know of the state after this run; empty after most."""
        if self.text and run.error is not None and not self.after(run).text:
            return "The state is dropped, because this run called tools: another yes could make the same calls twice."
        return ""


@dataclass(kw_only=True)
class Dialogue(ABC):
    """What every conversation keeps, with a strategy or with a flow."""

    id: str = ""
    """By default a new one."""
    _past: list[PastTurn] = field(default_factory=list, init=False)
    _asked: Counter[str] = field(default_factory=Counter, init=False)
    added: tuple[LocalFile, ...] = field(default=(), init=False)
    """The files that go with the next question."""
    _recorded: Sequence[Tool] | None = field(default=None, init=False)
    """The same in all turns, which share the recorded answers."""

    def __post_init__(self) -> None:
        self.id = self.id or str(uuid.uuid4())

    def times_asked(self, question: str) -> int:
        """How often it was asked before; capitals and the last full stop do not count, as in `Script.turns_for`."""
        return self._asked[gist(question)]

    def afresh(self) -> Self:
        """A new conversation: of what is kept, only the files go on, which were told to go with the next question."""
        begun = replace(self, id="")
        begun.added = self.added
        return begun

    @abstractmethod
    def attach(self, path: Path) -> LocalFile:
        """To the next question; ParameterError for what Dify or the strategy does not take."""


KEPT = "devhost.state"
"""The variable that stands for the chatflow's conversation variable."""


@dataclass
class Conversation(Dialogue):
    """As a chatflow holds it around its Agent node: the node's memory, and the strategy's state."""

    scenario: Scenario
    state: KeptState = field(default_factory=KeptState, init=False)
    note: str = field(default="", init=False)
    """What the person has to know of the state after the last run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._api_fails = self.scenario.api_fails
        self._limit = self.scenario.price_limit

    def ask(  # noqa: PLR0913 - a turn's options, by keyword
        self,
        host: Host,
        question: str,
        model: ModelBackend,
        *,
        on_message: OnMessage,
        stop: Stop | None = None,
        approval: str | None = None,
    ) -> Run:
        """`approval` takes the place of the question as the answer to calls that wait."""
        files = [host.server.offer(file) for file in self._attached(question)]
        self._asked[gist(question)] += 1
        self.added = ()
        variables = self.scenario.variables(question, files, turn=len(self._past) + 1)
        variables[CONVERSATION] = variables[CONVERSATION] or self.id
        if self._recorded is None:
            self._recorded = recorded_tools(self.scenario.written.recorded, instead=host.tools)
        run = host.run(
            self.scenario.strategy.identity.name,
            self._settings(question, files, approval),
            model=limited(model, self._limit),
            tools=[*host.tools, *self._recorded],
            variables={**variables, **({KEPT: self.state.text} if self.state.text else {})},
            api_fails=self._api_fails,
            history=window(messages_of(self._past)),
            conversation_id=self.id,
            on_message=on_message,
            stop=stop,
        )
        answer = run.outputs.text if run.error is None or was_stopped(run) else ""
        sent = map(host.server.with_bytes, self.scenario.files(question, files))
        self._past.append(PastTurn(question, answer, tuple(sent)))
        if takes_state(self.scenario.strategy) and not self.scenario.sets(STATE):  # that of a user is constant
            self.note = self.state.note_on(run)
            self.state = self.state.after(run)
        return run

    def refuse(self, model: ModelBackend) -> None:
        """ParameterError if the run has a limit of price, and that of the model is not known."""
        if self._limit is not None:
            refuse_unpriced(model.description)

    def attach(self, path: Path) -> LocalFile:
        added = local_files([*(file.path for file in self.added), path], self.scenario.attached.limits)
        self.scenario.values(QUESTION, [file.described("") for file in added])
        self.added = added
        return added[-1]

    def files_of(self, question: str) -> list[JsonObject]:
        """Those that go with the question if it is asked next, without a URL."""
        return [file.described("") for file in self._attached(question)]

    def _attached(self, question: str) -> tuple[LocalFile, ...]:
        is_first = not self._asked
        written = self.scenario.attached.of_question(question, self.times_asked(question), is_first=is_first)
        return (*written, *self.added)

    def _settings(self, question: str, files: Sequence[JsonObject], approval: str | None) -> JsonObject:
        """What the user set goes before what the conversation hands over."""
        settings = self.scenario.values(question, files)
        if self.state.text:
            settings = {STATE: {"variable": KEPT}, APPROVAL: {"variable": QUESTION}, **settings}
        if approval is None:
            return settings
        return {**settings, APPROVAL: approval}


def was_stopped(run: Run) -> bool:
    return run.error is not None and run.error.kind == RunStoppedError.__name__


class CountingModel(ModelBackend, Protocol):
    @property
    def afterwards(self) -> str:
        """A sentence after the run; often empty."""
        ...

    def spent(self) -> JsonObject | None:
        """The tokens that a provider counted."""
        ...


class ChooseModel[M](Protocol):
    def __call__(self, question: str, *, asked: int) -> M:
        """`asked`: how often the conversation had this question before, in any spelling."""
        ...


@dataclass(frozen=True)
class Ended:
    run: Run
    remark: str
    """About the model, and about the conversation if it ends too early."""
    report: JsonObject
    next_question: str | None
    """None if the conversation is over."""


type Turns = Callable[[Host, OnMessage], Iterator[Ended]]


def play(
    conversation: Conversation, question: str, follow_ups: Sequence[FollowUp], choose_model: ChooseModel[CountingModel]
) -> Turns:
    """A script's conversation, until a turn fails.

    A function, because the models are chosen, and mistakes found, before a host starts.
    """
    asked: Counter[str] = Counter()
    said: list[tuple[str, str | None, CountingModel]] = []
    for query, approval in [(question, None), *((each.query, each.approval) for each in follow_ups)]:
        model = choose_model(query, asked=asked[gist(query)])
        conversation.refuse(model)
        said.append((query, approval, model))
        asked[gist(query)] += 1

    def turns(host: Host, on_message: OnMessage) -> Iterator[Ended]:
        for number, (query, approval, model) in enumerate(said, start=1):
            run = conversation.ask(host, query, model, approval=approval, on_message=on_message)
            left = said[number:]
            remark = _remark(run, model, conversation.note, len(left))
            following = left[0][0] if left and run.error is None else None
            yield Ended(run, remark, report(run, model.description, model.spent()), following)
            if run.error is not None:
                return

    return turns


def _remark(run: Run, model: CountingModel, note: str, left: int) -> str:
    asked = run.error is None or run.asked.get("llm")  # else the model is not what went wrong
    unsaid = run.error is not None and left
    ends = f"The conversation ends here, before {counted(left, 'further message')} of the script." if unsaid else ""
    return " ".join(filter(None, (model.afterwards if asked else "", note, ends)))


def conversation_report(reports: Sequence[JsonObject]) -> JsonObject:
    """The last turn's report, which of a conversation also has those before it."""
    *earlier, last = reports
    if earlier:
        return {**last, "earlier_turns": earlier}
    return last
