"""The use case: search, generate, save, reply.

Whatever goes wrong, there is one reply. Without documents no model is asked. An answer is saved before the reply, when
the setting says so; when that fails, the reply still goes out, and the failure is logged.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from answering.domain.answer import Answer
from answering.domain.errors import AnswerBusinessError, AnswerSystemError, Code, SystemCode
from answering.domain.ports import Answers, Generator
from answering.domain.values import AnswerId, Question

from .searching import SearchService, explained

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
    code: Code | None = None
    """Why there is no answer."""


@dataclass(frozen=True)
class GenerateAndReply:
    searching: SearchService
    generator: Generator
    answers: Answers
    saves_answers: bool = True
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], AnswerId] = AnswerId.new

    def reply_to(self, asked: str) -> Reply:
        try:
            context = self.searching.find(Question.asked(asked))
            answer = Answer.of(self.new_id(), context, self.generator.generate(context), self.now())
        except AnswerBusinessError as error:
            return Reply(explained(error), code=error.code)
        except AnswerSystemError as error:
            _LOG.error("%s", error)
            return Reply(_SORRY[error.code], code=error.code)
        if self.saves_answers:
            self._save(answer)
        return Reply(answer.content, answer)

    def _save(self, answer: Answer) -> None:
        try:
            self.answers.save(answer)
        except AnswerSystemError as error:
            _LOG.error("%s was not saved. %s", answer.id, error)
