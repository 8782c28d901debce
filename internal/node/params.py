"""The node's parameters, read in every shape that Dify sends.

In: the dict that the host gives to a strategy. Out: StrategyParams, frozen and complete. An empty value ('' / None /
[] / [None] / a missing key) becomes the default; an unusable one is changed and noted; InvalidParameters is raised only
if a run is impossible.

Texts come in here. They are made well-formed, and ``redacted`` replaces the node's secrets in everything that the model
reads: a prompt, a schema or a tool's description is not redacted again.
"""

from collections.abc import Mapping
from enum import StrEnum
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
from internal.node.panel_values import (
    Limits,
    as_json,
    read_choices,
    read_items,
    read_names,
    read_number,
    read_string,
    read_switch,
)
from internal.node.secrets import redacted_tool
from internal.text.fairness import in_turns
from internal.text.notes import Note, Quoting, Sentence
from internal.text.pasted import looks_like_selector, missing_variable
from internal.text.redaction import Redactor
from internal.text.wellformed import wellformed_json

MAXIMUM_ITERATIONS = Limits(1, 6, 100)
MAXIMUM_SECONDS = Limits(30, 540, 3_600)
MAXIMUM_TOTAL_TOKENS = Limits(0, 0, None)
MAXIMUM_TOOL_CALLS = Limits(0, 0, None)
TOOL_RESULT_LIMIT = Limits(1_000, 20_000, 200_000)
PARALLEL_TOOL_CALLS = Limits(1, 8, 16)


class ExtraOutput(StrEnum):
    """The variables that a run puts out only where the node names them."""

    STATE = "state"
    TOOL_RESULTS = "tool_results"
    THOUGHTS = "thoughts"


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
    approval_required: tuple[str, ...] = ()
    """Names, ``provider/name`` or ``*``; empty for no tool. Not yet matched with the tools."""
    approval: str = ""
    """What the user said to the calls that wait; not yet judged. Blank where its variable does not exist."""
    state: str = ""
    """The text of an earlier run's state as it came; not yet decoded."""
    answer_schema: str = ""
    """JSON Schema of an object that the answer has to satisfy; blank for an answer in text."""
    answer_criteria: str = ""
    """What an answer must fulfil, in the developer's words; blank if it is not judged."""
    show_sources: bool = True
    """Whether the sources that the answer cites are listed at its end."""
    emit_intermediate_thoughts: bool = False
    maximum_iterations: int = MAXIMUM_ITERATIONS.default
    """Rounds in which tools may run."""
    maximum_seconds: int = MAXIMUM_SECONDS.default
    """Soft deadline of the run."""
    maximum_total_tokens: int = MAXIMUM_TOTAL_TOKENS.default
    """Tokens of all model calls of the run; 0 for no limit."""
    maximum_tool_calls: int = MAXIMUM_TOOL_CALLS.default
    """Tool calls of the run; 0 for no limit."""
    tool_result_limit: int = TOOL_RESULT_LIMIT.default
    """Characters of one tool result that reach the model."""
    allowed_tools: tuple[str, ...] = ()
    """Names or ``provider/name``; empty allows all."""
    parallel_tool_calls: int = PARALLEL_TOOL_CALLS.default
    """Tool calls of one run at the same time."""
    fallback_model: str = ""
    """``plugin author/plugin/provider/model``, not yet parsed; blank for none."""
    prompt_policy_overrides: str = ""
    extra_outputs: frozenset[ExtraOutput] = frozenset()

    _notes: tuple[Sentence, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[Sentence, ...]:
        """Sentences for the log about values that were changed or ignored."""
        return self._notes

    @property
    def puts_out_state(self) -> bool:
        """Whether a later run can go on from this one."""
        return bool(self.approval_required) or ExtraOutput.STATE in self.extra_outputs

    def redacted(self, secrets: Redactor) -> Self:
        """The same without the node's secrets in what the model reads.

        ``runtime_parameters`` stay, for the tools. So does ``state``: it is encoded, and is redacted when it is read.
        """
        files = [
            file.model_copy(update={"filename": secrets.text(file.filename)} if file.filename else {})
            for file in self.files
        ]
        return self.model_copy(
            update={
                **{name: secrets.text(value) for name, value in self if isinstance(value, str) and name != "state"},
                "answer_schema": secrets.json_text(self.answer_schema),
                "context": secrets.json(self.context),
                "tools": tuple(redacted_tool(tool, secrets) for tool in self.tools),
                "files": tuple(files),
                "model": self.model.redacted(secrets),
            }
        )

    @model_validator(mode="wrap")
    @classmethod
    def _read_leniently(cls, raw: Mapping[str, Any], build: ModelWrapValidatorHandler[Self]) -> Self:
        notes: list[Sentence] = []
        values = {name: wellformed_json(as_json(value)) for name, value in raw.items()}
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

        def names(name: str) -> tuple[str, ...]:
            return tuple(in_turns(read_names(raw.get(name))))

        # A query may have been typed by a user: "example.com" is a question too, and the approval is often the query.
        approval, query = string("approval"), string("query")
        misses_approval = looks_like_selector(approval) and approval.strip() != query.strip()
        from_variables = ["tools", "instruction", "context", "files", "answer_criteria"]
        for name in from_variables + ["approval"] * misses_approval:
            if looks_like_selector(raw.get(name)):
                note(Quoting(f"{name}: {missing_variable(raw[name])}"))
        return {
            "model": ModelSelection.read(raw.get("model"), note),
            "tools": tuple(read_items("tools", raw.get("tools"), _read_tool, note)),
            "instruction": string("instruction"),
            "query": query,
            "context": raw.get("context"),
            "files": tuple(read_items("files", raw.get("files"), File.model_validate, note)),
            "allowed_tools": names("allowed_tools"),
            "approval_required": _read_guarded(raw.get("approval_required")),
            "approval": "" if misses_approval else approval,
            "state": string("state"),
            "answer_schema": string("answer_schema"),
            "answer_criteria": string("answer_criteria"),
            "maximum_iterations": number("maximum_iterations", MAXIMUM_ITERATIONS),
            "maximum_seconds": number("maximum_seconds", MAXIMUM_SECONDS),
            "maximum_total_tokens": number("maximum_total_tokens", MAXIMUM_TOTAL_TOKENS),
            "maximum_tool_calls": number("maximum_tool_calls", MAXIMUM_TOOL_CALLS),
            "emit_intermediate_thoughts": read_switch(
                "emit_intermediate_thoughts", raw.get("emit_intermediate_thoughts"), note
            ),
            "show_sources": read_switch("show_sources", raw.get("show_sources"), note, default=True),
            "prompt_policy_overrides": string("prompt_policy_overrides"),
            "tool_result_limit": number("tool_result_limit", TOOL_RESULT_LIMIT),
            "parallel_tool_calls": number("parallel_tool_calls", PARALLEL_TOOL_CALLS),
            "fallback_model": string("fallback_model"),
            "extra_outputs": read_choices("extra_outputs", raw.get("extra_outputs"), ExtraOutput, note),
        }


def read_params[P: StrategyParams](raw: Mapping[str, Any], params_type: type[P]) -> P:
    """Read what the host sent.

    Raises:
        InvalidParameters: no usable model was chosen, or there is nothing to answer and no state with an approval,
            which may be an answer to calls that wait. Never quotes the value: tool dicts carry decrypted secrets.
    """
    try:
        params = params_type.model_validate(raw)
    except ValidationError as problem:
        first = problem.errors(include_input=False, include_context=False, include_url=False)[0]
        where = "".join(f"parameter {str(part)!r}: " for part in first["loc"][:1])
        raise InvalidParameters(where + first["msg"].removeprefix("Value error, ")) from None
    may_resume = params.state.strip() and params.approval.strip()
    if not (params.query.strip() or params.files or may_resume):
        raise no_question()
    return params


def no_question() -> InvalidParameters:
    """The error of a run that has nothing to answer."""
    return InvalidParameters(
        "parameter 'query': it is blank and there are no files; give the agent a question, e.g. {{#sys.query#}}"
    )


def _read_guarded(value: object) -> tuple[str, ...]:
    """The names of tools that need an approval; a text without any stays, so that it is an error and not nothing."""
    names = tuple(in_turns(read_names(value)))
    return names or ((value.strip(),) if isinstance(value, str) and value.strip() else ())


def _read_tool(item: object) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    raise TypeError
