"""The sources of an answer, each with its passage.

In: the variable `sources`, which strategies of this repository set, and the retriever resources that the strategy and
its tools sent. Out: a `Source` each; without the variable, the retriever resources that the strategy sent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devhost.protocol.wire import JsonObject
from devhost.trace.runs import TracedRun


@dataclass(frozen=True)
class Source:
    number: str
    title: str
    document: str
    """Its id or dataset, where that is not the title."""
    is_cited: bool | None
    """None if that is not known."""
    passage: str
    """Empty if no resource fits."""


def sources_of(variable: object, run: TracedRun) -> list[Source]:
    sent = [resource for arrival in run.streamed for resource in _resources(arrival.message)]
    if not isinstance(variable, list):
        return retrieved(sent)
    of_tools = [resource for call in run.calls for piece in call.pieces for resource in _resources(piece.data)]
    listed = [source for source in variable if isinstance(source, dict)]
    return [_source(source, place, [*sent, *of_tools]) for place, source in enumerate(listed, start=1)]


def retrieved(resources: Sequence[JsonObject]) -> list[Source]:
    return [
        Source(
            number=str(resource.get("position") or place),
            title=_first(resource, "title", "document_name", "document_id"),
            document=str(resource.get("dataset_name") or ""),
            is_cited=None,
            passage=str(resource.get("content") or ""),
        )
        for place, resource in enumerate(resources, start=1)
    ]


def _first(resource: JsonObject, *names: str) -> str:
    return next((str(resource[name]) for name in names if resource.get(name)), "source")


def _source(source: JsonObject, place: int, resources: Sequence[JsonObject]) -> Source:
    number, title, document = source.get("number", place), source.get("title"), source.get("document_id")
    return Source(
        number=str(number),
        title=str(title or document or "source"),
        document=str(document) if title and document else "",
        is_cited=bool(source.get("cited")),
        passage=_passage(source, number, resources),
    )


def _passage(source: JsonObject, number: object, resources: Sequence[JsonObject]) -> str:
    """Of the resource with the number of the source, else of the one with its score; both of the same document."""
    same = [each for each in resources if each.get("document_id") == source.get("document_id")]
    for name, value in (("position", number), ("score", source.get("score"))):
        for resource in same:
            if value is not None and resource.get(name) == value:
                return str(resource.get("content") or "")
    return ""


def _resources(message: JsonObject) -> Iterator[JsonObject]:
    match message:
        case {"type": "retriever_resources", "message": {"retriever_resources": list(resources)}}:
            yield from (resource for resource in resources if isinstance(resource, dict))
