"""The command of a run: `devhost chat`, as a person would type it.

In: a `Setup`. Out: arguments, which click reads as the same setup. The question is no argument: it is typed after it.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from devhost.console.runs.setup import Model, Setup


def chat_arguments(setup: Setup) -> tuple[str, ...]:
    return ("chat", *_of_scenario(setup), *model_arguments(setup.model))


def child_arguments(setup: Setup, trace: Path) -> tuple[str, ...]:
    """Those of the console's child, which writes a trace and reads what a program writes."""
    return (*chat_arguments(setup), "--trace", str(trace), "--json-lines", "--no-color")


def typed_command(setup: Setup) -> str:
    """For a shell."""
    return shlex.join(("devhost", *chat_arguments(setup)))


def _of_scenario(setup: Setup) -> Iterator[str]:
    one_each = {
        "--plugin": setup.plugin,
        "--example": setup.example,
        "--scenario": setup.scenario,
        "--script": setup.script,
        "--strategy": setup.strategy,
    }
    for option, value in one_each.items():
        if value is not None:
            yield from (option, str(value))
    for folder in setup.tools:
        yield from ("--tools", str(folder))
    yield from assignments("--param", setup.parameters)
    for file in setup.files:
        yield from ("--file", str(file))


def model_arguments(model: Model) -> Iterator[str]:
    if model.scripted:
        yield "--scripted"
        return
    for option, value in {"--api": model.api, "--model": model.name}.items():
        if value is not None:
            yield from (option, value)
    yield from assignments("--completion", model.completion)


def assignments(option: str, values: Mapping[str, str]) -> Iterator[str]:
    for name, text in values.items():
        yield from (option, f"{name}={text}")
