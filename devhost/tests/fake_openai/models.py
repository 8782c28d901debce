"""The models that the fake has, and what each takes; its own knowledge, not devhost's."""

from dataclasses import dataclass

from fake_openai.refusals import no_such_model


@dataclass(frozen=True)
class Profile:
    efforts: frozenset[str] = frozenset()
    """Empty: it does not reason."""
    default_effort: str = "medium"
    is_openais: bool = True
    chat_takes_tools_with_effort: bool = True

    @property
    def reasons(self) -> bool:
        return bool(self.efforts)


_MODELS = {
    "gpt-5": Profile(frozenset({"minimal", "low", "medium", "high"})),
    "gpt-5.4": Profile(frozenset({"none", "low", "medium", "high", "xhigh"}), default_effort="none"),
    "gpt-5.6-terra": Profile(
        frozenset({"none", "low", "medium", "high", "xhigh", "max"}), chat_takes_tools_with_effort=False
    ),
    "gpt-4.1": Profile(),
    "llama3.2": Profile(is_openais=False),
}


def profile(model: str) -> Profile:
    if model not in _MODELS:
        raise no_such_model(model)
    return _MODELS[model]
