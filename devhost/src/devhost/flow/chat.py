"""A chat with a chatflow: each line is a turn, or a command to the chat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.text import Text

from devhost.chat import Command, Talk
from devhost.flow.cases import FlowConversation
from devhost.host.host import ToolHost
from devhost.node.outputs.run import ToolCalls
from devhost.process.session import Stop
from devhost.terminal.screen import STYLES
from devhost.terminal.tables import findings_list, sources_table, titled, variables_list
from devhost.terminal.turn_view import TurnView, sources_of, turn_log
from devhost.trace.flow import FlowLine
from devhost.trace.played import PlayedTurn
from devhost.words import counted


class FlowChatView(TurnView):
    """Answers as they stream, a line about each turn, and what commands show."""

    def open_chat(self, facts: FlowLine, notices: Iterable[str]) -> None:
        for sentence in (titled(facts), *notices, "Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands."):
            self.note(sentence)

    def close_turn(self, turn: PlayedTurn, *, show_findings: bool) -> None:
        self.finish_answer(turn.answer)
        self._say_why(turn)
        if show_findings:
            self._print(findings_list(turn.findings))
        style = "dim" if turn.ending.level == "good" else STYLES[turn.ending.level]
        how = f"{counted(len(turn.rows), 'node')}, {turn.ending.after(turn.seconds)}"
        self._console.print(Text(f"{how}{ToolCalls.sum_of(turn.runs).remark}", style))

    def show_log(self, turn: PlayedTurn) -> None:
        """Its nodes, with the trees of its agents."""
        self._print(turn_log(turn, whole=self._options.verbose))

    def show_sources(self, turn: PlayedTurn) -> None:
        self._print(sources_table(sources_of(turn)) or Text("The last turn has no sources.", "dim"))

    def show_variables(self, variables: dict[str, object]) -> None:
        self._print(variables_list(variables) or Text("The flow has no conversation variables.", "dim"))


@dataclass(kw_only=True)
class FlowChat(Talk[ToolHost, PlayedTurn, FlowConversation]):
    addressee = "the flow"
    view: FlowChatView

    @property
    def _own(self) -> Mapping[str, Command]:
        return {"/variables": Command("", "show the conversation variables", self._show_variables)}

    def _show_variables(self, _: str) -> None:
        self.view.show_variables(self.conversation.secrets.masked(self.conversation.variables))

    def _ask(self, host: ToolHost, question: str, stop: Stop) -> None:
        with self.view.turn():
            turn = self.conversation.play(self.conversation.typed(question), host, stop)
        self._last = turn
        self.broke_rules = self.broke_rules or bool(turn.findings)
        self.view.close_turn(turn, show_findings=self.strict)
