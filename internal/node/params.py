"""Values as the node's panel sends them, read leniently."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Self

from dify_plugin.file.file import File
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from internal.clock import in_turns
from internal.errors import InvalidParameters, Note, OurWords, Quoting, Sentence
from internal.node.model import ModelSelection
from internal.text.secrets import Redactor, looks_secret, texts_in
from internal.text.texts import looks_like_selector, missing_variable, parse_pasted, read_pasted, wellformed_json

# Values as the node's panel sends them, read leniently.

_TRUE_WORDS = frozenset({"true", "yes", "y", "1", "on"})
_FALSE_WORDS = frozenset({"false", "no", "n", "0", "off"})
_SEPARATOR = re.compile(r"[,，、\n]")
_MAX_NAMED = 5
"""Unknown names that are noted."""
_MAX_NAME_LENGTH = 100
"""Characters of such a name in a note."""


class Limits(NamedTuple):
    """The range and the default of a whole number."""

    least: int
    default: int
    most: int | None
    """None for no maximum; then 0 switches the limit off."""

    def named(self, number: float) -> str:
        """The number as a note tells it."""
        return "0, which is no limit," if number == 0 and self.most is None else f"{number}"


def _was_left_alone(value: object) -> bool:
    return value is None or value in ("", [], [None], {})


def as_json(value: object) -> object:
    """A parameter as the host sent it: the SDK makes File objects of the files in it and in a list."""
    if isinstance(value, list):
        return [as_json(item) if isinstance(item, BaseModel) else item for item in value]
    return value.model_dump(mode="json", serialize_as_any=True) if isinstance(value, BaseModel) else value


def read_string(value: object) -> str:
    if _was_left_alone(value):
        return ""
    if isinstance(value, dict | list):
        # Dify parses a template that happens to be JSON.
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def read_number(name: str, value: object, limits: Limits, note: Note) -> int:
    if _was_left_alone(value):
        return limits.default
    number, most = _as_number(value), math.inf if limits.most is None else limits.most
    clamped = min(max(number, limits.least), most)
    if not math.isfinite(clamped):
        problem = "not a number" if math.isnan(number) else "too large"
        note(OurWords(f"{name}: {problem}; {limits.named(limits.default)} is used"))
        return limits.default
    if number != clamped:
        allowed = f"below {limits.least}" if limits.most is None else f"outside {limits.least} to {limits.most}"
        note(Quoting(f"{name}: {number:g} is {allowed}; {limits.named(clamped)} is used"))
    return max(int(clamped), math.ceil(min(clamped, 1)))  # 0.4 is a limit, and 0 may be none


def _as_number(value: object) -> float:
    """The number that a value means; NaN if it means none, infinity if it exceeds a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if isinstance(value, int) and value > 0 else -math.inf
    except ValueError:
        return math.nan


def read_switch(name: str, value: object, note: Note, *, default: bool = False) -> bool:
    if _was_left_alone(value):
        return default
    word = str(value).strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word in _FALSE_WORDS:
        return False
    note(OurWords(f"{name}: neither true nor false; {str(default).lower()} is used"))
    return default


def read_names(value: object) -> Iterable[str]:
    """Names from a list, from the text of one, or separated by commas (of any script) or lines."""
    for entry in value if isinstance(value, list) else [value]:
        text = read_pasted(read_string(entry))
        listed = _read_list(text)
        for item in [text] if listed is None else listed:
            for name in _SEPARATOR.split(read_string(item)):
                if name.strip():
                    yield name.strip()


def read_choices[T: StrEnum](name: str, value: object, choices: type[T], note: Note) -> frozenset[T]:
    """The choices that are named, in upper or lower case; the first few unknown names are noted."""
    named = {each.casefold(): each for each in in_turns(read_names(value))}
    known = {choice.value for choice in choices}
    for key in [key for key in named if key not in known][:_MAX_NAMED]:
        unknown = named[key][:_MAX_NAME_LENGTH]
        missing = f"; {missing_variable(unknown)}" if looks_like_selector(unknown) else ""
        note(Quoting(f"{name}: {unknown!r} is ignored; the names are {', '.join(choices)}{missing}"))
    return frozenset(choices(key) for key in named if key in known)


def _read_list(text: str) -> list[object] | None:
    try:
        value = parse_pasted(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def read_items[T](name: str, value: object, read: Callable[[object], T], note: Note) -> Iterable[T]:
    """Read a list item by item, so that a bad item does not affect the others."""
    items = value if isinstance(value, list) else [value]
    for position, item in enumerate(items, start=1):
        if item is None or item == "":
            continue
        try:
            yield read(item)
        except (ValidationError, TypeError, ValueError):
            note(OurWords(f"{name}: item {position} cannot be read and is left out"))


# The secrets that a developer set in the node.
#
# And a tool without them in what the model reads of it.

SECRET_TYPE = "secret-input"  # noqa: S105 - Dify's name of a type
_PUBLIC_TYPES = frozenset({"select", "boolean", "checkbox", "number"})
"""Their values stand in the tool's own declaration, or are limits such as ``max_token``: no secret has these types."""


def node_secrets(raw_tools: Iterable[Mapping[str, Any]]) -> Redactor:
    """Replaces every secret that the developer set."""
    return Redactor.of(secret for raw in raw_tools for secret in _secrets_of(raw))


def redacted_tool(tool: Mapping[str, Any], secrets: Redactor) -> Mapping[str, Any]:
    """What a declaration shows to the model; a parameter's default is sent to the tool, and not shown."""
    description, parameters = secrets.values([tool.get("description"), tool.get("parameters")])
    for shown, own in zip(parameters or (), tool.get("parameters") or (), strict=True):
        if isinstance(own, dict) and "default" in own:
            shown["default"] = own["default"]
    return {**tool, "description": description, "parameters": parameters}


def public_values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the developer set, without each one that is or holds a secret."""
    return {name: value for name, value, secrets in _values_of(raw) if not secrets}


def _secrets_of(raw: Mapping[str, Any]) -> Iterator[str]:
    return (secret for _, _, secrets in _values_of(raw) for secret in secrets)


def _values_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any, list[str]]]:
    """Each value that the developer set, with the secrets in it."""
    runtime, listed = raw.get("runtime_parameters"), raw.get("parameters")
    declared = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    kinds = {str(item.get("name")): str(item.get("type")) for item in declared}
    for name, value in runtime.items() if isinstance(runtime, Mapping) else ():
        kind = kinds.get(name)
        if kind == SECRET_TYPE:
            yield name, value, ["", *texts_in(value)]
        else:
            yield name, value, [] if kind in _PUBLIC_TYPES else list(_named({name: value}))


def _named(value: object) -> Iterator[str]:
    """All values below a secret's name."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts_in(item) if looks_secret(name) else _named(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)


# The node's parameters, read in every shape that Dify sends.
#
# An empty value ('' / None / [] / [None] / a missing key) becomes the default; an unusable one is changed and noted;
# InvalidParameters is raised only if a run is impossible.
#
# Texts come in here. They are made well-formed, and ``redacted`` replaces the node's secrets in everything that the
# model reads: a prompt, a schema or a tool's description is not redacted again.

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
