"""What a person sees of a chat with a flow: answers as they stream, a line about each turn, what commands show."""

import json
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from devhost.flow.chat.conversation import ConversationVariable
from devhost.flow.document import FlowFile
from devhost.flow.events import FlowEnded
from devhost.flow.view.rows import node_rows
from devhost.flow.view.view import ENDINGS, FlowView
from devhost.node.outputs.outputs import Finding
from devhost.terminal.tables.outputs import findings_list, sources_table
from devhost.terminal.tables.text import on_a_line, printable
from devhost.text.counted import counted

NOTHING_YET = "There was no turn yet."


class FlowChatView(FlowView):
    def begin(self, file: FlowFile, notices: Sequence[str]) -> None:
        self._console.print(
            Text(printable(f"{file.name or file.path.stem} ({file.kind}, {counted(len(file.nodes), 'node')})"), "bold")
        )
        for notice in notices:
            self.note(notice)
        self.note("Ctrl-C ends a turn, Ctrl-D the chat; /help lists the commands.")

    def begin_turn(self) -> None:
        self._begin()

    def close_turn(self, ended: FlowEnded, seconds: float, findings: Sequence[Finding]) -> None:
        self._finish_answer(ended)
        if ended.error:
            self._console.print(Text(printable(ended.error), "red"), soft_wrap=True)
        if findings:
            self._console.print(findings_list(findings))
        words, style = ENDINGS[ended.status]
        self._console.print(
            Text(f"{counted(len(self._rows), 'node')}, {words} {seconds:.1f} s", style if ended.error else "dim")
        )

    def note(self, sentence: str) -> None:
        self._console.print(Text(printable(sentence), "dim"), soft_wrap=True)

    def show_log(self) -> None:
        """The nodes of the last turn, with the trees of its agents."""
        if self._rows:
            self._console.print(node_rows(self._rows, whole=self._options.verbose))
        else:
            self.note(NOTHING_YET)

    def show_sources(self) -> None:
        if self._sources:
            self._console.print(sources_table(self._sources))
        else:
            self.note("The last turn has no sources." if self._rows else NOTHING_YET)

    def show_variables(self, variables: Sequence[ConversationVariable]) -> None:
        if not variables:
            self.note("The flow has no conversation variables.")
            return
        table = Table(box=None, pad_edge=False)
        for heading in ("variable", "type", "value", "bytes"):
            table.add_column(heading, justify="right" if heading == "bytes" else "left")
        for each in variables:
            value = (
                each.value if isinstance(each.value, str) else json.dumps(each.value, ensure_ascii=False, default=str)
            )
            size = Text(f"{each.bytes:,}", "red" if each.too_large else "")
            shown = [Text(printable(text)) for text in (each.name, each.type, on_a_line(value))]
            table.add_row(*shown, size)
        self._console.print(table)
