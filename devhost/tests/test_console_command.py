"""A setup of the console as arguments of `devhost chat`, which click reads as the same setup."""

import shlex
from pathlib import Path
from typing import Any

import click
from hypothesis import given
from hypothesis import strategies as st

from devhost.cli.commands import commands
from devhost.console.runs import Model, Setup, chat_arguments, child_arguments, typed_command

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = TEXTS.filter(lambda text: bool(text) and "=" not in text)
PATHS = st.text("abc -'", min_size=1, max_size=8).map(lambda text: Path("/nowhere") / text)
ASSIGNMENTS = st.dictionaries(NAMES, TEXTS, max_size=3)
SCRIPTED = st.just(Model())
REAL = st.builds(
    Model,
    scripted=st.sampled_from([False]),
    api=st.sampled_from([None, "chat", "responses"]),
    name=st.none() | TEXTS,
    completion=ASSIGNMENTS,
)
SETUPS = st.builds(
    Setup,
    question=TEXTS,
    plugin=st.none() | PATHS,
    example=st.none() | TEXTS,
    scenario=st.none() | TEXTS,
    script=st.none() | PATHS,
    tools=st.lists(PATHS, max_size=2).map(tuple),
    strategy=st.none() | TEXTS,
    model=SCRIPTED | REAL,
    parameters=ASSIGNMENTS,
    files=st.lists(PATHS, max_size=2).map(tuple),
)


def read_by_click(arguments: tuple[str, ...]) -> dict[str, Any]:
    name, *rest = arguments
    context = click.Context(commands)
    command = commands.get_command(context, name)
    assert command is not None
    return command.make_context(name, rest, parent=context).params


def as_setup(read: dict[str, Any]) -> Setup:
    def assignments(name: str) -> dict[str, str]:
        return dict(pair.partition("=")[::2] for pair in read[name])

    return Setup(
        **{name: read[name] for name in ("plugin", "example", "scenario", "script", "tools", "strategy", "files")},
        model=Model(
            scripted=read["scripted"], api=read["api"], name=read["name"], completion=assignments("completion")
        ),
        parameters=assignments("parameters"),
    )


@given(SETUPS)
def test_click_reads_the_arguments_as_the_setup(setup: Setup) -> None:
    assert as_setup(read_by_click(chat_arguments(setup))) == setup.model_copy(update={"question": ""})


@given(SETUPS)
def test_a_shell_reads_the_typed_command_as_the_arguments(setup: Setup) -> None:
    assert shlex.split(typed_command(setup)) == ["devhost", *chat_arguments(setup)]


@given(SETUPS, PATHS)
def test_the_child_writes_a_trace_and_reads_json(setup: Setup, trace: Path) -> None:
    read = read_by_click(child_arguments(setup, trace))

    assert as_setup(read) == setup.model_copy(update={"question": ""})
    assert (read["trace_file"], read["json_lines"], read["no_color"]) == (trace, True, True)
    assert setup.question not in child_arguments(setup, trace) or setup.question in chat_arguments(setup)
