"""script.yaml as a value: what is asked, with which parameters, and how the scripted model answers, turn by turn.

Every mistake in the file is one sentence with the key, the turn and the file.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from devhost.errors import ScriptError
from devhost.model_backend import DEFAULT_FEATURES
from devhost.yaml_file import load_yaml


class _Scripted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Scripted):
    name: str
    id: str = ""
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict[str, JsonValue])
    """A mapping becomes JSON; a string is sent as it stands, however broken."""


class ScriptedError(_Scripted):
    type: str
    message: str
    after_chunks: NonNegativeInt = 0


class ScriptedUsage(_Scripted):
    """The fields of LLMUsage that the script sets; the others are estimated or zero."""

    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None
    total_tokens: NonNegativeInt | None = None
    prompt_unit_price: float | str | None = None
    prompt_price_unit: float | str | None = None
    prompt_price: float | str | None = None
    completion_unit_price: float | str | None = None
    completion_price_unit: float | str | None = None
    completion_price: float | str | None = None
    total_price: float | str | None = None
    currency: str | None = None
    latency: float | None = None


class Turn(_Scripted):
    thought: str = ""
    text: str | tuple[str, ...] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    call_chunking: Literal["whole", "per_call", "fragments", "snapshots"] = "whole"
    chunk_size: PositiveInt = 12
    delay: NonNegativeFloat = 0.0
    finish_reason: str | None = None
    usage: ScriptedUsage | None = ScriptedUsage()
    error: ScriptedError | None = None
    opaque_body: JsonValue = None
    when: str | None = None


class ScriptedModelCard(_Scripted):
    name: str = "scripted-gpt-5"
    features: tuple[str, ...] = DEFAULT_FEATURES
    context_size: PositiveInt = 400_000


class Script(_Scripted):
    description: str = ""
    query: str
    strategy: str | None = None
    """The one it was written for; the command line may name another."""
    params: dict[str, Any] = Field(default_factory=dict)
    model: ScriptedModelCard = ScriptedModelCard()
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]
    otherwise: tuple[Turn, ...] | None = None

    @classmethod
    def read(cls, file: Path) -> Self:
        data = load_yaml(file)
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ScriptError(f"{file}: {_sentences(error)}") from error

    def turns_for(self, query: str) -> tuple[Turn, ...]:
        """A scenario's own turns answer its own question; another question has answers of its own, if any."""
        return self.turns if query == self.query or self.otherwise is None else self.otherwise


def read_turns(turns: object) -> tuple[Turn, ...]:
    """Turns given as plain data, by a test for instance."""
    try:
        return Script.model_validate({"query": "", "turns": turns}).turns
    except ValidationError as error:
        raise ScriptError(_sentences(error)) from error


def _sentences(error: ValidationError) -> str:
    sentences = []
    for finding in error.errors():
        *path, key = _readable(finding["loc"])
        where = f"{', '.join(path)}: " if path else ""
        if finding["type"] == "extra_forbidden":
            sentences.append(f"{where}unknown key {key!r}")
        else:
            sentences.append(f"{where}{key}: {finding['msg']}")
    return "; ".join(sentences)


def _readable(location: tuple[int | str, ...]) -> list[str]:
    """`("turns", 1, "tool_calls", 0, "nmae")` → turn 2, tool call 1, nmae."""
    names = {"turns": "turn", "otherwise": "turn of otherwise", "tool_calls": "tool call"}
    path: list[str] = []
    for part in location:
        if isinstance(part, int) and path:
            path[-1] = f"{names.get(path[-1], path[-1])} {part + 1}"
        else:
            path.append(str(part))
    return path
