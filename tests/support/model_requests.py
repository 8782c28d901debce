"""A request for a model call as JSON, as Dify's entities are serialised, and its parts with their places."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

type Json = Mapping[str, Any]

ROLES = ("system", "user", "assistant", "tool")


class Place(NamedTuple):
    """A place in a request, and the value there."""

    where: str
    value: Any


class Round(NamedTuple):
    """The calls of one message, and the results directly behind it."""

    where: str
    calls: Sequence[Json]
    results: Sequence[Place]


@dataclass(frozen=True)
class ModelRequest:
    """The messages and the tools of a request."""

    messages: Sequence[Json]
    tools: Sequence[Json]
    given_ids: Collection[str]
    """The call ids that this model gave itself: it takes them back as they are, whatever other providers demand."""

    @classmethod
    def read(cls, request: Json, given_ids: Collection[str]) -> "ModelRequest":
        return cls(request["prompt_messages"], request.get("tools") or (), given_ids)

    def of_roles(self, *roles: str) -> Iterator[Place]:
        """The messages of these roles."""
        for number, message in enumerate(self.messages):
            if message["role"] in roles:
                yield Place(f"prompt_messages[{number}]", message)

    def texts(self) -> Iterator[Place]:
        """Every text of a message, except an assistant's "": the model plugins leave it out."""
        for where, message in self.of_roles(*ROLES):
            match message["content"]:
                case str(text) if text or message["role"] != "assistant":
                    yield Place(f"{where}.content", text)
                case list(parts):
                    for number, part in enumerate(parts):
                        if part["type"] == "text":
                            yield Place(f"{where}.content[{number}].data", part["data"])

    def calls(self) -> Iterator[Place]:
        for where, message in self.of_roles("assistant"):
            for number, call in enumerate(calls_of(message)):
                yield Place(f"{where}.tool_calls[{number}]", call)

    def other_ids(self) -> Iterator[Place]:
        """The ids of calls that this model did not give itself."""
        for where, call in self.calls():
            if call["id"] not in self.given_ids:
                yield Place(f"{where}.id", call["id"])

    def rounds(self) -> Iterator[Round]:
        """Every message other than a result, with the results behind it; first the results before any other message."""
        where = "prompt_messages"
        calls: Sequence[Json] = ()
        results: list[Place] = []
        for place in self.of_roles(*ROLES):
            if place.value["role"] == "tool":
                results.append(place)
                continue
            yield Round(where, calls, results)
            where = place.where
            calls = calls_of(place.value)
            results = []
        yield Round(where, calls, results)

    def schemas(self) -> Iterator[Place]:
        """Every schema in the tools' parameters, at any depth."""
        for number, tool in enumerate(self.tools):
            yield from _with_inner_schemas(Place(f"tools[{number}].parameters", tool["parameters"]))


def calls_of(message: Json) -> Sequence[Json]:
    return message.get("tool_calls") or ()


NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
LISTED_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE_SCHEMAS = ("items", "additionalProperties", "not")


def _with_inner_schemas(place: Place) -> Iterator[Place]:
    where, schema = place
    if not isinstance(schema, Mapping):
        return  # true and false are schemas too
    yield place
    inner: list[Place] = []
    for key in NAMED_SCHEMAS:
        inner += [Place(f"{where}.{key}.{name}", each) for name, each in schema.get(key, {}).items()]
    for key in LISTED_SCHEMAS:
        inner += [Place(f"{where}.{key}[{number}]", each) for number, each in enumerate(schema.get(key, ()))]
    inner += [Place(f"{where}.{key}", schema[key]) for key in SINGLE_SCHEMAS if key in schema]
    for each in inner:
        yield from _with_inner_schemas(each)
