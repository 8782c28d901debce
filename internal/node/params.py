"""The node's parameters, read in every shape that Dify sends.

In: the dict that the host gives to a strategy. Out: StrategyParams, frozen and complete. An empty value ('' / None /
[] / [None] / a missing key) becomes the default; an unusable one is changed and noted; InvalidParameters is raised only
if a run is impossible.

Texts come in here. They are made well-formed, and ``redacted`` replaces the node's secrets in everything that the model
reads: a prompt, a schema or a tool's description is not redacted again.
"""

from collections.abc import Mapping
from typing import Any, Self

from dify_plugin.file.file import File
from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from internal.errors import InvalidParameters
from internal.node.model_selection import ModelSelection
from internal.node.panel_values import Limits, read_items, read_names, read_number, read_string, read_switch
from internal.text.fairness import in_turns
from internal.text.notes import Note, Quoting, Sentence
from internal.text.pasted import looks_like_selector, missing_variable
from internal.text.redaction import Redactor
from internal.text.wellformed import wellformed_json

MAXIMUM_ITERATIONS = Limits(1, 6, 100)
PARALLEL_TOOL_CALLS = Limits(1, 8, 16)
TOOL_RESULT_LIMIT = Limits(1_000, 20_000, 200_000)
MAXIMUM_SECONDS = Limits(30, 540, 3_600)


class StrategyParams(BaseModel):
    """One run's parameters; a field per parameter of the strategies' YAML, under the same name."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, hide_input_in_errors=True)

    model: ModelSelection
    tools: tuple[Mapping[str, Any], ...] = ()
    """Dify's tool dicts, unchecked; the toolbox decides which are usable."""
    instruction: str = ""
    query: str = ""
    context: Any = None
    """str, dict or list of either, as the knowledge node gives it."""
    files: tuple[File, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    """Names or ``provider/name``; empty allows all."""
    maximum_iterations: int = MAXIMUM_ITERATIONS.default
    """Rounds in which tools may run."""
    emit_intermediate_thoughts: bool = False
    prompt_policy_overrides: str = ""
    parallel_tool_calls: int = PARALLEL_TOOL_CALLS.default
    """Tool calls of one run at the same time."""
    tool_result_limit: int = TOOL_RESULT_LIMIT.default
    """Characters of one tool result that reach the model."""
    maximum_seconds: int = MAXIMUM_SECONDS.default
    """Soft deadline of the run."""
    answer_schema: str = ""
    """JSON Schema of an object that the answer has to satisfy; blank for an answer in text."""

    _notes: tuple[Sentence, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[Sentence, ...]:
        """Sentences for the log about values that were changed or ignored."""
        return self._notes

    def redacted(self, secrets: Redactor) -> Self:
        """The same without the node's secrets in what the model reads; ``runtime_parameters`` stay, for the tools."""
        files = [
            file.model_copy(update={"filename": secrets.text(file.filename)} if file.filename else {})
            for file in self.files
        ]
        return self.model_copy(
            update={
                **{name: secrets.text(value) for name, value in self if isinstance(value, str)},
                "answer_schema": secrets.json_text(self.answer_schema),
                "context": secrets.json(self.context),
                "tools": tuple(_redacted_tool(tool, secrets) for tool in self.tools),
                "files": tuple(files),
                "model": self.model.redacted(secrets),
            }
        )

    @model_validator(mode="wrap")
    @classmethod
    def _read_leniently(cls, raw: Mapping[str, Any], build: ModelWrapValidatorHandler[Self]) -> Self:
        notes: list[Sentence] = []
        values = {name: wellformed_json(_as_json(value)) for name, value in raw.items()}
        params = build(cls._read_values(values, notes.append))
        params._notes = tuple(notes)  # noqa: SLF001 - our own, and not a field
        return params

    @classmethod
    def _read_values(cls, raw: Mapping[str, Any], note: Note) -> dict[str, object]:
        """A value for every field; a strategy with parameters of its own adds theirs."""

        def number(name: str, limits: Limits) -> int:
            return read_number(name, raw.get(name), limits, note)

        def string(name: str) -> str:
            return read_string(raw.get(name))

        # A query may have been typed by a user: "example.com" is a question too.
        for name in ("tools", "instruction", "context", "files"):
            if looks_like_selector(raw.get(name)):
                note(Quoting(f"{name}: {missing_variable(raw[name])}"))
        return {
            "model": ModelSelection.read(raw.get("model"), note),
            "tools": tuple(read_items("tools", raw.get("tools"), _read_tool, note)),
            "instruction": string("instruction"),
            "query": string("query"),
            "context": raw.get("context"),
            "files": tuple(read_items("files", raw.get("files"), File.model_validate, note)),
            "allowed_tools": tuple(in_turns(read_names(raw.get("allowed_tools")))),
            "maximum_iterations": number("maximum_iterations", MAXIMUM_ITERATIONS),
            "emit_intermediate_thoughts": read_switch(
                "emit_intermediate_thoughts", raw.get("emit_intermediate_thoughts"), note
            ),
            "prompt_policy_overrides": string("prompt_policy_overrides"),
            "parallel_tool_calls": number("parallel_tool_calls", PARALLEL_TOOL_CALLS),
            "tool_result_limit": number("tool_result_limit", TOOL_RESULT_LIMIT),
            "maximum_seconds": number("maximum_seconds", MAXIMUM_SECONDS),
            "answer_schema": string("answer_schema"),
        }


def read_params[P: StrategyParams](raw: Mapping[str, Any], params_type: type[P]) -> P:
    """Read what the host sent.

    Raises:
        InvalidParameters: no usable model was chosen, or there is nothing to answer. Never quotes the value: tool dicts
            carry decrypted secrets.
    """
    try:
        params = params_type.model_validate(raw)
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_context=False, include_url=False)[0]
        where = "".join(f"parameter {str(part)!r}: " for part in first["loc"][:1])
        raise InvalidParameters(where + first["msg"].removeprefix("Value error, ")) from None
    if not params.query.strip() and not params.files:
        raise InvalidParameters(
            "parameter 'query': it is blank and there are no files; give the agent a question, e.g. {{#sys.query#}}"
        )
    return params


def _as_json(value: object) -> object:
    """A parameter as the host sent it: the SDK makes File objects of the files in it and in a list."""
    if isinstance(value, list):
        return [_as_json(item) if isinstance(item, BaseModel) else item for item in value]
    return value.model_dump(mode="json", serialize_as_any=True) if isinstance(value, BaseModel) else value


def _read_tool(item: object) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    raise TypeError


def _redacted_tool(tool: Mapping[str, Any], secrets: Redactor) -> Mapping[str, Any]:
    """What a declaration shows to the model; a parameter's default is sent to the tool, and not shown."""
    description, parameters = secrets.values([tool.get("description"), tool.get("parameters")])
    for shown, own in zip(parameters or (), tool.get("parameters") or (), strict=True):
        if isinstance(own, dict) and "default" in own:
            shown["default"] = own["default"]
    return {**tool, "description": description, "parameters": parameters}
