"""The model of a form: a scripted one, or one behind an API.

In: what was typed, the environment. Out: a `Model`; a sentence for one that cannot be asked.
"""

from collections.abc import Mapping

from devhost.cli.options.model_options import BASE_URL, KEY, ModelOptions
from devhost.console.forms.choices import Choices
from devhost.console.runs.setup import Model
from devhost.errors import HostError

NUL = "a NUL character cannot be part of a command"


def can_be_real(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").strip() for name in (KEY, BASE_URL))


def real_model(chosen: Choices) -> Model:
    """ValueError for an API that does not exist."""
    pairs = (line.partition("=") for line in chosen.completion)
    return Model.model_validate(
        {
            "scripted": False,
            "api": chosen.api or None,
            "name": chosen.model or None,
            "completion": {name: text for name, _, text in pairs},
        }
    )


def wrong_model(chosen: Choices, environment: Mapping[str, str]) -> str:
    """Why the real model that was chosen cannot be asked; empty if it can."""
    if not can_be_real(environment):
        return f"a real model needs {KEY} or {BASE_URL} in the environment of devhost ui"
    if any("\0" in text for text in (chosen.model, *chosen.completion)):
        return NUL
    try:
        options = ModelOptions(real_model(chosen).api, chosen.model or None, chosen.completion)
        options.choose(None, "", environment)
    except (HostError, ValueError) as error:
        return str(error)
    return ""
