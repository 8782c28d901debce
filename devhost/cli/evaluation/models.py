"""Which model answers the runs of an evaluation, and which one judges them.

In: the options of a model, `--judge-model`, a planned run. Out: a backend; behind an API, one for each choice of model.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from devhost.cli.options.model_options import KEY, ModelOptions
from devhost.conversation.script import CountingModel
from devhost.errors import SuiteError
from devhost.evaluation.plan import ModelSettings, Planned
from devhost.models.backend import ModelBackend
from devhost.scenario.settings import parse_assignments


class EvaluationModels:
    """The models of an evaluation; those behind an API serve all its runs."""

    def __init__(self, options: ModelOptions, judge: str | None) -> None:
        self._options = options
        self._judge = judge
        self._behind_an_api = cache(_behind_an_api)

    @property
    def settings(self) -> ModelSettings:
        """Without a key, nothing but that: a scripted model has no settings."""
        given = {"api": self._options.api, "features": self._options.features, "judge": self._judge}
        return ModelSettings(
            scripted=self._options.asks_the_script(),
            model=self._options.name,
            completion=parse_assignments(self._options.completion, option="--completion"),
            others={name: value for name, value in given.items() if value is not None},
        )

    def check(self, planned: Sequence[Planned]) -> None:
        """Mistakes in the options are found before a host starts."""
        if self._judge is not None and self._options.asks_the_script():
            raise SuiteError(f"--judge-model is for a model behind an API, but without {KEY} the judge is scripted")
        for each in planned:
            self.answering(each, each.question, asked=0)
        self.judging()

    def answering(self, planned: Planned, question: str, *, asked: int) -> CountingModel:
        if self._options.asks_the_script():
            return self._options.choose(planned.scenario.script, question, asked=asked)
        column = planned.column
        given = tuple(f"{name}={json.dumps(value)}" for name, value in column.completion.items())
        return self._behind_an_api(
            replace(
                self._options, name=column.model or self._options.name, completion=(*self._options.completion, *given)
            )
        )

    def judging(self) -> ModelBackend | None:
        if self._options.asks_the_script():
            return None
        return self._behind_an_api(replace(self._options, name=self._judge or self._options.name))


def _behind_an_api(options: ModelOptions) -> CountingModel:
    return options.choose(None, "")
