"""Sources that the answer may cite: the node's context first, then what the tools brought.

In: the ``context`` parameter (dify-contract §1.7) and the tools' retriever resources. Out: numbered sources, the
``<context>`` block of the user message, and which numbers an answer cites.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from internal.wellformed import plain_json, wellformed
from prompt import template

_CITATION = re.compile(r"[\[【]\s*(\d{1,4}(?:\s*[,、，;]\s*\d{1,4})*)\s*[\]】]")
_OWN_TAGS = re.compile(
    r"<(?=\s*/?\s*(?:context|source|persistence|context_gathering|uncertainty_and_ambiguity|tool_preamble|task|plan"
    r"|findings?|results?)\b)",
    re.IGNORECASE,
)

# The knowledge node's metadata keys that Dify's retriever resource names differently.
_RENAMED = {
    "segment_hit_count": "hit_count",
    "segment_word_count": "word_count",
    "segment_index_node_hash": "index_node_hash",
}
LONGEST_TITLE = 200
"""Characters."""
RESOURCE_FIELDS: Mapping[str, type] = {
    "dataset_id": str,
    "dataset_name": str,
    "document_id": str,
    "document_name": str,
    "data_source_type": str,
    "segment_id": str,
    "retriever_from": str,
    "score": float,
    "hit_count": int,
    "word_count": int,
    "segment_position": int,
    "index_node_hash": str,
    "content": str,
    "page": int,
    "doc_metadata": dict,
}
"""Fields of the SDK's RetrieverResource, but for ``position``, which is the source's number."""


@dataclass(frozen=True)
class Source:
    """One source, before it has a number."""

    title: str
    content: str
    document_id: str | None = None
    score: float | None = None
    resource: Mapping[str, Any] = field(default_factory=dict)
    """What is known of it in RESOURCE_FIELDS, each of the field's type."""

    def rewritten(self, clean: Callable[[object], object]) -> "Source":
        """The same source with every text of it passed through ``clean``."""
        resource = clean(self.resource)
        return replace(
            self,
            title=str(clean(self.title)),
            content=str(clean(self.content)),
            document_id=None if self.document_id is None else str(clean(self.document_id)),
            resource=resource if isinstance(resource, dict) else {},
        )

    @property
    def label(self) -> str:
        """Title and page, as a person would name it."""
        page = self.resource.get("page")
        return self.title if page is None else f"{self.title}, page {page}"

    @property
    def identity(self) -> tuple[str | None, str, str]:
        """Two sources with the same identity are one."""
        return (self.document_id or self.title, str(self.resource.get("segment_id") or ""), self.content)


class Bibliography:
    """The sources of one run, numbered from 1 in the order in which they were first offered."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str | None, str, str], int] = {}
        self._sources: list[Source] = []
        self._context = 0

    def open_with(self, sources: Iterable[Source]) -> None:
        """Number the node's own context, which stands in every opening message."""
        self.add(sources)
        self._context = len(self._sources)

    def context(self) -> tuple[tuple[int, Source], ...]:
        return self.entries()[: self._context]

    def add(self, sources: Iterable[Source]) -> list[int]:
        """Number these sources; one that is already listed keeps its number."""
        return [self._number(source) for source in sources]

    def _number(self, source: Source) -> int:
        number = self._numbers.setdefault(source.identity, len(self._sources) + 1)
        if number > len(self._sources):
            self._sources.append(source)
        return number

    def entries(self) -> tuple[tuple[int, Source], ...]:
        return tuple(enumerate(self._sources, start=1))


def read_context(context: object) -> list[Source]:
    """Read the ``context`` parameter: str, dict, list of either, or nothing."""
    return list(_read_context(context))


def _read_context(value: object) -> Iterator[Source]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _read_context(item)
    elif isinstance(value, Mapping):
        source = read_source(value)
        if source:
            yield source
    elif value is not None and str(value).strip():
        yield Source(title="Context", content=wellformed(str(value)))


def read_source(item: Mapping[str, Any]) -> Source | None:
    """Read one knowledge result or retriever resource; None when it says nothing."""
    metadata = item.get("metadata")
    values = {**(metadata if isinstance(metadata, Mapping) else {}), **item}
    resource = _read_resource({_RENAMED.get(str(key), str(key)): value for key, value in values.items()})
    content = resource.get("content") or _text(item.get("summary"))
    if not content and not _is_knowledge(item):
        content = json.dumps(plain_json(item), ensure_ascii=False) if item else ""
    named = _text(item.get("title")) or resource.get("document_name") or resource.get("dataset_name") or "Untitled"
    title = " ".join(named.split())[:LONGEST_TITLE]
    if not content and title == "Untitled":
        return None
    return Source(title, content, resource.get("document_id"), resource.get("score"), resource)


def _is_knowledge(item: Mapping[str, Any]) -> bool:
    return any(key in item for key in ("content", "metadata", "title", "document_name", "segment_id"))


def _read_resource(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what has a field, in the field's type; an odd value costs only itself."""
    resource: dict[str, Any] = {}
    for name, kind in RESOURCE_FIELDS.items():
        value = values.get(name)
        if value is None or value == "":
            continue
        if kind is dict:
            if isinstance(value, Mapping):
                resource[name] = plain_json(value)
        elif kind is str:
            resource[name] = _text(value)
        elif (number := _number(value)) is not None:
            resource[name] = kind(number)
    return resource


def _text(value: object) -> str:
    if value is None:
        return ""
    return wellformed(value if isinstance(value, str) else json.dumps(plain_json(value), ensure_ascii=False))


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def context_block(entries: Iterable[tuple[int, Source]]) -> str:
    """The numbered ``<context>`` block, "" without sources; our own tags inside the data are escaped."""
    blocks = [
        f'<source number="{number}" title="{attribute(source.title)}">\n{escaped(source.content)}\n</source>'
        for number, source in entries
    ]
    return "\n".join(["<context>", template.CONTEXT_HEADER, *blocks, "</context>"]) if blocks else ""


def escaped(text: str) -> str:
    """Data in which our own tags are none."""
    return _OWN_TAGS.sub("&lt;", text)


def attribute(text: str) -> str:
    """Data as the value of an attribute of ours."""
    return " ".join(escaped(text).replace('"', "&quot;").split())


def citation_lines(entries: Iterable[tuple[int, Source]]) -> str:
    """What the model is told of the sources that a tool's result brought, "" without any."""
    lines = [f"[{number}] {source.label}" for number, source in entries]
    return "\n".join([template.TOOL_SOURCES_HEADER, *lines]) if lines else ""


def cited_numbers(answer: str) -> frozenset[int]:
    """The numbers that stand in the answer as citations, such as [1] or [2, 3]."""
    return frozenset(int(digits) for found in _CITATION.finditer(answer) for digits in re.findall(r"\d+", found[1]))
