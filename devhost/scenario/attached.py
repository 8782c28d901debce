"""The files that a person sends with a question, and the parameter in which a strategy gets them.

In: a script, `--file`, the host's limits. Out: the files of each question, and a setting for the strategy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError
from devhost.files.local_file import LocalFile, local_files
from devhost.limits import HostLimits
from devhost.models.scripted.script import Script, gist
from devhost.plugin.declaration import Strategy
from devhost.protocol.wire import JsonObject

FILES = "sys.files"
"""The variable that the files of a question are, as in a chatflow."""
LIST_OF_FILES = "array[file]"


@dataclass(frozen=True)
class AttachedFiles:
    first: tuple[LocalFile, ...] = ()
    """Of the first question, whatever it is."""
    said: tuple[tuple[str, tuple[LocalFile, ...]], ...] = ()
    """What the script's user says, in order, each with its files."""
    limits: HostLimits = field(default_factory=HostLimits)

    @classmethod
    def of(cls, script: Script | None, given: Sequence[Path], limits: HostLimits) -> Self:
        """`given` take the place of the script's files for its first question."""
        if script is None:
            return cls(local_files(given, limits), limits=limits)
        first = local_files(given or script.files, limits)
        later = [(each.query, local_files(each.files, limits)) for each in script.then]
        return cls(first, ((script.query, first), *later), limits)

    def of_question(self, question: str, asked: int, *, is_first: bool) -> tuple[LocalFile, ...]:
        """`asked`: how often the conversation had this question before."""
        if is_first:
            return self.first
        written = [files for said, files in self.said if gist(said) == gist(question)]
        return written[asked] if asked < len(written) else ()

    def of_turns(self) -> Iterator[tuple[LocalFile, ...]]:
        yield self.first
        for _, files in self.said[1:]:
            yield files


def file_setting(strategy: Strategy, files: Sequence[JsonObject], value: object) -> JsonObject:
    """`value` for the parameter in which the strategy takes files; nothing without files."""
    if not files:
        return {}
    takers = [
        parameter.name
        for parameter in strategy.parameters
        if parameter.type in {"file", "files"} or (parameter.type == "any" and parameter.scope == LIST_OF_FILES)
    ]
    if not takers:
        raise ParameterError(
            f"{strategy.identity.name} has no parameter for files, which is one of type any with the scope "
            f'{LIST_OF_FILES}. Choose another with --param \'NAME={{"variable": "{FILES}"}}\''
        )
    return {takers[0]: value}
