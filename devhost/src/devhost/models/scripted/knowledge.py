"""Knowledge segments that a script defines for a Knowledge Retrieval node, and the items the node returns for them."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from devhost.models.scripted.script import ScriptModel
from devhost.protocol.wire import JsonObject

NODE_TYPE = "knowledge-retrieval"


class Segment(ScriptModel):
    """One segment of a document. `metadata` overrides the metadata that devhost fills in."""

    content: str | None
    """The text; `None` for a segment that has only files, as Dify allows."""
    title: str = ""
    """The document's name."""
    score: float | None = None
    summary: str | None = None
    files: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    def item(self, position: int) -> JsonObject:
        """Returns the item of the node's result.

        `position` counts from 1 in the order of the result. The ids are the same in every run.
        """
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
    """Returns the item as a script has it, without the values that `Segment.item` fills in."""
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
"""The segments of one node. A plain text is short for `{content: TEXT}`."""
type Knowledge = Mapping[str, Segments]
"""The segments by the id or title of a node."""
