"""A script for one strategy: what is asked, with which parameters, and how the scripted model answers, turn by turn.

In: a script file, which may hold turns for several strategies, and a strategy. Out: a `Script`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from devhost.models.scripted.file import FollowUp, Part, ScriptedModelCard, ScriptFile, checked, read_files
from devhost.models.scripted.recorded import Recorded
from devhost.models.scripted.turn import Turn
from devhost.protocol.failures import ApiFault
from devhost.protocol.wire import JsonObject
from devhost.text.user_file import real_path

WRITTEN_HERE = "the code that runs it"
"""The place of turns without a script file."""
SHARED = frozenset(
    {"description", "query", "files", "panel", "conversation_variables", "model", "api_fails", "recorded"}
)
"""What holds for every strategy, apart from `params` and `variables`, which are merged."""


@dataclass(frozen=True)
class Script:
    place: str
    """The file for people, below the current folder if it can be."""
    query: str
    turns: tuple[Turn, ...]
    """Empty if the file has none for the strategy: then `fits` is False."""
    description: str = ""
    strategy: str | None = None
    """The strategy that is run if none is named."""
    written_for: tuple[str, ...] = ()
    """All strategies that the file has turns for; empty for any."""
    files: tuple[Path, ...] = ()
    """What the user sends with the query."""
    params: JsonObject = field(default_factory=dict)
    variables: JsonObject = field(default_factory=dict)
    panel: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By tool, then by parameter."""
    conversation_variables: tuple[str, ...] = ()
    model: ScriptedModelCard = field(default_factory=ScriptedModelCard)
    then: tuple[FollowUp, ...] = ()
    otherwise: tuple[Turn, ...] | None = None
    api_fails: Mapping[str, ApiFault] = field(default_factory=dict)
    recorded: Recorded | None = None

    @classmethod
    def read(cls, file: Path, strategy: str | None = None) -> Self:
        """The script for a strategy, by default for the first one that the file names."""
        files = read_files(file)
        return cls(**chosen(files, strategy or _first_strategy(files)), place=_place(file))

    @classmethod
    def of(cls, data: object, strategy: str | None = None, folder: Path | None = None) -> Self:
        """From plain data in the form of a script file; `folder` is where its files are, by default the current one."""
        files = (checked(data, folder),)
        return cls(**chosen(files, strategy or _first_strategy(files)), place=WRITTEN_HERE)

    @property
    def fits(self) -> bool:
        return bool(self.turns)

    @property
    def questions(self) -> tuple[str, ...]:
        """What the scripted model has answers for."""
        return tuple(dict.fromkeys((self.query, *(each.query for each in self.then))))

    def turns_for(self, query: str, asked: int = 0) -> tuple[Turn, ...] | None:
        """The turns for what the script's user says, or those for anything else; None if there are none for it.

        `asked`: how often the conversation had this question before, because the user may say yes twice.
        """
        said = [(self.query, self.turns), *((each.query, each.turns) for each in self.then)]
        written = [turns for asked_for, turns in said if gist(asked_for) == gist(query)]
        if written:
            return written[min(asked, len(written) - 1)]
        return self.otherwise

    def knows(self, query: str) -> bool:
        return any(gist(question) == gist(query) for question in self.questions)

    def begins_with(self, query: str) -> bool:
        """Whether the query is the script's own question."""
        return gist(query) == gist(self.query)


def chosen(files: Sequence[ScriptFile], strategy: str | None) -> dict[str, Any]:
    """The fields of a Script. What stands later goes before what stands earlier."""
    given: dict[str, Any] = {"params": {}, "variables": {}, "turns": ()}
    for file in files:
        given |= {name: getattr(file, name) for name in file.model_fields_set & SHARED}
        given["variables"] |= file.variables
        given["params"] |= file.params
        for part in file.parts:
            if part.fits(strategy):
                given["params"] |= part.params
                given |= _conversation(part)
    return {**given, "strategy": _first_strategy(files), "written_for": _written_for(files)}


def _conversation(part: Part) -> dict[str, Any]:
    """With turns of its own, a part has a conversation of its own: what follows in another is not inherited."""
    own: dict[str, Any] = {}
    if part.has_turns:
        own["turns"] = part.turns
    if part.has_turns or part.then:
        own["then"] = part.then
    if part.otherwise is not None:
        own["otherwise"] = part.otherwise
    return own


def _first_strategy(files: Sequence[ScriptFile]) -> str | None:
    return next((file.strategy[0] for file in reversed(files) if file.strategy), None)


def _written_for(files: Sequence[ScriptFile]) -> tuple[str, ...]:
    parts = [part for file in reversed(files) for part in file.parts if part.has_turns]
    if any(not part.strategy for part in parts):
        return ()
    return tuple(dict.fromkeys(name for part in parts for name in part.strategy))


def gist(said: str) -> str:
    """People type a question without its capitals and its last full stop."""
    return " ".join(said.casefold().split()).rstrip(".?!。？！")


def _place(file: Path) -> str:
    whole, here = real_path(file), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else file)
