"""The form of a run that is run again: what there is to change, what was changed, and what cannot be.

In: a run of the folder, what a person has typed. Out: a `ForkPlan`, and the `Setup` of one without mistakes. Nothing
is started, and nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devhost.console.again.changes import Changed
from devhost.console.forms.fields import Field
from devhost.console.forms.model import real_model
from devhost.console.runs.setup import Model, Setup
from devhost.console.runs.typed import typed_path
from devhost.fork.fork import Origin


@dataclass(frozen=True)
class ForkPlan:
    name: str
    changed: Changed
    origin: Origin
    """The run of the turn."""
    questions: Sequence[str]
    """Of all turns of the conversation."""
    turn: int
    rounds: Sequence[tuple[int, str]]
    """Those after which a fork can go on."""
    at: int
    fields: Sequence[Field]
    plugin: Path | None
    live: Setup
    """Example and tool plugins of the run, which live tools would be."""
    tools: Sequence[str]
    """The tools that would run."""
    can_be_real: bool
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def setup(self) -> Setup:
        """Only what was changed."""
        changed, form = self.changed, self.changed.form
        return Setup(
            kind="fork",
            question=self.origin.run.question,
            plugin=self.plugin,
            example=self.live.example if changed.live else None,
            tools=self.live.tools if changed.live else (),
            strategy=self.origin.strategy,
            script=typed_path(form.script) if changed.answers == "script" else None,
            model=real_model(form) if changed.answers == "real" else Model(),
            parameters={each.name: each.text for each in self.fields if each.changed},
            of=self.name,
            turn=self.turn if len(self.questions) > 1 else None,
            at=self.at,
            live_tools=changed.live,
        )
