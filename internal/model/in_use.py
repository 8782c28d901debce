"""Which model a run calls: the node's own, and its fallback from the moment when the first one has failed for good.

In: both models, and how the first one failed. Out: the model for the next request. All loops of a run share one object.
"""

from dataclasses import dataclass, field

from dify_plugin.entities.model.llm import LLMModelConfig

from internal.errors import ModelCallFailed


@dataclass
class ModelInUse:
    """The model that answers a run's requests."""

    first: LLMModelConfig
    """The node's own."""
    fallback: LLMModelConfig | None = None
    _failure: ModelCallFailed | None = field(default=None, init=False)
    """How the first one failed; None while it is in use."""

    @property
    def now(self) -> LLMModelConfig:
        return self.fallback if self.fallback and self._failure else self.first

    def can_replace(self, model: LLMModelConfig) -> bool:
        """Whether another model can answer what this one did not."""
        return self.fallback is not None and model is self.first

    def use_fallback(self, failure: ModelCallFailed) -> None:
        """Use the fallback from now on; ``failure`` says why. Of several conversations the first one's counts."""
        self._failure = self._failure or failure

    def told(self, model: LLMModelConfig, failure: ModelCallFailed) -> ModelCallFailed:
        """How this model failed; of the fallback, with the reason for which it was in use."""
        return failure if model is self.first or self._failure is None else self._failure.then(failure)


def name_of(model: LLMModelConfig) -> str:
    return f"{model.provider}/{model.model}"
