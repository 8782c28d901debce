"""What a check of a flow finds: a sentence, and who objects."""

from dataclasses import dataclass
from typing import Literal

type Judge = Literal["editor", "engine", "devhost", "given", "notice"]
"""`given`: what `devhost flow` has to be given; `notice`: worth knowing, and refused by nothing."""


@dataclass(frozen=True)
class FlowFinding:
    by: Judge
    sentence: str
    plays: bool = False
    """Whether the flow can be played all the same."""

    @property
    def refuses(self) -> bool:
        return self.by != "notice" and not self.plays


def notice(sentence: str) -> FlowFinding:
    return FlowFinding("notice", sentence, plays=True)
