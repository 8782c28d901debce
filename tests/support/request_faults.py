"""Faults of a request for a model call: each function yields the places of one fault."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.support.model_requests import ROLES, Json, ModelRequest, Place, calls_of

type Find = Callable[[ModelRequest], Iterator[Place]]

MOST_TOOLS = 128


# Messages.


def unknown_roles(request: ModelRequest) -> Iterator[Place]:
    for number, message in enumerate(request.messages):
        if message["role"] not in ROLES:
            yield Place(f"prompt_messages[{number}].role", message["role"])


def blank_texts(request: ModelRequest) -> Iterator[Place]:
    return (place for place in request.texts() if not place.value.strip())


def empty_messages(request: ModelRequest) -> Iterator[Place]:
    for where, message in request.of_roles(*ROLES):
        content = message["content"]
        says_nothing = message["role"] == "assistant" and not content and not calls_of(message)
        if content is None or content == [] or says_nothing:
            yield Place(f"{where}.content", content)


def texts_in_parts(request: ModelRequest) -> Iterator[Place]:
    """Lists that could be one text. A picture or an opaque body cannot: it goes back to the provider that made it."""
    for where, message in request.of_roles("assistant"):
        content = message["content"]
        if isinstance(content, list) and all(_is_plain(part) for part in content):
            yield Place(f"{where}.content", content)


def _is_plain(part: Json) -> bool:
    return part["type"] == "text" and part.get("opaque_body") is None


def late_systems(request: ModelRequest) -> Iterator[Place]:
    return (place for place in request.of_roles("system") if place.value is not request.messages[0])


def another_speaker_first(request: ModelRequest) -> Iterator[Place]:
    spoken = list(request.of_roles("user", "assistant", "tool"))
    if not spoken:
        yield Place("prompt_messages", request.messages)
    elif spoken[0].value["role"] != "user":
        yield Place(f"{spoken[0].where}.role", spoken[0].value["role"])


def assistant_last(request: ModelRequest) -> Iterator[Place]:
    for where, message in list(request.of_roles(*ROLES))[-1:]:
        if message["role"] == "assistant":
            yield Place(f"{where}.role", message["role"])


def one_behind_another(earlier: str, later: str) -> Find:
    """Finds messages of one role directly behind a message of another."""

    def find(request: ModelRequest) -> Iterator[Place]:
        for before, place in pairwise(request.of_roles(*ROLES)):
            if (before.value["role"], place.value["role"]) == (earlier, later):
                yield place

    return find


# Calls and their results.


def unanswered_calls(request: ModelRequest) -> Iterator[Place]:
    for where, calls, results in request.rounds():
        answers = Counter(result.value["tool_call_id"] for result in results)
        for number, call in enumerate(calls):
            answers[call["id"]] -= 1
            if answers[call["id"]] < 0:
                yield Place(f"{where}.tool_calls[{number}].id", call["id"])


def shared_ids(request: ModelRequest) -> Iterator[Place]:
    """Ids that an earlier call of the same message has, unless they are the function's name."""
    for where, calls, _ in request.rounds():
        seen = set[str]()
        for number, call in enumerate(calls):
            if call["id"] in seen and call["id"] != call["function"]["name"]:
                yield Place(f"{where}.tool_calls[{number}].id", call["id"])
            seen.add(call["id"])


def stray_results(request: ModelRequest) -> Iterator[Place]:
    for _, calls, results in request.rounds():
        asked = Counter(call["id"] for call in calls)
        for where, result in results:
            asked[result["tool_call_id"]] -= 1
            if asked[result["tool_call_id"]] < 0:
                yield Place(f"{where}.tool_call_id", result["tool_call_id"])


def misplaced_results(request: ModelRequest) -> Iterator[Place]:
    for _, calls, results in request.rounds():
        for call, (where, result) in zip(calls, results, strict=False):
            if call["id"] != result["tool_call_id"]:
                yield Place(f"{where}.tool_call_id", result["tool_call_id"])


def misnamed_results(request: ModelRequest) -> Iterator[Place]:
    for _, calls, results in request.rounds():
        names = defaultdict[str, set[str]](set)
        for call in calls:
            names[call["id"]].add(call["function"]["name"])
        for where, result in results:
            answered = names[result["tool_call_id"]]
            if answered and result.get("name") not in answered:
                yield Place(f"{where}.name", result.get("name"))


def calls_without_tools(request: ModelRequest) -> Iterator[Place]:
    if not request.tools and list(request.calls()):
        yield Place("tools", request.tools)


def unlike(pattern: str, texts: Find) -> Find:
    """Finds texts that do not match as a whole."""

    def find(request: ModelRequest) -> Iterator[Place]:
        return (place for place in texts(request) if not re.fullmatch(pattern, place.value))

    return find


def repeated(texts: Find) -> Find:
    """Finds texts that stood in an earlier place already."""

    def find(request: ModelRequest) -> Iterator[Place]:
        seen = set[str]()
        for place in texts(request):
            if place.value in seen:
                yield place
            seen.add(place.value)

    return find


def called_names(request: ModelRequest) -> Iterator[Place]:
    return (Place(f"{where}.function.name", call["function"]["name"]) for where, call in request.calls())


def odd_arguments(request: ModelRequest) -> Iterator[Place]:
    for where, call in request.calls():
        arguments = call["function"]["arguments"]
        if not _is_object(arguments):
            yield Place(f"{where}.function.arguments", arguments)


def _is_object(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# Tools.


def tool_names(request: ModelRequest) -> Iterator[Place]:
    return (Place(f"tools[{number}].name", tool["name"]) for number, tool in enumerate(request.tools))


def empty_descriptions(request: ModelRequest) -> Iterator[Place]:
    for number, tool in enumerate(request.tools):
        if not tool["description"]:
            yield Place(f"tools[{number}].description", tool["description"])


def too_many_tools(request: ModelRequest) -> Iterator[Place]:
    if len(request.tools) > MOST_TOOLS:
        yield Place("the number of tools", len(request.tools))


def property_names(request: ModelRequest) -> Iterator[Place]:
    """At the top level."""
    for number, tool in enumerate(request.tools):
        for name in tool["parameters"].get("properties", ()):
            yield Place(f"tools[{number}].parameters.properties", name)


def other_than_objects(request: ModelRequest) -> Iterator[Place]:
    for number, tool in enumerate(request.tools):
        schema = tool["parameters"]
        if schema.get("type") != "object" or "properties" not in schema:
            yield Place(f"tools[{number}].parameters", schema)


def unions_at_the_top(request: ModelRequest) -> Iterator[Place]:
    for number, tool in enumerate(request.tools):
        for key in ("oneOf", "allOf", "anyOf"):
            if key in tool["parameters"]:
                yield Place(f"tools[{number}].parameters.{key}", tool["parameters"][key])


def arrays_without_items(request: ModelRequest) -> Iterator[Place]:
    for where, schema in request.schemas():
        kinds = schema.get("type") or ()
        is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
        if is_array and "items" not in schema:
            yield Place(where, schema)


def odd_enums(request: ModelRequest) -> Iterator[Place]:
    for where, schema in request.schemas():
        members = schema.get("enum", ())
        if not all(isinstance(member, str) for member in members):
            yield Place(f"{where}.enum", members)
