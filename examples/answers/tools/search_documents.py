"""The tool `search_documents`: the same search as that of `python -m examples.answers ask`.

In: a question. Out: the passages as text, and as retriever resources with their scores. That the index is missing, or
that nothing was found, is a result too, which the model reads.
"""

from collections.abc import Generator

from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import Question
from answering.services import open_database, search_service
from dify_plugin.entities.tool import ToolInvokeMessage
from pydantic import Field
from tool_layer import recorded_tool  # as a module: Dify takes every Tool class that it finds here for this tool
from tool_layer.database import Database
from tool_layer.envelope import JsonObject, Result
from tool_layer.errors import RefusedError
from tool_layer.parsing import Input
from tool_layer.run_steps import Turn

DATASET = "answers-index"
LONGEST_QUESTION = 1000
type _Resource = ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource


class SearchInput(Input):
    question: str = Field(max_length=LONGEST_QUESTION)


class Found(Result):
    """One document; `message` is its passages."""

    document_id: str
    title: str
    score: float


class SearchResult(Result):
    documents: tuple[Found, ...]


class SearchDocumentsTool(recorded_tool.RecordedTool[SearchInput]):
    name = "search_documents"
    takes = SearchInput

    def database(self) -> Database:
        return open_database(self.runtime.credentials)

    def result(self, asked: SearchInput, _turn: Turn) -> SearchResult:
        try:
            question = Question.asked(asked.question)
        except AnswerBusinessError as error:
            raise RefusedError(error.sentence) from None
        found = search_service(self.database()).find(question)
        if isinstance(found, Answer):
            raise RefusedError(found.content)
        return _found(found)

    def messages(self, output: JsonObject) -> Generator[ToolInvokeMessage, None, None]:
        result = output["result"]
        yield self.create_text_message(result["message"])
        if found := result.get("documents"):
            resources = [_resource(position, Found(**each)) for position, each in enumerate(found, start=1)]
            yield self.create_retriever_resource_message(resources, context=result["message"])


def _found(context: RetrievalContext) -> SearchResult:
    documents = tuple(
        Found(message=each.content, document_id=each.id.value, title=each.title, score=round(each.score, 4))
        for each in context.documents
    )
    head = f"Documents found: {len(documents)}. The best first."
    blocks = [f"{each.title} ({each.document_id}, score {each.score:.2f})\n\n{each.message}" for each in documents]
    return SearchResult(message=f"{head}\n\n" + "\n\n---\n\n".join(blocks), documents=documents)


def _resource(position: int, found: Found) -> _Resource:
    return ToolInvokeMessage.RetrieverResourceMessage.RetrieverResource(
        position=position,
        dataset_id=DATASET,
        dataset_name="Documents",
        document_id=found.document_id,
        document_name=found.title,
        data_source_type="file",
        segment_id=found.document_id,
        retriever_from="search_documents",
        score=found.score,
        word_count=len(found.message),
        content=found.message,
    )
