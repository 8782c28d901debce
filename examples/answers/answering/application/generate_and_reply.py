"""The use case: search, generate, save, reply.

Whatever goes wrong, there is one reply. Without documents no model is asked. An answer is saved before the reply,
unless a setting says otherwise; when that fails, the reply still goes out, and the failure is logged.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError, AnswerSystemError, Code, SystemCode
from answering.domain.ports import Generator
from answering.domain.values import AnswerId, Question

from .history import History
from .searching import SearchService

_LOG = logging.getLogger(__name__)
_SORRY = {
    SystemCode.CONTEXT_RETRIEVAL_FAILED: "The documents could not be searched. Please try again later.",
    SystemCode.LLM_API_ERROR: "The model could not be reached. Please try again later.",
    SystemCode.GENERATION_FAILED: "The answer could not be written. Please try again later.",
}


@dataclass(frozen=True)
class Reply:
    text: str
    answer: Answer | None = None
    """None when the documents could not be searched, or the model gave no answer."""
    code: Code | None = None
    """Why no document, or no model, answered; None for an answer of the model."""


@dataclass(frozen=True)
class GenerateAndReply:
    searching: SearchService
    generator: Generator
    history: History
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], AnswerId] = AnswerId.new

    def reply_to(self, asked: str) -> Reply:
        try:
            found = self.searching.find(Question.asked(asked))
            if isinstance(found, Answer):
                return Reply(found.content, found, found.reason)
            answer = Answer.of(self.new_id(), found, self.generator.generate(found), self.now())
        except AnswerBusinessError as error:
            return Reply(error.sentence, code=error.code)
        except AnswerSystemError as error:
            _LOG.error("%s", error)
            return Reply(_SORRY[error.code], code=error.code)
        self.history.keep(answer)
        return Reply(answer.content, answer)
