"""A setup of the console as arguments of a command of devhost, which click reads as the same setup."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.cli.commands import commands, main
from devhost.console.setup import Setup, Values, typed

RUN = Path("/run.jsonl")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORDS = st.text("abc -'=", min_size=1, max_size=8).map(lambda text: f"x{text}x")
PATHS = WORDS.map(lambda text: f"/nowhere/{text}")
NAMES = st.text("abc_", min_size=1, max_size=5).map(lambda name: f"p.{name}")
COMMON = {
    "plugin": PATHS,
    "model": WORDS,
    "api": st.sampled_from(["chat", "responses"]),
    "completion": st.lists(WORDS.map(lambda word: f"k={word}"), min_size=1, max_size=2).map("\n".join),
    "tools": st.lists(PATHS, max_size=2, unique=True).map("\n".join),
    "mcp": st.lists(PATHS, max_size=2, unique=True).map("\n".join),
}


def values(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[Values]:
    fixed = st.fixed_dictionaries({}, optional={**COMMON, **fields})
    return st.builds(lambda held, typed: {**held, **typed}, fixed, st.dictionaries(NAMES, TEXTS, max_size=3))


CHATS = values(
    source=st.sampled_from(["example:one", "example:one/two", "script:/nowhere/mine.yaml", "none"]),
    strategy=WORDS,
    files=st.lists(PATHS, max_size=2, unique=True).map("\n".join),
    real=st.sampled_from(["yes", "no"]),
)
FORKS = values(
    script=PATHS,
    turn=st.sampled_from(["1", "2"]),
    at=st.sampled_from(["0", "3"]),
    live=st.just("yes"),
    answers=st.sampled_from(["recorded", "real"]),
)


def chat(held: Values) -> tuple[str, ...]:
    return Setup(values=dict(held)).arguments(lambda _: RUN)


def fork(held: Values) -> tuple[str, ...]:
    return Setup(kind="fork", of="run", values=dict(held)).arguments(lambda _: RUN)


def read_by_click(arguments: Sequence[str]) -> dict[str, Any]:
    name, *rest = arguments
    context = click.Context(commands)
    command = commands.get_command(context, name)
    assert command is not None
    return command.make_context(name, rest, parent=context).params


def of_the_model(read: dict[str, Any], held: Values, *, real: bool) -> None:
    assert read["scripted"] != real
    assert (read["api"], read["name"]) == ((held.get("api"), held.get("model")) if real else (None, None))
    assert list(read["completion"]) == (held.get("completion", "").splitlines() if real else [])


@given(CHATS)
def test_click_reads_the_arguments_of_a_chat_as_its_values(held: Values) -> None:
    read = read_by_click(chat(held))

    kind, _, named = held.get("source", "none").partition(":")
    example, _, scenario = named.partition("/") if kind == "example" else ("", "", "")
    assert (read["example"], read["scenario"]) == (example or None, scenario or None)
    assert str(read["script"]) == (named if kind == "script" else "None")
    assert str(read["strategy"]) == str(held.get("strategy"))
    assert list(map(str, read["plugins"])) == ([held["plugin"]] if held.get("plugin") else [])
    for name in ("tools", "files"):
        assert list(map(str, read[name])) == [line for line in held.get(name, "").split("\n") if line]
    assert list(read["servers"]) == [line for line in held.get("mcp", "").split("\n") if line]
    assert list(read["parameters"]) == [f"{name[2:]}={text}" for name, text in held.items() if name[:2] == "p."]
    of_the_model(read, held, real=held.get("real") == "yes")


@given(FORKS)
def test_click_reads_the_arguments_of_a_fork_as_its_values(held: Values) -> None:
    read = read_by_click(fork(held))

    assert (read["trace"], read["at"]) == (RUN, int(held.get("at", "0")))
    assert str(read["question"]) == str(held.get("turn"))
    is_live = "live" in held
    assert read["live_tools"] == is_live
    assert list(map(str, read["tools"])) == (list(filter(None, held.get("tools", "").split("\n"))) if is_live else [])
    of_the_model(read, held, real=held.get("answers") == "real")


def test_of_a_fork_the_instruction_may_be_emptied_and_the_question_changed() -> None:
    assert fork({"p.instruction": "", "p.mood": ""})[4:] == ("--instruction", "", "--param", "mood=", "--scripted")
    assert "query=Why?" in fork({"p.query": "Why?"})


@given(CHATS)
def test_a_shell_reads_the_typed_command_as_the_arguments(held: Values) -> None:
    assert shlex.split(typed(chat(held))) == ["devhost", *chat(held)]


@pytest.mark.parametrize("kind", ["chat", "flow"])
def test_a_model_plugin_answers(kind: Literal["chat", "flow"]) -> None:
    values = {"real": "plugin", "model_plugin": "/gateway", "model": "m", "completion": "top_p=1", "api": "chat"}
    arguments = Setup(kind=kind, values=values).arguments(lambda _: RUN)

    assert arguments[-6:] == ("--model", "m", "--completion", "top_p=1", "--model-plugin", "/gateway")


def test_a_flow_is_played_by_its_script_or_alone(tmp_path: Path) -> None:
    script = tmp_path / "case.yaml"
    flow = tmp_path / "flow.yml"
    script.write_text("flow: flow.yml\n")
    flow.write_text("kind: app\n")

    def arguments(file: Path, **held: str) -> list[str]:
        return list(Setup(kind="flow", values={"source": f"flow:{file}", **held}).arguments(lambda _: RUN))

    assert arguments(script, **{"p.topic": "tea"}) == [
        *("flow", "chat", "--input", "topic=tea", "--script", str(script), "--scripted"),
    ]
    assert arguments(flow, play="run", http="yes", mcp="/one") == [
        *("flow", "run", str(flow), "--mcp", "/one", "--allow-http", "--scripted"),
    ]
    assert arguments(flow, play="run", http="yes") == ["flow", "run", str(flow), "--allow-http", "--scripted"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--plugin", "/nowhere"], "/nowhere is not a plugin: manifest.yaml is missing"),
        (["--runs", "/dev/null/runs"], "--runs /dev/null/runs: no run can be written there: Not a directory"),
    ],
)
def test_a_folder_that_cannot_be_used(
    given: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["ui", "--no-open", *given]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
