"""The tool `search_qa`.

In: a question. Out: the most similar past questions and their answers, as text and as citations.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage
from helpdesk_search.answers_index import Likeness, checked_question, find_alike, index_of_answers
from helpdesk_search.errors import TermsError
from helpdesk_search.location import index_directory
from helpdesk_search.search import checked_language
from helpdesk_search.wording import answers_as_text, named, pair
from meaning.embeddings import chosen_embedding

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent
type _Resource = ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource


class SearchQaTool(Tool):
    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        try:
            question = checked_question(tool_parameters.get("question"))
            language = checked_language(tool_parameters.get("language"))
            embedding = chosen_embedding(self.runtime.credentials, os.environ)
            directory = index_directory(_PLUGIN_FOLDER, self.runtime.credentials, os.environ)
            (vector,) = embedding.vectors([question])
            index = index_of_answers(_PLUGIN_FOLDER / "qa", directory, embedding, len(vector))
            found = index.search(lambda opened: find_alike(opened, vector, embedding.least_of_questions, language))
        except TermsError as error:
            # The model can correct this: it reads why and asks again. Other failures are the operator's.
            yield self.create_text_message(f"search_qa error: {error}")
            return
        text = answers_as_text(question, found, embedding.described)
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
