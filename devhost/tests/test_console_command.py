"""A setup of the console as arguments of `devhost chat` and `devhost fork`, which click reads as the same setup."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from hypothesis import given
from hypothesis import strategies as st

from devhost.cli.commands import commands
from devhost.console.setup import Values, chat_arguments, fork_arguments, typed

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORDS = st.text("abc -'=", min_size=1, max_size=8).map(lambda text: f"x{text}x")
PATHS = WORDS.map(lambda text: f"/nowhere/{text}")
NAMES = st.text("abc_", min_size=1, max_size=5).map(lambda name: f"p.{name}")
COMMON = {
    "plugin": PATHS,
    "model": WORDS,
    "api": st.sampled_from(["chat", "responses"]),
    "completion": st.lists(WORDS.map(lambda word: f"k={word}"), min_size=1, max_size=2).map("\n".join),
    "tools": st.lists(PATHS, max_size=2).map("\n".join),
}


def values(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[Values]:
    fixed = st.fixed_dictionaries({}, optional={**COMMON, **fields})
    return st.builds(lambda held, typed: {**held, **typed}, fixed, st.dictionaries(NAMES, TEXTS, max_size=3))


CHATS = values(
    source=st.sampled_from(["example:one", "example:one/two", "none"]),
    script=PATHS,
    strategy=WORDS,
    files=st.lists(PATHS, max_size=2).map("\n".join),
    real=st.sampled_from(["yes", "no"]),
)
FORKS = values(
    source=st.sampled_from(["example:one"]),
    script=PATHS,
    turn=st.sampled_from(["1", "2"]),
    at=st.sampled_from(["0", "3"]),
    live=st.just("yes"),
    answers=st.sampled_from(["recorded", "real"]),
)


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
    read = read_by_click(chat_arguments(held))

    example, _, scenario = held.get("source", "none").removeprefix("example:").partition("/")
    assert (read["example"], read["scenario"]) == (None if example == "none" else example, scenario or None)
    for name in ("plugin", "script", "strategy"):
        assert str(read[name]) == str(held.get(name))
    for name in ("tools", "files"):
        assert list(map(str, read[name])) == [line for line in held.get(name, "").split("\n") if line]
    assert list(read["parameters"]) == [f"{name[2:]}={text}" for name, text in held.items() if name[:2] == "p."]
    of_the_model(read, held, real=held.get("real") == "yes")


@given(FORKS)
def test_click_reads_the_arguments_of_a_fork_as_its_values(held: Values) -> None:
    read = read_by_click(fork_arguments(held, Path("/run.jsonl")))

    assert (read["trace"], read["at"]) == (Path("/run.jsonl"), int(held.get("at", "0")))
    assert str(read["question"]) == str(held.get("turn"))
    is_live = "live" in held
    assert (read["live_tools"], read["example"]) == (is_live, "one" if is_live and "source" in held else None)
    assert list(map(str, read["tools"])) == (list(filter(None, held.get("tools", "").split("\n"))) if is_live else [])
    of_the_model(read, held, real=held.get("answers") == "real")


def test_an_instruction_may_be_emptied() -> None:
    arguments = fork_arguments({"p.instruction": "", "p.mood": ""}, Path("/run.jsonl"))

    assert arguments[4:] == ("--instruction", "", "--param", "mood=", "--scripted")


@given(CHATS)
def test_a_shell_reads_the_typed_command_as_the_arguments(held: Values) -> None:
    assert shlex.split(typed(chat_arguments(held))) == ["devhost", *chat_arguments(held)]
