"""Which model answers: one behind an API if a key or a base URL is set, else the example's script.

In: --api, --model, --completion, --features, --scripted and the environment. Out: a backend. The script needs no
`openai`, so that it is imported only where a real model is chosen.
"""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from devhost.errors import ParameterError
from devhost.models.provider.catalog import DEFAULT_MODEL
from devhost.models.scripted.model import ScriptedModel
from devhost.models.scripted.script import Script
from devhost.scenario.settings import parse_assignments

if TYPE_CHECKING:
    from devhost.models.openai_api.backend import OpenAIModel
    from devhost.models.provider.parameters import Api

KEY, BASE_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def model_options(command: Callable[..., int]) -> Callable[..., int]:
    """The options as one argument `model_options` of the command."""

    @click.option(
        "--api",
        type=click.Choice(["responses", "chat"]),
        help="OpenAI's Responses API (default), or Chat Completions, which other servers have too.",
    )
    @click.option("--model", "name", metavar="NAME", help=f"The model; with OpenAI itself {DEFAULT_MODEL} by default.")
    @click.option(
        "--completion",
        metavar="KEY=VALUE",
        multiple=True,
        help="A parameter of the model, such as reasoning_effort=low or reasoning_summary=auto; repeatable.",
    )
    @click.option(
        "--features",
        metavar="A,B",
        help="What the model supports, in Dify's names: tool-call, multi-tool-call, stream-tool-call, vision, …",
    )
    @click.option("--scripted", is_flag=True, help=f"Answer from the script even if {KEY} or {BASE_URL} is set.")
    @functools.wraps(command)
    def with_model_options(
        *,
        api: "Api | None",
        name: str | None,
        completion: tuple[str, ...],
        features: str | None,
        scripted: bool,
        **options: object,
    ) -> int:
        return command(**options, model_options=ModelOptions(api, name, completion, features, scripted))

    return with_model_options


@dataclass(frozen=True)
class ModelOptions:
    api: "Api | None" = None
    name: str | None = None
    completion: tuple[str, ...] = ()
    features: str | None = None
    scripted: bool = False

    def choose(
        self,
        script: Script | None,
        question: str,
        environment: Mapping[str, str] | None = None,
        *,
        asked: int = 0,
    ) -> "ScriptedModel | OpenAIModel":
        """`asked`: how often the conversation had this question before; a script may answer it differently."""
        environment = os.environ if environment is None else environment
        if not self.asks_the_script(environment):
            return self.open(environment)
        self.refuse_for_a_script()
        if script is None:
            raise ParameterError(f"no model is configured: give --example NAME or --script FILE, or set {KEY}")
        return ScriptedModel.from_script(script, query=question, asked=asked)

    def open(self, environment: Mapping[str, str], name: str | None = None) -> "OpenAIModel":
        """A model behind an API; `name` counts where the options name none."""
        try:
            from devhost.models.openai_api import choice  # noqa: PLC0415 - see above
        except ModuleNotFoundError as error:
            raise ParameterError(
                f"a model behind an API needs the package {error.name}: pip install -r requirements-dev.txt"
            ) from error
        return choice.open_model(
            key=environment.get(KEY, "").strip(),
            base_url=environment.get(BASE_URL, "").strip(),
            api=self.api or "responses",
            name=self.name or name,
            completion_params=self._completion_params(),
            features=self._features(),
        )

    def asks_the_script(self, environment: Mapping[str, str] | None = None) -> bool:
        """Whether no API is called: --scripted is given, or neither a key nor a base URL is set."""
        environment = os.environ if environment is None else environment
        return self.scripted or not any(environment.get(name, "").strip() for name in (KEY, BASE_URL))

    def refuse_for_a_script(self) -> None:
        """ParameterError for an option that a scripted model would ignore."""
        given = {
            "--api": self.api,
            "--model": self.name,
            "--completion": self.completion,
            "--features": self.features,
        }
        for option, value in given.items():
            if value:
                reason = "--scripted asks for the script" if self.scripted else f"neither {KEY} nor {BASE_URL} is set"
                raise ParameterError(f"{option} is for a model behind an API, but {reason}")

    def _completion_params(self) -> dict[str, object]:
        return parse_assignments(self.completion, option="--completion")

    def _features(self) -> tuple[str, ...] | None:
        if self.features is None:
            return None
        return tuple(feature.strip() for feature in self.features.split(",") if feature.strip())
