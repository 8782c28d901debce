"""Sources that the answer may cite: the node's context first, then what the tools brought; read, numbered, listed."""

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic_core import to_json

from internal.clock import in_turns, in_turns_if_many
from internal.text.texts import parse_pasted, read_pasted
from prompt import template

MAX_TITLE_LENGTH = 200
_MAX_METADATA_SIZE = 10_000
"""Bytes of a source's metadata."""

RESOURCE_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("dataset_id", "dataset_name", "document_id", "document_name", "data_source_type"), str),
    **dict.fromkeys(("segment_id", "retriever_from", "index_node_hash", "content"), str),
    **dict.fromkeys(("hit_count", "word_count", "segment_position", "page"), int),
    "score": float,
    "doc_metadata": dict,
}
"""Fields of the SDK's RetrieverResource, except for ``position``, which is the source's number."""
_RENAMED = {
    "segment_hit_count": "hit_count",
    "segment_word_count": "word_count",
    "segment_index_node_hash": "index_node_hash",
    "document_data_source_type": "data_source_type",
}
"""Keys of the knowledge node's metadata, and the fields that they fill."""
_FIELD_OF = {name: (name, kind) for name, kind in RESOURCE_FIELDS.items()} | {
    key: (name, RESOURCE_FIELDS[name]) for key, name in _RENAMED.items()
}
_KNOWLEDGE_FIELDS = frozenset({"metadata", "files", "position", *_RENAMED, *RESOURCE_FIELDS})
# What search tools and vector stores call the text of a result; the first that holds text counts.
_CONTENT_NAMES = ("page_content", "text", "snippet", "summary", "body", "description", "abstract")
_TITLE_NAMES = ("title", "document_name", "dataset_name")
_LINK_NAMES = ("url", "link", "href", "source_url", "source", "document_id")
_LINK = re.compile(r"https?://\S{1,1990}", re.IGNORECASE)
_UNTITLED = "Untitled"
_READ_AS_A_NUMBER = (int, float, str)

_CITATION = re.compile(r"[\[【]\s*(\d{1,4}(?:\s*[,、，;]\s*\d{1,4})*)\s*[\]】]")
_OWN_TAGS = re.compile(
    r"\s*+/?+\s*+(?:context|source|persistence|context_gathering|uncertainty_and_ambiguity|tool_preamble"
    r"|tool_results|tool_output|tools|agent_note|skills?|task|plan|summary|conversation|findings?|results?|criteria|draft|problems)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_NUMBERED_LINE = re.compile(
    r"^(?:[^\w\n\[【]*+\d{1,3}[.)])?[^\w\n\[【]*+[\[【](\d{1,4})[\]】][^\w\n]*+(\w.*)$", re.MULTILINE
)
"""A line that begins with a citation: "- **[1]** Handbook"."""
_ENDS_A_SENTENCE = re.compile(r"[.!?。！？．｡…][\s*_\"'”’»」』)\]]*\Z")
_OWN_HEADING = re.compile(
    r"^[^\w\n]*+(?:sources?|references?|citations?|fontes?|referências|出典|参考文献|参照元|来源|参考资料)"
    r"[^\w\n]*+(?:$|(?<=[:：]).*$)",
    re.MULTILINE | re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*\[\]<>~&$|]|(?<!\w)_|_(?!\w)|:(?=//)")
"""What may act within a line of Markdown; other punctuation would only look odd where Markdown is not rendered."""
_SAFE_IN_LINK = ":/?#[]@!$&'*+,;=%"


class Source(NamedTuple):
    """One source, before it has a number."""

    title: str
    content: str
    resource: Mapping[str, Any] = MappingProxyType({})
    """What is known of it in RESOURCE_FIELDS, each of the field's type."""
    link: str = ""

    def shortened(self, length: int) -> "Source":
        """A copy in which no text is longer than this."""
        resource = {name: value[:length] if isinstance(value, str) else value for name, value in self.resource.items()}
        return self._replace(content=self.content[:length], resource=resource)

    @property
    def document_id(self) -> str | None:
        return self.resource.get("document_id")

    @property
    def label(self) -> str:
        """Title and page, as a person would name it."""
        page = self.resource.get("page")
        if page is None:
            return self.title
        return f"{self.title}, page {page}"

    @property
    def identity(self) -> tuple[str | None, str, str]:
        """Two sources with the same identity are one."""
        return (self.document_id or self.title, str(self.resource.get("segment_id") or ""), self.content)


class NumberedSources:
    """The sources of one run, numbered as they were first offered, on from the last number of earlier runs."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._entries: dict[tuple[str | None, str, str], tuple[int, Source]] = {}

    def add(self, sources: Iterable[Source]) -> list[int]:
        """Number these sources; one that is already listed keeps its number."""
        numbers = list[int]()
        for source in in_turns(sources):
            number, _ = self._entries.setdefault(source.identity, (self.last + 1, source))
            self.last = max(self.last, number)
            numbers.append(number)
        return numbers

    def entries(self) -> tuple[tuple[int, Source], ...]:
        return tuple(self._entries.values())


def context_block(entries: Iterable[tuple[int, Source]]) -> str:
    """The numbered ``<context>`` block, "" without sources; our own tags inside the data are escaped."""
    blocks = [
        f'<source number="{number}" title="{attribute(source.title)}">\n{escaped(source.content)}\n</source>'
        for number, source in in_turns(entries)
    ]
    if blocks:
        return "\n".join(["<context>", template.CONTEXT_HEADER, *blocks, "</context>"])
    return ""


def escaped(text: str) -> str:
    """Data with our own tags escaped."""
    if "<" not in text:
        return text
    first, *others = text.split("<")
    return first + "".join(f"{'&lt;' if _OWN_TAGS.match(part) else '<'}{part}" for part in in_turns(others))


def attribute(text: str) -> str:
    """Data as the value of an attribute in our tags."""
    return " ".join(escaped(text).replace('"', "&quot;").split())


def citation_lines(entries: Iterable[tuple[int, Source]]) -> str:
    """The lines that tell the model the sources of a tool's result; "" without any."""
    lines = [f"[{number}] {source.label}" for number, source in entries]
    if lines:
        return "\n".join([template.TOOL_SOURCES_HEADER, *lines])
    return ""


def cited_numbers(answer: str) -> frozenset[int]:
    """The numbers that the answer cites, such as [1] or [2, 3]."""
    listed = frozenset(_CITATION.findall(answer))  # the same again and again, in a long answer
    return frozenset(int(digits) for numbers in listed for digits in re.findall(r"\d+", numbers))


def source_list(answer: str, entries: Iterable[tuple[int, Source]], clean: Callable[[str], str]) -> str:
    """The sources that an answer cites outside code, as a Markdown list under the numbers that it uses.

    "" if it cites none or has such a list itself. Sources of the same title and link are one line.
    """
    entries = tuple(entries)
    prose = ""
    if entries:
        prose = _CODE.sub("", answer)
    cited = frozenset[int]()
    if not _lists_sources(prose, dict(entries)):
        cited = cited_numbers(prose)
    lines = dict[str, str]()
    for number, source in entries:
        if number in cited:
            title = " ".join(clean(source.label).split())
            link = clean(source.link)
            named = _MARKUP.sub(r"\\\g<0>", title)
            if link:
                named = f"[{named}]({quote(link, safe=_SAFE_IN_LINK)})"
            lines[named] = f"{lines.get(named, '-')} [{number}]"
    return "\n".join(f"{numbers} {named}" for named, numbers in lines.items())


def _lists_sources(prose: str, sources: Mapping[int, Source]) -> bool:
    """Whether an answer lists its sources itself: under a heading, or in lines that name them by their numbers.

    A line that begins with a citation may also go on in prose. It is one of a list if it says no more than what the
    source is called, or if it is no sentence and the rest of the answer cites the same number.
    """
    if _OWN_HEADING.search(prose):
        return True
    cited = cited_numbers(_NUMBERED_LINE.sub("", prose))
    for line in in_turns(_NUMBERED_LINE.finditer(prose)):
        number = int(line[1])
        source = sources.get(number)
        if source and _bare(line[2]) in {_bare(name) for name in (source.title, source.label, source.link)}:
            return True
        if number in cited and not _ENDS_A_SENTENCE.search(line[2]):
            return True
    return False


def _bare(text: str) -> str:
    """The letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text).casefold()


def read_context(context: object) -> list[Source]:
    """Read the ``context`` parameter: str, dict, list of either, or nothing; a list or dict may be given as text."""
    if isinstance(context, str):
        context = read_pasted(context)
        if context.lstrip().startswith(("[", "{")):
            with contextlib.suppress(ValueError, RecursionError):  # what only begins like JSON is a text
                context = parse_pasted(context) or context
    return list(_read_context(context))


def _read_context(value: object) -> Iterator[Source]:
    if isinstance(value, list):
        for item in in_turns(value):
            if not isinstance(item, dict):
                yield from _read_context(item)
            elif source := read_source(item):
                yield source
    elif isinstance(value, dict):
        if source := read_source(value):
            yield source
    elif value is not None and str(value).strip():
        yield Source(title="Context", content=str(value))


def read_source(item: Mapping[str, Any]) -> Source | None:
    """Read one knowledge result, retriever resource or other object; None when it says nothing.

    Of a knowledge result of Dify's the model reads the content; any other object reaches it whole.
    """
    own = _said(item)
    metadata = item.get("metadata")
    values = own
    if metadata:
        values = {**_said(metadata), **own}
    resource = _read_resource(values)
    title_name = _title_name(values)
    named = _text(values.get(title_name)) or _UNTITLED
    title = " ".join(named.split())[:MAX_TITLE_LENGTH]
    content = resource.get("content") or ""
    if not content.strip():
        # Dify's knowledge retrieval has metadata that is not for the model.
        is_knowledge = values.get("_source") == "knowledge" or "dataset_id" in values or "segment_id" in values
        told = {title_name if title == named else "", *(_KNOWLEDGE_FIELDS if is_knowledge else ())}
        content = _whole(own, told)
    if not content and title == _UNTITLED:
        return None
    return Source(title, content, resource, _link(values))


def _title_name(values: Mapping[str, Any]) -> str:
    """The first key of a title that an object has; "" for none."""
    for name in _TITLE_NAMES:
        if name in values:
            return name
    return ""


def _said(item: object) -> dict[str, Any]:
    """The fields of an object that hold something."""
    if not isinstance(item, dict):
        return {}
    fields = in_turns_if_many(item.items())
    return {key: value for key, value in fields if value or isinstance(value, int | float)}


def _link(values: Mapping[str, Any]) -> str:
    """The first address on the web, of the object's own or of the document that it is from."""
    for name in _LINK_NAMES:
        value = values.get(name)
        if isinstance(value, str) and _LINK.fullmatch(value.strip()):
            return value.strip()
    document = values.get("doc_metadata")
    if isinstance(document, dict):
        return _link(document)
    return ""


def _whole(item: Mapping[str, Any], told: set[str]) -> str:
    """The text of an object without ``content``, and its other fields as JSON, except for those in ``told``."""
    texts = (name for name in _CONTENT_NAMES if isinstance(item.get(name), str) and item[name].strip())
    text_name = next(texts, "")
    rest = {key: value for key, value in in_turns_if_many(item.items()) if key != text_name and key not in told}
    others = ""
    if rest:
        others = json.dumps(rest, ensure_ascii=False)
    return "\n\n".join(part for part in (_text(item.get(text_name)), others) if part)


def _read_resource(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep values that have a field, in the field's type; an unusable value is left out."""
    resource: dict[str, Any] = {}
    for key, value in in_turns_if_many(values.items()):
        field = _FIELD_OF.get(key)
        if field is None:
            continue
        name, kind = field
        if name != key and name in values:
            continue
        if kind is str:
            resource[name] = _text(value)
        elif kind is dict:
            with contextlib.suppress(ValueError):  # with more levels than a message has around it
                if isinstance(value, dict) and len(to_json([[[[[[[[value]]]]]]]])) <= _MAX_METADATA_SIZE:
                    resource[name] = value
        elif isinstance(value, _READ_AS_A_NUMBER):
            with contextlib.suppress(ValueError, OverflowError):
                if math.isfinite(number := float(value)):
                    resource[name] = kind(number)
    return resource


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)
