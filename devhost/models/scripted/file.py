"""A script file as pydantic checks it. In: a YAML file. Out: a `ScriptFile`; ScriptError with one sentence per mistake.

`devhost.models.scripted.script` chooses from it what one strategy needs.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PositiveInt, ValidationError
from pydantic_core import ErrorDetails

from devhost.errors import ScriptError
from devhost.models.backend import DEFAULT_FEATURES
from devhost.models.scripted.recorded import BesideTheScript, Recorded
from devhost.models.scripted.turn import Scripted, SomeTurns, Turn, Turns, Words, one_sentence
from devhost.protocol.failures import Fault
from devhost.text.json_value import json_value
from devhost.text.user_file import real_path
from devhost.text.yaml_file import load_yaml

type _JsonObject = Annotated[dict[str, Any], BeforeValidator(json_value)]
type _Names = Annotated[
    tuple[str, ...],
    one_sentence("should be a name, or a list of names"),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
]


type _Files = tuple[BesideTheScript, ...]
"""Paths, relative to the script's folder."""


class FollowUp(Scripted):
    """What the user says later in the conversation, and how the model answers."""

    query: Words
    approval: Words | None = None
    """The answer to calls that wait, if it is not the query."""
    files: _Files = ()
    """What the user sends with it."""
    turns: SomeTurns


class ScriptedModelCard(Scripted):
    name: str = "scripted-gpt-5"
    features: tuple[str, ...] = DEFAULT_FEATURES
    context_size: PositiveInt = 400_000


class Part(Scripted):
    """Turns for some strategies. `model_fields_set` says what the file sets."""

    strategy: _Names = ()
    """Those whose model calls the turns fit; empty for any."""
    params: _JsonObject = Field(default_factory=dict)
    turns: SomeTurns = ()
    then: tuple[FollowUp, ...] = ()
    """The rest of the conversation, in order."""
    otherwise: Turns | None = None

    @property
    def has_turns(self) -> bool:
        return bool(self.turns)

    def fits(self, strategy: str | None) -> bool:
        return not self.strategy or strategy in self.strategy


class ScriptFile(Part):
    extends: str | None = None
    """Another script, seen from this file's folder: what this one does not set is as there."""
    description: str = ""
    query: Words = ""
    files: _Files = ()
    """What the user sends with the query."""
    variables: _JsonObject = Field(default_factory=dict)
    """Of the workflow around the node, by `node.name`: what templates and selectors in `params` refer to."""
    panel: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By tool, the parameters that the node's panel holds; a text may be a template."""
    conversation_variables: tuple[str, ...] = ()
    """Variables of the strategy that the app assigns to conversation variables, whose size is limited."""
    model: ScriptedModelCard = ScriptedModelCard()
    api_fails: dict[str, Fault] = Field(default_factory=dict)
    """By tool, what Dify's API does each time it is called."""
    recorded: Recorded | None = None
    """Tools that answer from a recording."""
    variants: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The later ones go before the earlier ones."""
        return (self, *self.variants)


def checked(data: object, folder: Path | None = None) -> ScriptFile:
    """A script as plain data; `folder` is where its files are, by default the current one."""
    try:
        return ScriptFile.model_validate(data, context=folder)
    except ValidationError as error:
        raise ScriptError(mistakes(error)) from error


def read_files(file: Path) -> tuple[ScriptFile, ...]:
    """The script behind those that it extends, of which each goes before the one in front of it."""
    files: dict[Path, ScriptFile] = {}
    following: Path | None = file
    while following is not None:
        read = files[real_path(following)] = _read_file(following)
        following = None if read.extends is None else following.parent / read.extends
        if following is not None and real_path(following) in files:
            raise ScriptError(f"{file}: extends: {following} leads back to itself")
    every = tuple(reversed(files.values()))
    if not any("query" in each.model_fields_set for each in every):
        raise ScriptError(f"{file}: query: Field required")
    if not any(part.has_turns for each in every for part in each.parts):
        raise ScriptError(f"{file}: turns: Field required")
    return every


def _read_file(file: Path) -> ScriptFile:
    try:
        return checked(load_yaml(file), file.parent)
    except ScriptError as error:
        raise ScriptError(f"{file}: {error}") from error


def read_turns(turns: object) -> tuple[Turn, ...]:
    """Turns given as plain data."""
    return checked({"turns": turns}).turns


def mistakes(error: ValidationError) -> str:
    """One sentence for each, with the place in the script."""
    sentences = []
    for finding in _findings(error):
        *path, key = _readable(finding["loc"])
        where = f"{', '.join(path)}: " if path else ""
        if finding["type"] == "extra_forbidden":
            sentences.append(f"{where}unknown key {key!r}")
        else:
            sentences.append(f"{where}{key}: {finding['msg']}")
    return "; ".join(sentences)


def _findings(error: ValidationError) -> list[ErrorDetails]:
    """Turns with mistakes are not counted, so pydantic also calls the list too short: that error is left out."""
    findings = error.errors()

    def holds_another(location: tuple[int | str, ...]) -> bool:
        return any(other["loc"][: len(location)] == location != other["loc"] for other in findings)

    return [finding for finding in findings if finding["type"] != "too_short" or not holds_another(finding["loc"])]


def _readable(location: tuple[int | str, ...]) -> list[str]:
    """`("turns", 1, "tool_calls", 0, "nmae")` → turn 2, tool call 1, nmae."""
    names = {
        "turns": "turn",
        "otherwise": "turn of otherwise",
        "tool_calls": "tool call",
        "variants": "variant",
        "calls": "call",
        "answer": "part",
    }
    path: list[str] = []
    for part in location:
        if isinstance(part, int) and path:
            path[-1] = f"{names.get(path[-1], path[-1])} {part + 1}"
        else:
            path.append(str(part))
    return path
