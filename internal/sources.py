"""Sources that the answer may cite: parsed from the node's context and the tools' results, numbered, and listed."""

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic_core import to_json

from internal.clock import in_turns, in_turns_if_many
from internal.text.texts import parse_pasted, read_pasted
from prompt import template

MAX_TITLE_LENGTH = 200
_MAX_METADATA_SIZE = 10_000
"""Maximum bytes of a source's metadata."""

RESOURCE_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("dataset_id", "dataset_name", "document_id", "document_name", "data_source_type"), str),
    **dict.fromkeys(("segment_id", "retriever_from", "index_node_hash", "content"), str),
    **dict.fromkeys(("hit_count", "word_count", "segment_position", "page"), int),
    "score": float,
    "doc_metadata": dict,
}
"""The fields of the SDK's RetrieverResource with their types, except ``position``, which is the source's number."""
_RENAMED = {
    "segment_hit_count": "hit_count",
    "segment_word_count": "word_count",
    "segment_index_node_hash": "index_node_hash",
    "document_data_source_type": "data_source_type",
}
"""Keys in the knowledge node's metadata, with the fields that they fill."""
_FIELD_OF = {name: (name, kind) for name, kind in RESOURCE_FIELDS.items()} | {
    key: (name, RESOURCE_FIELDS[name]) for key, name in _RENAMED.items()
}
_KNOWLEDGE_FIELDS = frozenset({"metadata", "files", "position", *_RENAMED, *RESOURCE_FIELDS})
# Names that search tools and vector stores use for the text of a result. The first name with a text is used.
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
"""A line that begins with a citation, such as "- **[1]** Handbook"."""
_ENDS_A_SENTENCE = re.compile(r"[.!?。！？．｡…][\s*_\"'”’»」』)\]]*\Z")
_OWN_HEADING = re.compile(
    r"^[^\w\n]*+(?:sources?|references?|citations?|fontes?|referências|出典|参考文献|参照元|来源|参考资料)"
    r"[^\w\n]*+(?:$|(?<=[:：]).*$)",
    re.MULTILINE | re.IGNORECASE,
)
_MARKUP = re.compile(r"[\\`*\[\]<>~&$|]|(?<!\w)_|_(?!\w)|:(?=//)")
"""Characters with an effect in a line of Markdown, which are escaped. Escapes of other punctuation would look odd where
Markdown is not rendered."""
_SAFE_IN_LINK = ":/?#[]@!$&'*+,;=%"


class Source(NamedTuple):
    """A source that has no number yet."""

    title: str
    content: str
    resource: Mapping[str, Any] = MappingProxyType({})
    """The known values of RESOURCE_FIELDS, each in the type of its field."""
    link: str = ""

    def shortened(self, length: int) -> "Source":
        """Return a copy whose texts have at most this many characters."""
        resource = {name: value[:length] if isinstance(value, str) else value for name, value in self.resource.items()}
        return self._replace(content=self.content[:length], resource=resource)

    @property
    def document_id(self) -> str | None:
        return self.resource.get("document_id")

    @property
    def label(self) -> str:
        """The title and the page, as a person would name the source."""
        page = self.resource.get("page")
        if page is None:
            return self.title
        return f"{self.title}, page {page}"

    @property
    def identity(self) -> tuple[str | None, str, str]:
        """The values that identify the source. Sources with the same identity get one number."""
        return (self.document_id or self.title, str(self.resource.get("segment_id") or ""), self.content)


class NumberedSources:
    """The sources of one run, numbered in the order of their first appearance after the last number of earlier runs."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._entries: dict[tuple[str | None, str, str], tuple[int, Source]] = {}

    def add(self, sources: Iterable[Source]) -> list[int]:
        """Number these sources and return their numbers. A source that is already listed keeps its number."""
        numbers = list[int]()
        for source in in_turns(sources):
            number, _ = self._entries.setdefault(source.identity, (self.last + 1, source))
            self.last = max(self.last, number)
            numbers.append(number)
        return numbers

    def entries(self) -> tuple[tuple[int, Source], ...]:
        return tuple(self._entries.values())


def context_block(entries: Iterable[tuple[int, Source]]) -> str:
    """Return the numbered ``<context>`` block, or "" without sources. The agent's own tags in the data are escaped."""
    blocks = [
        f'<source number="{number}" title="{attribute(source.title)}">\n{escaped(source.content)}\n</source>'
        for number, source in in_turns(entries)
    ]
    if blocks:
        return "\n".join(["<context>", template.CONTEXT_HEADER, *blocks, "</context>"])
    return ""


def escaped(text: str) -> str:
    """Return data with the agent's own tags escaped."""
    if "<" not in text:
        return text
    first, *others = text.split("<")
    return first + "".join(f"{'&lt;' if _OWN_TAGS.match(part) else '<'}{part}" for part in in_turns(others))


def attribute(text: str) -> str:
    """Return data as the value of an attribute in the agent's own tags."""
    return " ".join(escaped(text).replace('"', "&quot;").split())


def citation_lines(entries: Iterable[tuple[int, Source]]) -> str:
    """Return the lines that list the sources of a tool's result for the model; "" if there are none."""
    lines = [f"[{number}] {source.label}" for number, source in entries]
    if lines:
        return "\n".join([template.TOOL_SOURCES_HEADER, *lines])
    return ""


def cited_numbers(answer: str) -> frozenset[int]:
    """Return the numbers that the answer cites, such as [1] or [2, 3]."""
    listed = frozenset(_CITATION.findall(answer))  # a long answer repeats the same citations
    return frozenset(int(digits) for numbers in listed for digits in re.findall(r"\d+", numbers))


def source_list(answer: str, entries: Iterable[tuple[int, Source]]) -> str:
    """Return the sources that an answer cites outside code, as a Markdown list with their numbers.

    The list is "" if the answer cites no source or already has such a list. Sources with the same title and link share
    a line.
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
            title = " ".join(source.label.split())
            named = _MARKUP.sub(r"\\\g<0>", title)
            if source.link:
                named = f"[{named}]({quote(source.link, safe=_SAFE_IN_LINK)})"
            lines[named] = f"{lines.get(named, '-')} [{number}]"
    return "\n".join(f"{numbers} {named}" for named, numbers in lines.items())


def _lists_sources(prose: str, sources: Mapping[int, Source]) -> bool:
    """Return whether an answer lists its own sources: under a heading, or in lines with their numbers and names.

    A line that begins with a citation may also continue as prose. The line belongs to a list if it has only the name of
    the source, or if it is not a sentence and the rest of the answer cites the same number.
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
    """Return only the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text).casefold()


def read_context(context: object) -> list[Source]:
    """Parse the ``context`` parameter: str, dict, list of either, or nothing. A list or dict may be given as text."""
    if isinstance(context, str):
        context = read_pasted(context)
        if context.lstrip().startswith(("[", "{")):
            with contextlib.suppress(ValueError, RecursionError):  # invalid JSON is a text
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
    """Return the source in one knowledge result, retriever resource or other object; None without content.

    The model reads only the content of Dify's knowledge results, but all fields of any other object.
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
        # Results of Dify's knowledge retrieval have metadata that is not intended for the model.
        is_knowledge = values.get("_source") == "knowledge" or "dataset_id" in values or "segment_id" in values
        told = {title_name if title == named else "", *(_KNOWLEDGE_FIELDS if is_knowledge else ())}
        content = _whole(own, told)
    if not content and title == _UNTITLED:
        return None
    return Source(title, content, resource, _link(values))


def _title_name(values: Mapping[str, Any]) -> str:
    """Return the first key for a title that an object has; "" if there is none."""
    for name in _TITLE_NAMES:
        if name in values:
            return name
    return ""


def _said(item: object) -> dict[str, Any]:
    """Return the fields of an object that are not empty."""
    if not isinstance(item, dict):
        return {}
    fields = in_turns_if_many(item.items())
    return {key: value for key, value in fields if value or isinstance(value, int | float)}


def _link(values: Mapping[str, Any]) -> str:
    """Return the first web address of the object or of the document that contains it."""
    for name in _LINK_NAMES:
        value = values.get(name)
        if isinstance(value, str) and _LINK.fullmatch(value.strip()):
            return value.strip()
    document = values.get("doc_metadata")
    if isinstance(document, dict):
        return _link(document)
    return ""


def _whole(item: Mapping[str, Any], told: set[str]) -> str:
    """Return the text of an object without ``content``, and its fields as JSON, except those in ``told``."""
    texts = (name for name in _CONTENT_NAMES if isinstance(item.get(name), str) and item[name].strip())
    text_name = next(texts, "")
    rest = {key: value for key, value in in_turns_if_many(item.items()) if key != text_name and key not in told}
    others = ""
    if rest:
        others = json.dumps(rest, ensure_ascii=False)
    return "\n\n".join(part for part in (_text(item.get(text_name)), others) if part)


def _read_resource(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for which there is a field, converted to the type of the field. Unusable values are omitted."""
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
            with contextlib.suppress(ValueError):  # the value is too deeply nested for a message
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
