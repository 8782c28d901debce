"""The tool `search_manual`: words → the passages of the manual with most of them, as text and as citations."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from helpdesk_search.errors import TermsError
from helpdesk_search.index import index_of_manual
from helpdesk_search.search import Hit, checked_language, find
from helpdesk_search.terms import parse_terms
from helpdesk_search.wording import excerpt, hits_as_text

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent
type _Resource = ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource


class SearchManualTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        typed = str(tool_parameters.get("terms") or "")
        try:
            terms = parse_terms(typed)
            language = checked_language(tool_parameters.get("language"))
        except TermsError as error:
            # The model can correct this: it reads why and searches again. Other failures are the operator's.
            yield self.create_text_message(f"search_manual error: {error}")
            return
        hits = find(index_of_manual(_PLUGIN_FOLDER / "manual"), terms, language)
        text = hits_as_text(typed, hits)
        yield self.create_text_message(text)
        if hits:
            resources = [_resource(position, hit) for position, hit in enumerate(hits, start=1)]
            yield self.create_retriever_resource_message(resources, context=text)


def _resource(position: int, hit: Hit) -> _Resource:
    return ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource(
        position=position,
        dataset_id="fumikura-manual",
        dataset_name="Fumikura manual",
        document_id=hit.file,
        document_name=hit.file,
        data_source_type="file",
        segment_id=f"{hit.file}#{hit.position}",
        segment_position=hit.position,
        retriever_from="search_manual",
        score=hit.score,
        word_count=len(hit.text),
        content=excerpt(hit),
        page=hit.page,
        doc_metadata={"language": hit.language, "title": hit.title, "heading": hit.heading},
    )
