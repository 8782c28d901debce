"""The findings of a flow check. Each finding has a sentence and says who objects."""

from dataclasses import dataclass
from typing import Literal

type Judge = Literal["editor", "engine", "devhost", "given", "notice"]
"""The source of a finding.

`given` means that `devhost flow` needs an option or another value. A `notice` does not stop a flow.
"""


@dataclass(frozen=True)
class FlowFinding:
    """One finding of a flow check."""

    by: Judge
    sentence: str
    plays: bool = False
    """Whether the flow can be played anyway."""

    @property
    def refuses(self) -> bool:
        return self.by != "notice" and not self.plays


def notice(sentence: str) -> FlowFinding:
    return FlowFinding("notice", sentence, plays=True)
