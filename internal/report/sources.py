"""Sources that the answer may cite: the node's context first, then what the tools brought.

In: sources as source_reading makes them. Out: numbered sources, the ``<context>`` block of the user message, which
numbers an answer cites, and the list of these below the answer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from internal.text.fairness import in_turns
from prompt import template

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
