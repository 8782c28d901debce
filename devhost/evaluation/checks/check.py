"""One expectation and what came of it. In: its name and two texts. Out: a `Check`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    name: str
    """The expectation's key in words, such as `text contains`."""
    expected: str
    found: str = ""
    """What was there instead; empty if the run fits."""
    remark: str = ""
    """Such as the reason of a judge."""

    @property
    def passed(self) -> bool:
        return not self.found

    @property
    def sentence(self) -> str:
        """For a check that failed."""
        return f"{self.name}: expected {self.expected}; found {self.found}"
