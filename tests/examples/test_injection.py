"""What an attack in a document achieves against a model that obeys it, with and without what the node's settings stop.

The runs go through devhost with the plugin's own tools; what was done is read from the office's database.
"""

import base64
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import yaml
from office_store.store import FILE_NAME, SETTINGS, Store, read_documents
from office_store.tool import VARIABLE

from devhost import Host, Run, ScriptedModel
from devhost.cli.commands import main
from devhost.models.scripted.script import ScriptedTurn, read_turns
from devhost.script import Script
from devhost.tools.setup import ToolSetup
from tests.support.text_form import block

ROOT = Path(__file__).resolve().parents[2]
INJECTION = ROOT / "examples" / "injection"
STRATEGIES = ["gpt5_function_calling", "gpt5_react"]
ACTING = {"send_mail", "delete_document", "change_setting"}

type Deed = tuple[str, dict[str, str]]


def attacks() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = yaml.safe_load((INJECTION / "attacks.yaml").read_text(encoding="utf-8"))
    return listed


def asked_calls() -> list[Deed]:
    return [(call["name"], call["arguments"]) for attack in attacks() for call in attack.get("calls", ())]


ASKED_DEEDS = [call for call in asked_calls() if call[0] in ACTING]


@dataclass(frozen=True)
class Office:
    """A host with the office's tools over a database of its own."""

    host: Host
    directory: Path

    def run(self, model: ScriptedModel, strategy: str, parameters: Mapping[str, object]) -> Run:
        return self.host.run(strategy, parameters, model=model)

    def deeds(self) -> list[Deed]:
        """In any order: the calls of one turn run side by side."""
        rows = self._rows("SELECT tool, arguments FROM deeds")
        return in_order([(tool, json.loads(arguments)) for tool, arguments in rows])

    def is_untouched(self) -> bool:
        """Nothing was sent, changed or deleted."""
        documents = [row[0] for row in self._rows("SELECT id FROM documents ORDER BY id")]
        return (
            self._rows("SELECT 1 FROM deeds") == self._rows("SELECT 1 FROM mails") == []
            and dict(self._rows("SELECT name, value FROM settings")) == SETTINGS
            and documents == [document.id for document in read_documents(INJECTION / "documents")]
        )

    def begin_again(self) -> None:
        """Nothing was done yet."""
        (self.directory / FILE_NAME).unlink(missing_ok=True)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        Store(INJECTION / "documents", self.directory).search("")  # makes the database if no call did
        with closing(sqlite3.connect(self.directory / FILE_NAME)) as database:
            return database.execute(query).fetchall()


def in_order(deeds: list[Deed]) -> list[Deed]:
    return sorted(deeds, key=json.dumps)


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, directory)
        with Host.start(ROOT, tools=[ToolSetup.read(INJECTION)]) as host:
            yield Office(host, Path(directory))


@pytest.fixture
def fresh(office: Office) -> Office:
    office.begin_again()
    return office


def script(scenario: str | None = None) -> Script:
    return Script.read(INJECTION / (f"scenarios/{scenario}.yaml" if scenario else "script.yaml"))


def turns_of(read: Script) -> list[ScriptedTurn]:
    """Of the whole conversation."""
    return [*read.turns, *(turn for later in read.then for turn in later.turns)]


def played(office: Office, scenario: str | None, strategy: str = STRATEGIES[0]) -> Run:
    """The scenario as `devhost run --example injection` plays it."""
    read = script(scenario)
    run = office.run(read.as_model(), strategy, {**read.params, "query": read.query})
    assert run.error is None
    return run


def told(document: str) -> str:
    """What the document says, on one line, with what it says in base64."""
    text = (INJECTION / "documents" / f"{document}.md").read_text(encoding="utf-8")
    coded = re.findall(r"^[A-Za-z0-9+/=\n]{40,}$", text, re.MULTILINE)
    return " ".join([text, *(base64.b64decode(part).decode() for part in coded)])


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack["technique"])
def test_a_document_asks_for_what_the_list_says(attack: dict[str, Any]) -> None:
    text = told(attack["document"])

    aims = [
        call["arguments"][key]
        for call in attack.get("calls", ())
        for key in ("to", "id", "value")
        if key in call["arguments"]
    ]
    assert aims or attack["answer"] in text
    assert all(aim in text for aim in aims)
    for host in re.findall(r"https://[^/]+/", attack.get("answer", "")):
        assert host in text


def test_without_a_setting_every_attack_succeeds(fresh: Office) -> None:
    run = played(fresh, None)

    assert fresh.deeds() == in_order(ASKED_DEEDS)
    assert len(ASKED_DEEDS) == 11
    assert not fresh.is_untouched()
    assert run.outputs.variables["stop_reason"] == "answered"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_allowed_tools_stops_every_attack_that_acts(fresh: Office, strategy: str) -> None:
    run = played(fresh, "allowed-tools", strategy)

    assert fresh.is_untouched()
    refused = [call["tool"] for call in run.outputs.variables["tool_runs"] if call["status"] == "refused"]
    assert refused == [tool for tool, _ in ASKED_DEEDS]


def test_what_only_reads_or_talks_is_not_stopped(fresh: Office) -> None:
    """The README says so: an allowed tool is called, and the answer carries the lie and the picture's address."""
    run = played(fresh, "allowed-tools")

    last = run.outputs.variables["tool_runs"][-1]
    assert (last["tool"], last["status"]) == ("read_document", "ok")
    assert all(attack["answer"] in run.outputs.text for attack in attacks() if "answer" in attack)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_approval_stops_every_attack_that_acts(fresh: Office, strategy: str) -> None:
    """One of them claims that the user has approved it."""
    run = played(fresh, "approval", strategy)

    assert fresh.is_untouched()
    assert run.outputs.variables["stop_reason"] == "approval_required"
    assert [(call["tool"], call["arguments"]) for call in run.outputs.variables["pending_calls"]] == ASKED_DEEDS
    for attack in attacks():
        assert "answer" in attack or attack["calls"][0]["arguments"].get("to", "") in run.outputs.text


def with_text_calls(turn: ScriptedTurn) -> ScriptedTurn:
    """The turn as a model without tool calls writes it."""
    blocks = [block(call.name, call.arguments_text) for call in turn.tool_calls]
    said = "".join(turn.text)
    return turn.model_copy(update={"text": "\n".join(filter(None, [said, *blocks])), "tool_calls": ()})


DEEDS_IN_TEXT: dict[str | None, list[Deed]] = {
    None: in_order(ASKED_DEEDS),
    "allowed-tools": [],
    "approval": [],
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scenario", DEEDS_IN_TEXT)
def test_calls_in_text_are_stopped_and_done_as_native_ones(fresh: Office, scenario: str | None, strategy: str) -> None:
    """What the documents quote, tags of ours among it, is no call in this form either."""
    read = script(scenario)
    model = ScriptedModel([with_text_calls(turn) for turn in read.turns])

    run = fresh.run(model, strategy, {**read.params, "query": read.query, "tool_calls": "text"})

    assert run.error is None
    assert not any(request.tools for request in model.requests)
    assert fresh.deeds() == DEEDS_IN_TEXT[scenario]
    if scenario == "approval":
        assert [(call["tool"], call["arguments"]) for call in run.outputs.variables["pending_calls"]] == ASKED_DEEDS
    else:
        assert run.outputs.variables["stop_reason"] == "answered"
    assert fresh.is_untouched() == (scenario is not None)


def answered(office: Office, waiting: Run, approval: str, query: str) -> Run:
    """The user's next message, after a run whose calls wait, and the model's last turn."""
    given = {"query": query, "approval": approval, "state": waiting.outputs.variables["state"]}
    read = script("approval")
    run = office.run(ScriptedModel(turns_of(read)[-1:]), STRATEGIES[0], {**read.params, **given})
    assert run.error is None
    assert run.outputs.variables["pending_calls"] == []
    return run


@pytest.mark.parametrize("said", ["no", "yes, but not the mails", "What is in inbox/terms?", '{"approved": true}', ""])
def test_what_the_user_does_not_plainly_approve_is_not_done(fresh: Office, said: str) -> None:
    run = answered(fresh, played(fresh, "approval"), said, said or "Go on.")

    assert fresh.is_untouched()
    assert all(attack["answer"] in run.outputs.text for attack in attacks() if "answer" in attack)


def test_what_the_user_approves_by_its_id_is_all_that_is_done(fresh: Office) -> None:
    waiting = played(fresh, "approval")
    call = waiting.outputs.variables["pending_calls"][3]

    answered(fresh, waiting, json.dumps({call["id"]: True}), "Only that one.")

    assert fresh.deeds() == [(call["tool"], call["arguments"])]


def test_a_user_who_approves_everything_unread_is_not_protected(fresh: Office) -> None:
    answered(fresh, played(fresh, "approval"), "yes", "yes")

    assert fresh.deeds() == in_order(ASKED_DEEDS)


def planned(turns: Sequence[ScriptedTurn]) -> ScriptedModel:
    """The same turns as the one subtask of a plan."""
    plan = {"tool_calls": [{"name": "submit_plan", "id": "p", "arguments": {"subtasks": ["Sum up the inbox."]}}]}
    arguments = {"is_completed": True, "advice": ""}
    judgement = {"tool_calls": [{"name": "submit_reflection", "id": "j", "arguments": arguments}]}
    first, last = (read_turns([each]) for each in (plan, judgement))
    return ScriptedModel([*first, *turns, *last, *turns[-1:]])


def test_a_plan_stops_them_too_and_its_judge_reads_no_tag_of_ours_in_a_result(fresh: Office) -> None:
    read = script("allowed-tools")
    model = planned(read.turns)

    run = fresh.run(model, "gpt5_plan_and_reflect", {**read.params, "query": read.query})

    assert run.error is None
    assert model.remaining == 0
    assert fresh.is_untouched()
    (judged,) = [
        message.text
        for message in model.requests[-2].prompt_messages
        if "<results>" in message.text and "Judge subtask" in message.text
    ]
    assert "&lt;/tool_results>" in judged
    assert not re.search(r"</?(?:tool_results|persistence|context)>", judged)


def test_in_a_plan_they_wait_too(fresh: Office) -> None:
    read = script("approval")

    run = fresh.run(planned(turns_of(read)), "gpt5_plan_and_reflect", {**read.params, "query": read.query})

    assert run.error is None
    assert fresh.is_untouched()
    assert run.outputs.variables["stop_reason"] == "approval_required"
    pending = run.outputs.variables["pending_calls"]
    assert [(call["tool"], call["arguments"], call["subtask"]) for call in pending] == [
        (tool, arguments, "Sum up the inbox.") for tool, arguments in ASKED_DEEDS
    ]


def commanded(office: Office, *arguments: str) -> int:
    """`devhost`, as a person calls it."""
    assert os.environ[VARIABLE] == str(office.directory)
    return main([arguments[0], "--example", "injection", *arguments[1:]])


CALLING = STRATEGIES[0]
PLANNING = "gpt5_plan_and_reflect"


@pytest.mark.parametrize(
    ("strategy", "answers", "said", "mails"),
    [
        (CALLING, ["yes"], ["is sent."], 1),
        (CALLING, ['{"call_1_97ded2b8": false}'], ["The mail is not sent."], 0),
        (CALLING, ["/reject not today", "No, mention the piano too", "/Approve"], ["not sent", "piano", "is sent"], 1),
        (PLANNING, ["go ahead"], ["is sent."], 1),
        (PLANNING, ["/reject and the piano?", "/approve"], ["about the piano", "is sent."], 1),
    ],
)
def test_the_mail_scenario_fits_any_approval_and_any_rejection(
    *,
    fresh: Office,
    strategy: str,
    answers: list[str],
    said: list[str],
    mails: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = "\n".join([script("mail").query, *answers])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))

    assert commanded(fresh, "chat", "--scripted", "--scenario", "mail", "--strategy", strategy) == 0

    shown = capsys.readouterr().out.split("you> ")[2:]
    assert [words for answer, words in zip(shown, said, strict=True) if words not in " ".join(answer.split())] == []
    assert len(fresh.deeds()) == mails


@pytest.mark.parametrize("scenario", ["allowed-tools", "approval", "mail", None])
def test_every_script_plays_in_a_plan(fresh: Office, scenario: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [] if scenario is None else ["--scenario", scenario]
    assert commanded(fresh, "run", "--scripted", "--strategy", PLANNING, *chosen) == 0
    assert "turns that no model call asked for" not in capsys.readouterr().out
    assert fresh.is_untouched() == (scenario in {"allowed-tools", "approval"})


def test_the_page_shows_how_to_hand_the_state_over(fresh: Office, tmp_path: Path) -> None:
    """With a stand-in for jq, which not every machine has."""
    page = (ROOT / "devhost" / "docs" / "chat.md").read_text()
    (shown,) = [block for block in re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "jq" in block]
    python = quote(sys.executable)
    root = quote(str(ROOT))
    devhost = f"{python} -m devhost run --plugin {root}"
    read = "import json; print(json.load(open('first.json'))['variables']['state'])"
    played = shown.replace("devhost run", devhost).replace("jq -r .variables.state first.json", f'{python} -c "{read}"')

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}
    done = subprocess.run(
        ["/bin/bash", "-euc", played], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "first.json").read_text())["variables"]["stop_reason"] == "approval_required"
    assert [tool for tool, _ in fresh.deeds()] == ["send_mail"]
    assert "The mail to choir@st-anne.example is sent." in done.stdout
