"""Segments of knowledge, given in the place of a knowledge base.

In: segments in a script or a file, as texts or mappings. Out: the items of a Knowledge Retrieval node's `result`, with
every field that Dify's have (docs/host-facts.md, "The context parameter").
"""

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from devhost.errors import DeclarationError, ParameterError
from devhost.flow.document import FlowFile, FlowNode
from devhost.protocol.wire import JsonObject
from devhost.scenario.settings import pairs
from devhost.text.yaml_file import describe, read_yaml

NODE_TYPE = "knowledge-retrieval"


class Segment(BaseModel):
    """Its fields stand at the same names in the item; `metadata` goes before what devhost fills in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str | None
    """None as in Dify, where a segment may have nothing but files."""
    title: str = ""
    """The document's name."""
    dataset: str = "Knowledge"
    score: float | None = None
    summary: str | None = None
    files: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    def item(self, position: int) -> JsonObject:
        """`position`: from 1, in the order of the node's result."""
        title = self.title or f"Document {position}"
        content = self.content or ""
        metadata = {
            "_source": "knowledge",
            "dataset_id": _id("dataset", self.dataset),
            "dataset_name": self.dataset,
            "document_id": _id("document", title),
            "document_name": title,
            "data_source_type": "upload_file",
            "segment_id": _id("segment", f"{title}\n{content}"),
            "retriever_from": "workflow",
            "score": self.score,
            "child_chunks": [],
            "segment_hit_count": 1,
            "segment_word_count": len(content),
            "segment_position": position,
            "segment_index_node_hash": hashlib.sha256(content.encode()).hexdigest(),
            "doc_metadata": None,
            "position": position,
            **self.metadata,
        }
        return {
            "metadata": metadata,
            "title": title,
            "files": list(self.files),
            "content": self.content,
            "summary": self.summary,
        }


def _text_alone(value: object) -> object:
    return {"content": value} if isinstance(value, str) else value


type Segments = tuple[Annotated[Segment, BeforeValidator(_text_alone)], ...]
"""A text is short for `{content: TEXT}`."""
type Knowledge = Mapping[str, Segments]
"""By a node's id or title."""
_SEGMENTS: TypeAdapter[Segments] = TypeAdapter(Segments)


def read_segments(file: Path) -> Segments:
    """A YAML or JSON file with a list of segments."""
    try:
        return _SEGMENTS.validate_python(read_yaml(file))
    except DeclarationError as error:
        raise ParameterError(str(error)) from error
    except ValidationError as error:
        raise ParameterError(
            f"{file} is not a list of segments, each a text or {{content: …, title: …}}: {describe(error)}"
        ) from error


def read_knowledge(file: FlowFile, assignments: Iterable[str]) -> Knowledge:
    """`--knowledge NODE=FILE` pairs; ParameterError for a node that is not in the flow."""
    return {name: read_segments(Path(path)) for name, path in _checked(file, assignments)}


def _checked(file: FlowFile, assignments: Iterable[str]) -> Iterator[tuple[str, str]]:
    nodes = [node for node in file.nodes.values() if node.type == NODE_TYPE]
    for name, path in pairs(assignments, "--knowledge"):
        if not any(name in {node.id, node.title} for node in nodes):
            there_are = ", ".join(f"{node.id} ({node.title})" for node in nodes) or "none"
            raise ParameterError(
                f"--knowledge {name}: no Knowledge Retrieval node is called so; there are: {there_are}"
            )
        yield name, path


def retrieved(knowledge: Knowledge, node: FlowNode) -> Sequence[JsonObject]:
    """What the node finds, whatever is asked; ParameterError if nothing is given for it."""
    for name in (node.id, node.title):
        if name in knowledge:
            return [segment.item(position) for position, segment in enumerate(knowledge[name], 1)]
    raise ParameterError(
        f"no segments are given for {node}: write them in the script's knowledge, under {node.id!r}, or give "
        f"--knowledge {node.id}=FILE; an empty list stands for nothing found"
    )


def _id(kind: str, name: str) -> str:
    """The same for the same name, so that two runs are alike."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"devhost:{kind}:{name}"))
