"""Sources that the answer may cite: the node's context first, then what the tools brought."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from pydantic_core import to_json

from internal.clock import in_turns
from internal.text.texts import parse_pasted, read_pasted
from internal.tooling import UnwritableError, refuse_unwritable
from prompt import template

# Sources that the answer may cite: the node's context first, then what the tools brought.

_CITATION = re.compile(r"[\[【]\s*(\d{1,4}(?:\s*[,、，;]\s*\d{1,4})*)\s*[\]】]")
_OWN_TAGS = re.compile(
    r"<(?=\s*+/?+\s*+(?:context|source|persistence|context_gathering|uncertainty_and_ambiguity|tool_preamble"
    r"|tool_results|task|plan|findings?|results?|criteria|draft|problems)\b)",
    re.IGNORECASE,
)

_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_OWN_LIST = re.compile(
    r"^[^\w\n\[【]*+[\[【]\d{1,4}[\]】][^\w\n]*+\w"  # a line that begins with a number: "- **[1]** Handbook"
    r"|^[^\w\n]*+(?:sources?|references?|citations?|fontes?|referências|出典|参考文献|参照元|来源|参考资料)"
    r"[^\w\n]*+(?:$|(?<=[:：]).*$)",
    re.MULTILINE | re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*\[\]<>~&$|]|(?<!\w)_|_(?!\w)|:(?=//)")
"""What may act within a line of Markdown; other punctuation would only look odd where Markdown is not rendered."""
_SAFE_IN_LINK = ":/?#[]@!$&'*+,;=%"
MAX_LINK_LENGTH = 2_000

_BLOCK = 16_384
"""Characters that are looked through in one go, at least."""

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
    link: str = ""
    """Its address on the web, if it has one."""

    def shortened(self, length: int) -> "Source":
        """The same source, no text of it longer than this."""
        resource = {name: value[:length] if isinstance(value, str) else value for name, value in self.resource.items()}
        document_id = self.document_id and self.document_id[:length]
        return replace(self, content=self.content[:length], document_id=document_id, resource=resource)

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
    """The sources of one run, numbered in the order in which they were first offered.

    They go on counting from the last number that earlier runs of the conversation gave.
    """

    def __init__(self, last: int = 0) -> None:
        self._before = last
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
        return [self._number(source) for source in in_turns(sources)]

    def _number(self, source: Source) -> int:
        number = self._numbers.setdefault(source.identity, self.last + 1)
        if number > self.last:
            self._sources.append(source)
        return number

    @property
    def last(self) -> int:
        """The highest number given so far."""
        return self._before + len(self._sources)

    def entries(self) -> tuple[tuple[int, Source], ...]:
        return tuple(enumerate(self._sources, start=self._before + 1))


def context_block(entries: Iterable[tuple[int, Source]]) -> str:
    """The numbered ``<context>`` block, "" without sources; our own tags inside the data are escaped."""
    blocks = [
        f'<source number="{number}" title="{attribute(source.title)}">\n{escaped(source.content)}\n</source>'
        for number, source in in_turns(entries)
    ]
    return "\n".join(["<context>", template.CONTEXT_HEADER, *blocks, "</context>"]) if blocks else ""


def escaped(text: str) -> str:
    """Data with our own tags escaped."""
    if "<" not in text:
        return text
    return "".join(_OWN_TAGS.sub("&lt;", block) for block in in_turns(_blocks(text)))


def _blocks(text: str) -> Iterator[str]:
    """A text in blocks that end before a ``<``, so that no tag is cut."""
    start = 0
    while start < len(text):
        end = text.find("<", start + _BLOCK)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end


def attribute(text: str) -> str:
    """Data as the value of an attribute in our tags."""
    return " ".join(escaped(text).replace('"', "&quot;").split())


def citation_lines(entries: Iterable[tuple[int, Source]]) -> str:
    """The lines that tell the model the sources of a tool's result; "" without any."""
    lines = [f"[{number}] {source.label}" for number, source in entries]
    return "\n".join([template.TOOL_SOURCES_HEADER, *lines]) if lines else ""


def cited_numbers(answer: str) -> frozenset[int]:
    """The numbers that the answer cites, such as [1] or [2, 3]."""
    listed = frozenset(_CITATION.findall(answer))  # the same again and again, in a long answer
    return frozenset(int(digits) for numbers in listed for digits in re.findall(r"\d+", numbers))


def source_list(answer: str, entries: Iterable[tuple[int, Source]], clean: Callable[[str], str]) -> str:
    """The sources that an answer cites outside code, as a Markdown list under the numbers that it uses.

    "" if it cites none or has such a list itself. Sources of the same title and link are one line.
    """
    prose = _CODE.sub("", answer)
    if _OWN_LIST.search(prose):
        return ""
    cited, lines = cited_numbers(prose), dict[str, str]()
    for number, source in entries:
        if number in cited:
            named = _named(clean(source.label), clean(source.link))
            lines[named] = f"{lines.get(named, '-')} [{number}]"
    return "\n".join(f"{numbers} {named}" for named, numbers in lines.items())


def _named(title: str, link: str) -> str:
    """A title as plain text in Markdown, with the link where there is one."""
    plain = _MARKUP.sub(r"\\\g<0>", " ".join(title.split()))
    return f"[{plain}]({quote(link, safe=_SAFE_IN_LINK)})" if link else plain


# Sources as the node and the tools describe them.
#
# Of a knowledge result of Dify's the model reads the content; any other object reaches it whole.

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
