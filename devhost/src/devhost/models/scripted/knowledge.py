"""Segments of knowledge that a script gives for a Knowledge Retrieval node, and what the node makes of them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from devhost.models.scripted.script import ScriptModel
from devhost.protocol.wire import JsonObject

NODE_TYPE = "knowledge-retrieval"


class Segment(ScriptModel):
    """Its fields stand at the same names in the item; `metadata` goes before what devhost fills in."""

    content: str | None
    """None as in Dify, where a segment may have nothing but files."""
    title: str = ""
    """The document's name."""
    score: float | None = None
    summary: str | None = None
    files: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    def item(self, position: int) -> JsonObject:
        """`position`: from 1, in the order of the node's result. Two runs are alike in their ids."""
        title = self.title or f"Document {position}"
        metadata = {
            "_source": "knowledge",
            "dataset_id": "knowledge",
            "dataset_name": "Knowledge",
            "document_id": title,
            "document_name": title,
            "data_source_type": "upload_file",
            "segment_id": f"{title}, {position}",
            "retriever_from": "workflow",
            "score": self.score,
            "child_chunks": [],
            "segment_hit_count": 1,
            "segment_word_count": len(self.content or ""),
            "segment_position": position,
            "segment_index_node_hash": "",
            "doc_metadata": None,
            "position": position,
            **self.metadata,
        }
        own = {"files": list(self.files), "content": self.content, "summary": self.summary}
        return {"metadata": metadata, "title": title, **own}


def recorded_segment(item: JsonObject, position: int) -> JsonObject:
    """As a script has it: what `Segment.item` fills in is left out."""
    metadata = item.get("metadata") or {}
    usual = {"title": f"Document {position}"}
    known = {**item, "score": metadata.get("score")}
    given = {name: known.get(name) for name in ("title", "score", "summary", "files")}
    given = {name: value for name, value in given.items() if value and value != usual.get(name)}
    given = {"content": item.get("content"), **given}
    made = Segment.model_validate(given).item(position)["metadata"]
    own = {name: value for name, value in metadata.items() if name not in made or made[name] != value}
    return {**given, **({"metadata": own} if own else {})}


def _text_alone(value: object) -> object:
    if isinstance(value, str):
        return {"content": value}
    return value


type Segments = tuple[Annotated[Segment, BeforeValidator(_text_alone)], ...]
"""A text is short for `{content: TEXT}`."""
type Knowledge = Mapping[str, Segments]
"""By a node's id or title."""
