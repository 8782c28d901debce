"""The view of a conversation: each answer while it streams, and one line with the calls, tokens and seconds of it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from devhost.conversation.conversation import was_stopped
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.protocol.wire import JsonObject
from devhost.scenario.scenario import Scenario
from devhost.terminal.run_view import RunView
from devhost.terminal.screen import Screen
from devhost.terminal.tables.facts import facts_table
from devhost.terminal.tables.failure import failure_text
from devhost.terminal.tables.log import log_tree
from devhost.terminal.tables.outputs import files_list, findings_list, pending_table, sources_table, variables_list
from devhost.terminal.tables.text import printable
from devhost.terminal.view_options import ViewOptions
from devhost.text.counted import counted

NOTHING_YET = "There was no run yet."


class ChatView:
    def __init__(self, console: Console, options: ViewOptions | None = None, *, show_log: bool) -> None:
        self._console = console
        self._options = options or ViewOptions()
        self._show_log = show_log or self._options.verbose
        self.screen = Screen(console, traceback=self._options.traceback)

    def open(self, scenario: Scenario, model: ModelDescription, notices: Sequence[str] = ()) -> None:
        facts = facts_table(scenario.name, scenario.description, scenario.strategy.identity.name, model, notices)
        if model.scripted and scenario.script is not None:
            facts.add_row("try", Text(scenario.script.query))
        self._console.print(facts)
        self._console.print(Text("Ctrl-C ends an answer, Ctrl-D the chat; /help lists the commands.", "dim"))

    @contextmanager
    def turn(self, files: Iterable[JsonObject] = ()) -> Iterator[RunView]:
        """`files` go with the question."""
        view = RunView(self._console, self._options, self.screen)
        view.show_files(files)
        try:
            yield view
        finally:
            view.abandon()

    def close_turn(self, view: RunView, run: Run, *, show_findings: bool = False, hints: Sequence[str] = ()) -> None:
        """`hints`: sentences for the person, such as what can be typed now."""
        view.finish_answer()
        if run.outputs.files:
            self._console.print(files_list(run.outputs.files), soft_wrap=True)
        stopped = was_stopped(run)
        if stopped:
            view.show_how_far()
        elif self._show_log and run.outputs.logs:
            self._console.print(log_tree(run.outputs.logs, run.calls.sent, whole=self._options.verbose))
        if show_findings and run.findings:
            self._console.print(findings_list(run.findings))
        if run.error is not None and not stopped:
            self._console.print(failure_text(run.error, traceback=self._options.traceback))
        if run.ending.level == "limited" and not run.outputs.pending_calls:
            self._console.print(Text(str(run.ending), "yellow"))
        self._console.print(Text(f"{'stopped: ' if stopped else ''}{summary(run)}", "dim"))
        if run.error is None and run.outputs.pending_calls:
            self._console.print(Text("waiting for your answer:", "yellow"))
            self._console.print(pending_table(run.outputs.pending_calls))
        for hint in hints:
            self.note(hint)
        self._console.line()

    def note(self, sentence: str) -> None:
        self._console.print(Text(printable(sentence), "dim"))

    def show_log(self, run: Run | None) -> None:
        if run is None or not run.outputs.logs:
            self.note(NOTHING_YET if run is None else "The last run has no log.")
        else:
            self._console.print(log_tree(run.outputs.logs, run.calls.sent, whole=self._options.verbose))

    def show_sources(self, run: Run | None) -> None:
        sources = None if run is None else run.outputs.variables.get("sources")
        if isinstance(sources, list) and sources:
            self._console.print(sources_table(sources))
        else:
            self.note(NOTHING_YET if run is None else "The last run has no sources.")

    def show_parameters(self, settings: JsonObject) -> None:
        """Those that are set."""
        if settings:
            self._console.print(variables_list(settings))
        self.note("Other parameters have their defaults.")


def summary(run: Run) -> str:
    """What the run cost; how many rounds it had, only its strategy knows."""
    usage = run.usage
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    parts = [
        counted(run.asked.get("llm", 0), "model call"),
        counted(run.asked.get("tool", 0), "tool call"),
        counted(tokens, "token") if isinstance(tokens, int) else "",
        f"{run.elapsed_seconds:.1f} s",
    ]
    return " · ".join(part for part in parts if part)
