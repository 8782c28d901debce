"""Which scenarios there are, and under which strategies each is run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devhost import HostLimits
from devhost.case import Case
from devhost.case_options import CaseOptions
from devhost.plugin.declaration import PluginDeclaration
from devhost.scenario import SCENARIOS, SCRIPT
from devhost.script import Script

from .world import Credentials

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DEFAULT = "script"
"""The name of an example's own script among its scenarios."""


@dataclass(frozen=True)
class Cast:
    """A scenario, and the strategy that plays it."""

    example: str
    scenario: str
    strategy: str

    def read(self, credentials: Credentials) -> Case:
        options = CaseOptions(
            example=self.example,
            scenario=None if self.scenario == DEFAULT else self.scenario,
            credentials=tuple(
                f"{provider}.{key}={value}" for provider, values in credentials.items() for key, value in values.items()
            ),
            strategy=self.strategy,
            plugins=(ROOT,),
            examples=EXAMPLES,
        )
        return options.read(limits=HostLimits())


def example_names() -> list[str]:
    return sorted(file.parent.name for file in EXAMPLES.glob(f"*/{SCRIPT}"))


def casts(example: str) -> Iterator[Cast]:
    strategies = list(PluginDeclaration.read(ROOT).strategies)
    folder = EXAMPLES / example
    for file in [folder / SCRIPT, *sorted((folder / SCENARIOS).glob("*.yaml"))]:
        for strategy in _played_by(file, strategies):
            yield Cast(example, file.stem, strategy)


def _played_by(file: Path, strategies: Sequence[str]) -> list[str]:
    return [strategy for strategy in strategies if Script.read(file, strategy).fits]
