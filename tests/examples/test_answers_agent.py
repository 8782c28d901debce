"""examples/answers from the command line: the agent behind the generator's port, the scripts, what a person reads."""

from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
from answering.domain.errors import AnswerSystemError
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import Question
from answering.services import answers_of, search_service, sync_service
from answering.storage.tables import make_tables
from answers_cli.agent import STRATEGIES, AgentGenerator
from answers_cli.commands import FIRST, LAST, main
from answers_cli.prompt import FOUND, INSTRUCTION, variables
from answers_cli.scripted import script_for
from sqlalchemy import URL
from tool_layer.database import Database

from devhost import Host, PluginStartError, ScriptedModel
from devhost.script import Script

from .conftest import ANSWERS

SCRIPT = ANSWERS / "script.yaml"
QUESTION = "How long may I keep a drill?"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the index of the example's documents."""
    file = tmp_path_factory.mktemp("answers") / "answers.sqlite3"
    sync_service(opened(file)).sync(ANSWERS / "documents")
    return file


def opened(file: Path) -> Database:
    return Database(URL.create("sqlite", database=str(file)), make_tables)


def found(file: Path, question: str) -> RetrievalContext:
    context = search_service(opened(file)).find(Question(question))
    assert isinstance(context, RetrievalContext)
    return context


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANSWERS_DATABASE_URL", "ANSWERS_SAVE"):
        monkeypatch.delenv(name, raising=False)


def run(file: Path, *arguments: str) -> int:
    return main(["--database", f"sqlite:///{file}", *arguments])


def itself(model: ScriptedModel, _: RetrievalContext) -> ScriptedModel:
    return model


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_the_script_hands_on_what_the_search_finds(file: Path) -> None:
    for strategy in STRATEGIES:
        script = Script.read(SCRIPT, strategy)
        assert script.fits
        assert script.params["instruction"] == INSTRUCTION
        assert script.variables[FOUND] == variables(found(file, script.query))[FOUND]


@pytest.mark.e2e
def test_a_question_is_answered_saved_and_listed(file: Path, answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(file, "sync", str(answers / "documents")) == 0
    assert lines(capsys)[-1] == "0 added, 0 changed, 0 removed, 7 unchanged"

    assert run(file, "ask", QUESTION) == 0

    said = capsys.readouterr()
    assert "scripted model: no provider is called" in said.err
    assert said.out.startswith("I am a scripted model and cannot think.")
    assert "- Borrowing tools: Hand tools: 14 days." in said.out
    assert "[1] Borrowing tools (en/borrowing.md, score 1.00)" in said.out.partition("\nSources\n")[2].splitlines()
    assert said.out.count("Sources") == 1
    (saved,) = answers_of(opened(file)).between(FIRST, LAST).answers
    assert [source.document_id.value for source in saved.sources] == [
        document.id.value for document in found(file, QUESTION).documents
    ]
    assert run(file, "list", "--from", f"{saved.generated_at:%Y-%m-%d}", "--to", f"{saved.generated_at:%Y-%m-%d}") == 0
    listed = lines(capsys)
    assert f"{saved.id}  {QUESTION}" in listed[0]
    assert listed[-1] == "Page 1: 1 of 1 answers"
    assert run(file, "list", "--to", "2000-01-01") == 0
    assert lines(capsys) == ["Page 1: 0 of 0 answers"]
    assert run(file, "list", "--from", f"{saved.generated_at + timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}") == 0
    assert lines(capsys) == ["Page 1: 0 of 0 answers"]


@pytest.mark.e2e
def test_the_scripted_answer_is_for_every_strategy(file: Path) -> None:
    context = found(file, QUESTION)
    with Host.start(Path()) as host:
        for strategy in STRATEGIES:
            model = script_for(context, strategy).as_model()
            content = AgentGenerator(lambda: nullcontext(host), partial(itself, model), strategy).generate(context)

            assert content.startswith("I am a scripted model")
            assert "[3]" in content
            assert model.remaining == 0


def no_host() -> NoReturn:
    raise PluginStartError("the plugin exited with code 1")


def test_a_plugin_that_does_not_start_is_a_failed_generation(file: Path) -> None:
    with pytest.raises(AnswerSystemError) as raised:
        AgentGenerator(no_host, lambda _: ScriptedModel.of([])).generate(found(file, QUESTION))

    assert raised.value.code == "ANSWER_GENERATION_FAILED"


@pytest.fixture
def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "start", no_host)


@pytest.mark.usefixtures("_no_process")
@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("empty.sqlite3", QUESTION, "with: python -m examples.answers sync DIR"),
        ("answers.sqlite3", "What is the capital of France?", "Ask in other words."),
        ("answers.sqlite3", "火星の天気は？", "別の言葉でもう一度お尋ねください。"),
        ("answers.sqlite3", " ", "The question is empty. Write what you want to know."),
    ],
)
def test_without_documents_no_agent_is_started(
    file: Path, name: str, question: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file.with_name(name), "ask", question) == 1

    assert lines(capsys)[-1].endswith(said)
    for command in (["list"], ["list", "--recent", "1"], ["audit"]):
        assert run(file.with_name(name), *command) == 0
        assert any("unanswered: " in line and line.endswith(question) for line in lines(capsys)) == bool(
            question.strip()
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "x", "--api", "chat"], "--api is for a model behind an API"),
        (["sync", "nowhere"], "nowhere is not a folder"),
        (["ask", "x", "--system-prompt", "Hi {you}"], "the only placeholder is {documents}"),
        (["list", "--page", "0"], "0 is not in the range"),
        (["list", "--page", str(2**64)], "is not in the range"),
    ],
)
def test_a_mistake_in_a_command_is_one_sentence(
    file: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(file, *arguments) == 2
    assert said in capsys.readouterr().err
