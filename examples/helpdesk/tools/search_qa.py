"""The tool `search_qa`: a question → the most similar past questions and their answers, as text and as citations."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from helpdesk_search.errors import TermsError
from helpdesk_search.likeness import Likeness, checked_question, find_alike, past_questions
from helpdesk_search.search import checked_language
from helpdesk_search.wording import answers_as_text, named, pair

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent
type _Resource = ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource


class SearchQaTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        try:
            question = checked_question(tool_parameters.get("question"))
            language = checked_language(tool_parameters.get("language"))
        except TermsError as error:
            # The model can correct this: it reads why and asks again. Other failures are the operator's.
            yield self.create_text_message(f"search_qa error: {error}")
            return
        found = find_alike(past_questions(_PLUGIN_FOLDER / "qa"), question, language)
        text = answers_as_text(question, found)
        yield self.create_text_message(text)
        if found:
            resources = [_resource(position, likeness) for position, likeness in enumerate(found, start=1)]
            yield self.create_retriever_resource_message(resources, context=text)


def _resource(position: int, likeness: Likeness) -> _Resource:
    answered = likeness.answered
    return ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource(
        position=position,
        dataset_id="fumikura-qa",
        dataset_name="Fumikura past questions",
        document_id=f"{answered.file}#{answered.id}",
        document_name=named(likeness),
        data_source_type="file",
        segment_id=f"{answered.file}#{answered.id}",
        retriever_from="search_qa",
        score=likeness.similarity,
        word_count=len(pair(likeness)),
        content=pair(likeness),
        doc_metadata={
            "language": answered.language,
            "topic": answered.topic,
            "question": answered.question,
            "answered_on": answered.answered_on,
        },
    )
