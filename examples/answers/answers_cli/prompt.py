"""What the agent is told: the parameters of the Agent node for a context."""

from collections.abc import Mapping

from answering.domain.retrieval import RetrievalContext
from answering.domain.values import PromptTemplate

INSTRUCTION = PromptTemplate(
    "You answer questions about the organisation whose documents are in the context. Say only what they say, in the "
    "language of the question, and put the number of the source behind each statement, like [1]. If they do not answer "
    "the question, say so."
)
FOUND = "search.result"
"""The workflow's variable that holds what the search found, as if a search node stood before the Agent node."""


def parameters(context: RetrievalContext, prompt: PromptTemplate) -> Mapping[str, object]:
    return {
        "instruction": prompt.filled(tuple(document.title for document in context.documents)),
        "query": {"variable": "sys.query"},
        "context": {"variable": FOUND},
        "maximum_iterations": 3,
        # The answer is stored with its sources; their list is no part of its words.
        "show_sources": False,
    }


def variables(context: RetrievalContext) -> Mapping[str, object]:
    """The documents in the form of a Knowledge Retrieval node; the agent numbers them in this order, from 1."""
    found = [
        {
            "title": document.title,
            "content": document.content,
            "metadata": {
                "document_id": document.id.value,
                "document_name": document.title,
                "score": round(document.score, 4),
            },
        }
        for document in context.documents
    ]
    return {"sys.query": context.question.text, FOUND: found}
