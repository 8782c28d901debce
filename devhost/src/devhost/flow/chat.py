"""A chat with a chatflow: each line is a turn, or a command to the chat."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from devhost.chat import Command, Talk
from devhost.files import LocalFile, local_files
from devhost.flow.cases import FlowCase
from devhost.flow.forms import Ask
from devhost.flow.played import PlayedTurn, watched
from devhost.flow.turn import FlowEngine
from devhost.flow.view import FlowView, node_rows, sources_of
from devhost.host.host import ToolHost
from devhost.models.scripted.script import gist
from devhost.node.outputs.run import ToolCalls
from devhost.process.session import Stop
from devhost.terminal.screen import STYLES, Interrupt
from devhost.terminal.tables import findings_list, sources_table, variables_list
from devhost.text import Secrets
from devhost.words import counted


class FlowChatView(FlowView):
    """Answers as they stream, a line about each turn, and what commands show."""

    def begin_turn(self) -> None:
        self._begin()

    def close_turn(self, turn: PlayedTurn, *, show_findings: bool) -> None:
        self._end_answer(turn.answer)
        self._say_why(turn)
        if show_findings:
            self._print(findings_list(turn.findings))
        style = "dim" if turn.ending.level == "good" else STYLES[turn.ending.level]
        how = f"{counted(len(turn.rows), 'node')}, {turn.ending.after(turn.seconds)}"
        self._console.print(Text(f"{how}{ToolCalls.sum_of(turn.runs).remark}", style))

    def show_log(self, turn: PlayedTurn) -> None:
        """Its nodes, with the trees of its agents."""
        self._console.print(node_rows(turn, whole=self._options.verbose))

    def show_sources(self, turn: PlayedTurn) -> None:
        self._print(sources_table(sources_of(turn)) or Text("The last turn has no sources.", "dim"))

    def show_variables(self, variables: dict[str, object]) -> None:
        self._print(variables_list(variables) or Text("The flow has no conversation variables.", "dim"))


class FlowChat(Talk[ToolHost, PlayedTurn]):
    addressee = "the flow"

    def __init__(  # noqa: PLR0913 - what it is made of
        self,
        case: FlowCase,
        engine: FlowEngine,
        view: FlowChatView,
        *,
        notices: Sequence[str],
        ask: Ask | None,
        hidden: Secrets,
        strict: bool,
        interrupt: Interrupt,
    ) -> None:
        """`hidden` is never shown. `strict`: broken rules of Dify are shown."""
        own = {"/variables": Command("", "show the conversation variables", self._show_variables)}
        super().__init__(view, own, {"log": view.show_log, "sources": view.show_sources}, interrupt)
        self._case = case
        self._engine = engine
        self._view = view
        self._ask_person = ask
        self._strict = strict
        self._hidden = hidden
        self._added: tuple[LocalFile, ...] = ()
        self._begin()
        nodes = counted(len(case.file.nodes), "node")
        title = f"{case.file.name or case.file.path.stem} ({case.file.kind}, {nodes})"
        for sentence in (title, *notices, "Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands."):
            view.note(sentence)

    def _begin(self) -> None:
        self._conversation = self._case.conversation(self._engine)
        self._asked: Counter[str] = Counter()

    def _show_variables(self, _: str) -> None:
        self._view.show_variables(self._hidden.masked(self._conversation.variables))

    def _add(self, path: Path) -> LocalFile:
        self._added = local_files([*(file.path for file in self._added), path], self._case.limits)
        return self._added[-1]

    def _ask(self, host: ToolHost, question: str, stop: Stop) -> None:
        asked = self._asked[gist(question)]
        self._asked[gist(question)] += 1
        said = self._case.script.turn_for(question, self._asked.total(), asked)
        around = self._case.around(host, said, ask=self._ask_person, stop=stop)
        files, self._added = self._added, ()
        self._view.begin_turn()
        try:
            turn = watched(self._conversation.play(question, around, files), self._view.show, self._hidden)
        finally:
            self._view.abandon()
        self._last = turn
        self.broke_rules = self.broke_rules or bool(turn.findings)
        self._view.close_turn(turn, show_findings=self._strict)
