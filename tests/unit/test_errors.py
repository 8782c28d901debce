"""The sentences and the classes of errors that end a run."""

import re

import pytest
from dify_plugin.entities.model import ModelType
from dify_plugin.entities.model.llm import LLMModelConfig

from internal.errors import ModelCallFailed, node_error
from internal.host.failures import FailureKind, HostFailure
from prompt import error_texts

MODEL = LLMModelConfig(
    provider="langgenius/openai/openai", model="gpt-5", mode="chat", completion_params={}, model_type=ModelType.LLM
)


def test_every_kind_of_failure_has_one_sentence() -> None:
    assert set(error_texts.MODEL_FAILED) == {kind.value for kind in FailureKind}


@pytest.mark.parametrize("kind", FailureKind)
def test_every_sentence_names_the_model_and_fits_an_error_of_dify(kind: FailureKind) -> None:
    failure = HostFailure("whatever the provider said")
    failure.kind = kind
    error = node_error(ModelCallFailed.of(MODEL, failure))

    assert "model gpt-5 (openai)" in str(error)
    assert re.search(r"[{}]", str(error)) is None
    assert type(error).__module__ == "dify_plugin.errors.model"
