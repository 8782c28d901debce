"""What the database, the reply and the log must hold after each scenario."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from answering.application.generate_and_reply import Reply
from answering.domain.errors import BusinessCode, Code, SystemCode
from answering.services import PLUGIN_FOLDER, answers_of, generate_and_reply, sync_service
from answering.storage.tables import Base, make_tables
from answers_cli.agent import AgentGenerator
from sqlalchemy import URL, text
from tool_layer.address import CREDENTIAL
from tool_layer.database import Database
from tool_layer.run_steps import RunStep, steps_of

from devhost import Host, Run
from devhost.case import Case
from examples.runner.playing import conversation
from examples.runner.world import Credentials, Played

DOCUMENTS = PLUGIN_FOLDER / "documents"
_TRIGGER = "CREATE TRIGGER disk_full BEFORE INSERT ON answers"
_FULL = {
    "sqlite": f"{_TRIGGER} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    "postgresql": "CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE 'the disk is full'; END $$; {_TRIGGER} EXECUTE FUNCTION fails()",
}


@dataclass(frozen=True)
class Outcome:
    """What a scenario promises."""

    asks: bool = True
    """The use case `ask`; else only the agent with the tool, as a node in Dify has it."""
    code: Code | None = None
    """Of the reply."""
    sources: tuple[str, ...] = ()
    """Of the saved answer, in the order of its citations."""
    logged: str = ""
    tool_says: tuple[str, ...] = ()
    """How each result of the tool begins. Where `ask` asks no model, the agent with the tool is run too."""
    cites: tuple[str, ...] = ()
    """Documents in the run's sources."""


OUTCOMES: Mapping[str, Outcome] = {
    "script": Outcome(sources=("en/borrowing.md", "en/fees.md"), cites=("en/borrowing.md", "en/fees.md")),
    "nothing-relevant": Outcome(code=BusinessCode.NO_RELEVANT_DOCUMENTS, tool_says=("No document says anything",)),
    "index-missing": Outcome(code=BusinessCode.INDEX_NOT_AVAILABLE, tool_says=("The index has not been built.",)),
    "model-down": Outcome(code=SystemCode.LLM_API_ERROR, logged="is unavailable at the moment"),
    "save-fails": Outcome(logged="the disk is full", cites=("en/fees.md", "en/borrowing.md")),
    "two-searches": Outcome(
        asks=False, tool_says=("Documents found: 4", "Documents found: 4"), cites=("ja/borrowing.md", "ja/damage.md")
    ),
}


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@dataclass
class Library:
    url: URL
    expected: Outcome = field(default_factory=Outcome)
    replies: list[Reply] = field(default_factory=list[Reply])
    log: _Lines = field(default_factory=_Lines)

    @property
    def _database(self) -> Database:
        return Database(self.url, make_tables)

    @property
    def credentials(self) -> Credentials:
        return {"answers": {CREDENTIAL: self.url.render_as_string(hide_password=False)}}

    def begin(self, scenario: str) -> None:
        with Database(self.url, lambda _: None).session() as session:
            for metadata in (Base.metadata, RunStep.metadata):
                metadata.drop_all(session.connection())
        self.expected = OUTCOMES[scenario]
        self.replies.clear()
        self.log.lines.clear()
        if scenario != "index-missing":
            sync_service(self._database).sync(DOCUMENTS)
        if scenario == "save-fails":
            with self._database.session() as session:
                session.execute(text(_FULL[self.url.get_backend_name()]))

    def play(self, case: Case, host: Host) -> tuple[Run, ...]:
        """`ask`, and the agent with the tool where the tool has something to say."""
        runs: list[Run] = []
        if self.expected.asks and case.has_script:
            model = case.script.as_model()
            strategy = case.played.name
            agent = AgentGenerator(lambda: nullcontext(host), lambda _: model, strategy, ended=runs.append)
            use_case = generate_and_reply(self._database, agent, saves_answers=True)
            self.replies.append(use_case.reply_to(case.script.query))
        if self.expected.tool_says:
            runs += conversation(case, host)
        return tuple(runs)

    def problems(self, played: Played) -> Iterator[str]:
        yield from self._of_reply()
        yield from self._of_database()
        (run,) = played.runs
        if (run.error is None) == (self.expected.code is SystemCode.LLM_API_ERROR):
            yield f"the run ended with {run.error and run.error.message}"
        cited = {each["document_id"] for each in run.outputs.variables.get("sources", ()) if each["cited"]}
        if cited != {*self.expected.cites}:
            yield f"the answer cites {sorted(cited)}"

    def _of_reply(self) -> Iterator[str]:
        if [reply.code for reply in self.replies] != [self.expected.code] * self.expected.asks:
            yield f"the replies are {self.replies}"
        if not all(reply.text for reply in self.replies):
            yield "a reply is empty"
        lines = self.log.lines
        if len(lines) != bool(self.expected.logged) or not all(self.expected.logged in line for line in lines):
            yield f"the log says {lines}"

    def _of_database(self) -> Iterator[str]:
        saved = answers_of(self._database).recent(10)
        sources = [source.document_id.value for answer in saved for source in answer.sources]
        if sources != [*self.expected.sources] or any("**Sources**" in answer.content for answer in saved):
            yield f"saved are {saved}"
        expected = [reply.answer for reply in self.replies if reply.answer and not self.expected.logged]
        by_tool = [answer for answer in saved if answer not in expected]
        if len(saved) - len(by_tool) != len(expected) or {answer.reason for answer in by_tool} - {self.expected.code}:
            yield f"the replies are {self.replies}, saved are {saved}"
        steps = steps_of(self._database)
        if not all(step.conversation and step.turn == 1 for step in steps):
            yield "a call of the tool has no conversation, or is not in its first turn"
        said = [step.output["result"]["message"] for step in steps]
        if len(said) != len(self.expected.tool_says) or not all(map(str.startswith, said, self.expected.tool_says)):
            yield f"the tool says {said}"


@contextmanager
def world(folder: Path, database: URL | None = None) -> Iterator[Library]:
    library = Library(database or URL.create("sqlite", database=str(folder / "answers.sqlite3")))
    log = logging.getLogger("answering")
    log.addHandler(library.log)
    try:
        yield library
    finally:
        log.removeHandler(library.log)
