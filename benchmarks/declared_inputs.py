"""Generates cases for the benchmark of pauses: every declared input field, with one huge value and with many values.

The fields come from the SDK's models of a chunk, a tool's message, the node's model and a tool, and from the parameters
of the strategies. Fields that the SDK or a strategy adds later need no change here.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAliasType, Union, get_args, get_origin

import yaml
from dify_plugin.entities.invoke_message import InvokeMessage
from dify_plugin.entities.model.llm import LLMResultChunk
from dify_plugin.interfaces.agent import AgentModelConfig, ToolEntity
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_json

from benchmarks.answers import Json, prepared
from benchmarks.pauses import Case
from benchmarks.scenario import ANSWER, PROSE, SEARCH, Scenario, filled
from strategies.gpt5_function_calling import GPT5FunctionCallingStrategy
from strategies.gpt5_plan_and_reflect import GPT5PlanAndReflectStrategy
from tests.support.wire import MODEL, calls, model, parameter, says, text_message, tool

if TYPE_CHECKING:
    from dify_plugin import AgentStrategy

DECLARATIONS = Path(__file__).parents[1] / "strategies/source/declarations.yaml"
MOST_DIGITS = 4_000
"""Number of digits of a huge integer. Python refuses to parse more than 4,300."""

type Step = str | int
type FieldPath = tuple[Step, ...]
type Filling = Callable[[int], object]
"""A function that returns a value with this many characters."""


@dataclass(frozen=True)
class Field:
    """A field of a document."""

    path: FieldPath
    example: object

    @property
    def name(self) -> str:
        return ".".join(str(step) for step in self.path)

    def filled(self, document: Json, value: object) -> Json:
        """Return a copy of the document with another value in this field."""
        copy = deepcopy(document)
        holder: Any = copy
        for step in self.path[:-1]:
            holder = holder[step]
        holder[self.path[-1]] = value
        return copy


# ----------------------------------------------------------------------------------------------- documents from models


def examples(declared: Any) -> list[Any]:  # noqa: ANN401 - an annotation
    """Return JSON values of a declared type. Together they have every field, and each alternative has a value."""
    if isinstance(declared, TypeAliasType):
        return [{}]  # a JSON value
    origin = get_origin(declared)
    inner = get_args(declared)
    if origin is Annotated:
        return examples(inner[0])
    if origin in (Union, UnionType):
        return [example for each in inner if each is not NoneType for example in examples(each)]
    if origin is list or declared is list:
        return [[example] for example in examples(inner[0])] if inner else [[]]
    if isinstance(declared, type) and issubclass(declared, BaseModel):
        return _documents(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return [next(iter(declared)).value]
    simple = {str: "a", bytes: "YQ==", bool: False, int: 0, float: 0.5, Decimal: "0"}
    return [simple.get(declared, {})]


def _of_field(field: FieldInfo) -> list[Any]:
    if isinstance(field.default, Enum):  # such a field says which of several models this is
        return [field.default.value]
    return examples(field.annotation)


def _documents(declared: type[BaseModel]) -> list[Json]:
    """Return examples of a model: one with the first example of each field, and one for every further example."""
    by_field = {name: _of_field(field) for name, field in declared.model_fields.items()}
    first = {name: values[0] for name, values in by_field.items()}
    others = [{**first, name: value} for name, values in by_field.items() for value in values[1:]]
    return [first, *others]


def fields(document: object, path: FieldPath = ()) -> Iterator[Field]:
    """Yield every field of a document, including fields that contain other fields."""
    if path:
        yield Field(path, document)
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from fields(value, (*path, name))
    elif isinstance(document, list) and document:
        yield from fields(document[0], (*path, 0))


# ------------------------------------------------------------------------------------------------------------ fillings


def objects(size: int) -> list[Json]:
    return [{"number": number, "name": f"item {number}", "ok": True} for number in range(size // 50 + 1)]


def fillings(example: object) -> dict[str, Filling]:
    """Return the ways to fill a field, which depend on its value in the example."""
    if isinstance(example, bool):
        return {}
    if isinstance(example, float):
        return {"huge": lambda _size: sys.float_info.max}
    if isinstance(example, int):
        return {"huge": lambda size: int("9" * min(size, MOST_DIGITS))}
    if isinstance(example, str) and example.isdigit():
        return {"huge": lambda size: "9" * size}
    if isinstance(example, str):
        return {"huge": lambda size: filled(PROSE, size), "many": lambda size: json.dumps(objects(size))}
    if isinstance(example, Mapping):
        return {
            "huge": lambda size: {**example, "a": filled(PROSE, size)},
            "many": lambda size: {**example, **{f"key {number}": number for number in range(size // 20 + 1)}},
        }
    if isinstance(example, list) and example:
        element = to_json(example[0])
        return {"many": lambda size: [json.loads(element) for _ in range(size // len(element) + 1)]}
    return {"many": objects}


def cases_of(
    title: str, documents: Sequence[Json], scenario: Callable[[Json], Scenario], kept: Sequence[FieldPath] = ()
) -> Iterator[Case]:
    """Yield a case for every field of the documents and every way to fill it, except for the fields in ``kept``."""
    done: set[tuple[FieldPath, str]] = set()
    for document in documents:
        for field in fields(document):
            for way, filling in fillings(field.example).items():
                if field.path in kept or (field.path, way) in done:
                    continue
                done.add((field.path, way))

                yield Case(f"{title}: {field.name}, {way}", _filled_case(document, field, filling, scenario))


def _filled_case(
    document: Json, field: Field, filling: Filling, scenario: Callable[[Json], Scenario]
) -> Callable[[int], Scenario]:
    return lambda size: scenario(field.filled(document, filling(size)))


def many_of(title: str, document: Json, scenario: Callable[[Sequence[Json]], Scenario]) -> Case:
    """Return a case with as many documents as reach the size."""
    length = len(to_json(document))
    return Case(f"{title}: many", lambda size: scenario([document] * (size // length + 1)))


# -------------------------------------------------------------------------------------------------------------- inputs


def chunk_cases() -> Iterator[Case]:
    """Yield the cases for a chunk of the model. A chunk whose call has a name calls the tool."""
    documents = []
    for document in _documents(LLMResultChunk):
        chunk = {**document, "model": MODEL, "prompt_messages": []}
        for entry in chunk["delta"]["message"]["tool_calls"]:
            entry["id"] = "call_1"
            entry["type"] = "function"
            entry["function"] = {"name": "search", "arguments": '{"q": "x"}'}
        chunk["delta"]["message"]["role"] = "assistant"
        documents.append(chunk)

    def turn(chunks: Sequence[Json]) -> Scenario:
        return Scenario([prepared([*chunks, *says(finish_reason="tool_calls")]), ANSWER], [prepared([])], SEARCH)

    yield from cases_of("chunk", documents, lambda chunk: turn([chunk]))
    yield from (many_of(f"chunk {number}", chunk, turn) for number, chunk in enumerate(documents, start=1))


def message_cases() -> Iterator[Case]:
    """Yield the cases for each kind of tool message."""
    bodies: dict[str, type[BaseModel]] = {
        "text": InvokeMessage.TextMessage,
        "link": InvokeMessage.TextMessage,
        "image_link": InvokeMessage.TextMessage,
        "json": InvokeMessage.JsonMessage,
        "variable": InvokeMessage.VariableMessage,
        "blob": InvokeMessage.BlobMessage,
        "blob_chunk": InvokeMessage.BlobChunkMessage,
        "log": InvokeMessage.LogMessage,
        "retriever_resources": InvokeMessage.RetrieverResourceMessage,
    }
    meta = {"mime_type": "application/pdf", "filename": "a.pdf", "tool_file_id": "f1"}
    turn = prepared(calls(("search", {"q": "x"})))

    def said(messages: Sequence[Json]) -> Scenario:
        return Scenario([turn, ANSWER], [prepared(messages)], SEARCH)

    for kind, body in bodies.items():
        documents = [{"type": kind, "message": each, "meta": meta} for each in _documents(body)]
        yield from cases_of(f"{kind} message", documents, lambda message: said([message]), kept=[("type",)])
        yield many_of(f"{kind} message", documents[0], said)


def node_cases() -> Iterator[Case]:
    """Yield the cases for the node's model and for a tool."""
    found = prepared([text_message("found")])
    turn = prepared(calls(("search", {"q": "x"})))

    def given(**parameters: object) -> Scenario:
        return Scenario([turn, ANSWER], [found], {**SEARCH, **parameters})

    models = [_merged(document, model()) for document in _documents(AgentModelConfig)]
    tools = [_merged(document, tool("search", parameter("q"))) for document in _documents(ToolEntity)]
    yield from cases_of("model", models, lambda document: given(model=document))
    yield from cases_of("tool", tools, lambda document: given(tools=[document]))
    yield Case("tool: many", lambda size: given(tools=[tool(f"t{number}") for number in range(size // 350 + 1)]))


def _merged(document: Any, known: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the document with the known values. Of a list, only the first item is merged."""
    if isinstance(document, Mapping) and isinstance(known, Mapping):
        return {name: _merged(document.get(name), known.get(name)) for name in {**document, **known}}
    if isinstance(document, list) and isinstance(known, list) and document and known:
        return [_merged(document[0], known[0])]
    return document if known in (None, [], {}) else known


def setting_cases() -> Iterator[Case]:
    """Yield the cases for the parameters of the strategies. The model and the tools have separate cases."""
    for declared in yaml.safe_load(DECLARATIONS.read_text(encoding="utf-8"))["parameters"]:
        name = declared["name"]
        strategy: type[AgentStrategy] = GPT5FunctionCallingStrategy
        if declared.get("only") == "gpt5_plan_and_reflect":
            strategy = GPT5PlanAndReflectStrategy
        for way, filling in _setting_fillings(declared).items():
            yield Case(f"{name}, {way}", _with_setting(name, filling), strategy=strategy)


def _with_setting(name: str, filling: Filling) -> Callable[[int], Scenario]:
    turn = prepared(calls(("search", {"q": "x"})))
    found = prepared([text_message("found")])
    return lambda size: Scenario([turn, ANSWER], [found], {**SEARCH, name: filling(size)})


def _setting_fillings(declared: Mapping[str, Any]) -> dict[str, Filling]:
    match declared["type"]:
        case "string":
            return {
                **fillings(""),
                "many names": lambda size: filled("search, nope, ", size),
                "many lines": lambda size: filled("search: a text\n", size),
                "a JSON object": lambda size: json.dumps({f"key {number}": "search" for number in range(size // 20)}),
            }
        case "any":
            return {**fillings(""), "many objects": objects, "one object": fillings({})["many"]}
        case "number":
            return fillings(0)
    return {}


CASES = [*chunk_cases(), *message_cases(), *node_cases(), *setting_cases()]
