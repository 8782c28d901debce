"""The search: a question → the context for its answer."""

from answering.domain.errors import AnswerBusinessError, BusinessCode
from answering.domain.ports import Search
from answering.domain.question import Question
from answering.domain.retrieval import RetrievalContext, retrieve

HOW_TO_BUILD = "python -m examples.answers sync DIR"


class SearchService:
    def __init__(self, search: Search) -> None:
        self._search = search

    def find(self, question: Question) -> RetrievalContext:
        """The documents that an answer may rest on.

        Raises:
            AnswerBusinessError: ANSWER_INDEX_NOT_AVAILABLE or ANSWER_NO_RELEVANT_DOCUMENTS.
            AnswerSystemError: ANSWER_CONTEXT_RETRIEVAL_FAILED.
        """
        return retrieve(question, self._search.search(question))


def explained(error: AnswerBusinessError) -> str:
    """What the person who asks reads, and the model in place of a tool's result."""
    if error.code is BusinessCode.INDEX_NOT_AVAILABLE:
        return f"{error.sentence} An operator builds it from a folder of Markdown files with: {HOW_TO_BUILD}"
    return error.sentence
