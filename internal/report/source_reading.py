"""Sources as the node and the tools describe them.

In: the ``context`` parameter (docs/host-facts.md, "The context parameter") and tools' retriever resources, in any
shape. Out: sources. Of a knowledge result of Dify's the model reads the content; any other object reaches it whole.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_json

from internal.report.sources import MAX_LINK_LENGTH, RESOURCE_FIELDS, Source
from internal.text.fairness import in_turns
from internal.text.pasted import parse_pasted, read_pasted
from internal.tooling import UnwritableError, refuse_unwritable

MAX_TITLE_LENGTH = 200
"""Characters."""

_MAX_METADATA_SIZE = 10_000
"""Bytes of a source's metadata; the host is sent no more of it."""

# Keys of the knowledge node's metadata, and the fields of Dify's retriever resource that they fill.
_RENAMED = {
    "segment_hit_count": "hit_count",
    "segment_word_count": "word_count",
    "segment_index_node_hash": "index_node_hash",
    "document_data_source_type": "data_source_type",
}
# What search tools and vector stores call the text of a result; the first that holds text counts.
_CONTENT_NAMES = ("page_content", "text", "snippet", "summary", "body", "description", "abstract")
_TITLE_NAMES = ("title", "document_name", "dataset_name")
_LINK_NAMES = ("url", "link", "href", "source_url", "source", "document_id")
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
_UNTITLED = "Untitled"
_KNOWLEDGE_FIELDS = frozenset({"metadata", "files", "position", *_RENAMED, *RESOURCE_FIELDS})


def read_context(context: object) -> list[Source]:
    """Read the ``context`` parameter: str, dict, list of either, or nothing; a list or dict may be given as text."""
    return list(_read_context(_unpacked(context) if isinstance(context, str) else context))


def _unpacked(text: str) -> object:
    """The value of a text that is a JSON list or object, else the text."""
    pasted = read_pasted(text)
    try:
        value = parse_pasted(pasted) if pasted.lstrip().startswith(("[", "{")) else None
    except (ValueError, RecursionError):
        return pasted
    return pasted if value is None else value


def _read_context(value: object) -> Iterator[Source]:
    if isinstance(value, list):
        for item in in_turns(value):
            yield from _read_context(item)
    elif isinstance(value, dict):
        if source := read_source(value):
            yield source
    elif value is not None and str(value).strip():
        yield Source(title="Context", content=str(value))


def read_source(item: Mapping[str, Any]) -> Source | None:
    """Read one knowledge result, retriever resource or other object; None when it says nothing."""
    own = _said(item)
    values = {**_said(item.get("metadata")), **own}
    resource = _read_resource(values)
    title_name = next((name for name in _TITLE_NAMES if _text(values.get(name))), "")
    named = _text(values.get(title_name)) or _UNTITLED
    title = " ".join(named.split())[:MAX_TITLE_LENGTH]
    content = resource.get("content") or ""
    if not content.strip():
        content = _whole(own, said=title_name if title == named else "", is_knowledge=_is_knowledge(values))
    if not content and title == _UNTITLED:
        return None
    link = _link({**_said(values.get("doc_metadata")), **values})
    return Source(title, content, resource.get("document_id"), resource.get("score"), resource, link)


def _said(item: object) -> dict[str, Any]:
    """The fields of an object that hold something."""
    fields = item.items() if isinstance(item, dict) else ()
    return {key: value for key, value in fields if value or isinstance(value, int | float)}


def _link(values: Mapping[str, Any]) -> str:
    """The first address on the web."""
    named = (values[name].strip() for name in _LINK_NAMES if isinstance(values.get(name), str))
    return next((text for text in named if len(text) <= MAX_LINK_LENGTH and _LINK.fullmatch(text)), "")


def _is_knowledge(values: Mapping[str, Any]) -> bool:
    """Whether it comes from Dify's own knowledge retrieval, whose metadata is not for the model."""
    return values.get("_source") == "knowledge" or "dataset_id" in values or "segment_id" in values


def _whole(item: Mapping[str, Any], *, said: str, is_knowledge: bool) -> str:
    """The text of an object that has no ``content``, and its other fields as JSON, but for the one ``said`` already."""
    texts = (name for name in _CONTENT_NAMES if isinstance(item.get(name), str) and item[name].strip())
    text_name = next(texts, "")
    told = {said, text_name, *(_KNOWLEDGE_FIELDS if is_knowledge else ())}
    rest = {key: value for key, value in item.items() if key not in told}
    others = json.dumps(rest, ensure_ascii=False) if rest else ""
    return "\n\n".join(part for part in (_text(item.get(text_name)), others) if part)


def _read_resource(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep values that have a field, in the field's type; an unusable value is left out."""
    resource: dict[str, Any] = {}
    for key, value in values.items():
        name = _RENAMED.get(key, key)
        kind = RESOURCE_FIELDS.get(name)
        if kind is None or (name != key and name in values):
            continue
        if kind is str:
            resource[name] = _text(value)
        elif kind is dict:
            if isinstance(value, dict) and _can_be_sent(value):
                resource[name] = value
        elif (number := _number(value)) is not None:
            resource[name] = kind(number)
    return resource


def _can_be_sent(metadata: dict[str, Any]) -> bool:
    """Whether it is small, and not too deep for the SDK's messages."""
    try:
        refuse_unwritable(metadata)
    except UnwritableError:
        return False
    return len(to_json(metadata)) <= _MAX_METADATA_SIZE


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
