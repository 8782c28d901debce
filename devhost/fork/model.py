"""The model of a fork: it says again what was recorded, and then leaves the calls to another model.

In: recorded turns, and the model that follows. Out: a `ModelBackend`. Without a model that follows, a call beyond the
recording is an error that the plugin sees.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from devhost.conversation.script import CountingModel
from devhost.models.backend import ModelCallError
from devhost.models.request import ModelRequest
from devhost.models.scripted.file import ScriptedModelCard
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.turn import Turn
from devhost.protocol.wire import JsonObject


class ForkedModel(ScriptedModel):
    def __init__(
        self, turns: Sequence[Turn], card: ScriptedModelCard, trace: Path, later: CountingModel | None
    ) -> None:
        """`turns`: what the model said in the rounds that stay, or, without a `later` model, in all."""
        super().__init__(turns, card=card, place=str(trace))
        self._later = later
        self._recorded = len(turns)
        if later is None:
            notice = f"the model's turns are those recorded in {trace}, no provider is called"
            self.description = replace(self.description, notice=notice)
        else:
            begins = f"the past is recorded in {trace}, then: " if turns else ""
            self.description = replace(later.description, notice=f"{begins}{later.description.notice}")

    def unwritten(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        if self._later is not None:
            return self._later.invoke(request)
        raise ModelCallError(
            "InvokeBadRequestError",
            f"the recording has no turn for model call {len(self.requests)}: it has {self._recorded}, and "
            f"{self.remaining} of them wait for another prompt. Give --script FILE, or a real model.",
        )

    @property
    def afterwards(self) -> str:
        left = f"Recorded model turns that no call asked for: {self.remaining}." if self.remaining else ""
        return left if self._later is None else " ".join(filter(None, (left, self._later.afterwards)))

    def spent(self) -> JsonObject | None:
        return None if self._later is None else self._later.spent()
